package pipeline

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"dot4fa/internal/shell"
)

// Command returns the dot4fa command that does verb for this run, called from
// where this one was.
func (r *Run) Command(verb string, flags ...string) shell.Command {
	args := append([]string{verb}, r.Flags...)
	return Self(r.Copy, append(args, flags...)...)
}

// Self returns a command of this program, called from where this one was.
func Self(copyRoot string, args ...string) shell.Command {
	path, prefix := self(copyRoot)
	return shell.Command{Path: path, Args: append(prefix, args...)}
}

// anywhere returns Command for any directory: a working copy's files count
// only inside it.
func (r *Run) anywhere(verb string) shell.Command {
	c := r.Command(verb)
	if c.Path != "go" {
		c.Dir = r.Copy
	}
	return c
}

// self is how this program is called: by name when the name finds it, through
// `go run` when that is how it was built, else by its path.
func self(copyRoot string) (program string, args []string) {
	exe, err := os.Executable()
	if err != nil {
		return "dot4fa", nil
	}
	cache := os.Getenv("GOCACHE")
	if byGoRun := strings.Contains(filepath.ToSlash(exe), "/go-build") || cache != "" && strings.HasPrefix(exe, cache); byGoRun && copyRoot != "" {
		return "go", []string{"-C", copyRoot, "run", "."}
	}
	if found, err := exec.LookPath("dot4fa"); err == nil && sameFile(found, exe) {
		return "dot4fa", nil
	}
	return exe, nil
}

func sameFile(a, b string) bool {
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

// WorkingCopy returns the root of the dot4fa working copy that dir lies in, or
// "".
func WorkingCopy(dir string) string {
	for {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && modulePath(string(data)) == "dot4fa" {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}

func modulePath(mod string) string {
	for _, line := range strings.Split(mod, "\n") {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == "module" {
			return f[1]
		}
	}
	return ""
}
