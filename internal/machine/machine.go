// Package machine is the computer that a build runs on: its files, environment,
// programs, devices and user. A directory tree can stand for one, which is how
// machines that are not at hand are tested.
package machine

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// System is the machine that is looked at. Every path that goes in or comes out
// is a path of that machine; Root says where its file system begins on this one.
type System struct {
	Root string   // "" for this machine's own
	Vars []string // NAME=value

	// Of a machine that a directory tree stands for, because such a tree cannot
	// have them.
	Run     func(path string, args ...string) ([]byte, error) // what a program says on stdout; nil: it is run
	Devices map[string]Device                                 // by path
	User    User
	Free    map[string]int64 // free bytes by directory; of its longest parent that is listed
}

// Host is the machine dot4fa runs on.
func Host() System { return System{Vars: os.Environ(), User: currentUser()} }

// Getenv returns the value of an environment variable, "" when it is not set.
func (s System) Getenv(name string) string {
	for i := len(s.Vars) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(s.Vars[i], "="); ok && k == name {
			return v
		}
	}
	return ""
}

// Real returns where path is on this machine.
func (s System) Real(path string) string {
	if s.Root == "" {
		return path
	}
	return filepath.Join(s.Root, s.Resolve(path))
}

// links is how many symbolic links in one path are followed, as on Linux.
const links = 40

// Resolve returns path with its symbolic links followed inside the system; what
// does not exist stays as it is written.
func (s System) Resolve(path string) string {
	if s.Root == "" {
		if p, err := filepath.EvalSymlinks(path); err == nil {
			return p
		}
	}
	rest := strings.Split(filepath.Clean("/"+path), "/")
	done := "/"
	for n := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			done = filepath.Dir(done)
			continue
		}
		next := filepath.Join(done, name)
		to, err := os.Readlink(filepath.Join(s.Root, next))
		if err != nil || n == links {
			done = next
			continue
		}
		n++
		if filepath.IsAbs(to) {
			done = "/"
		}
		rest = append(strings.Split(to, "/"), rest...)
	}
	return done
}

// Stat describes the file that path leads to.
func (s System) Stat(path string) (os.FileInfo, error) { return os.Stat(s.Real(path)) }

// IsFile reports whether path leads to something other than a directory.
func (s System) IsFile(path string) bool {
	info, err := s.Stat(path)
	return err == nil && !info.IsDir()
}

// IsDir reports whether path leads to a directory.
func (s System) IsDir(path string) bool {
	info, err := s.Stat(path)
	return err == nil && info.IsDir()
}

// ReadFile returns the content of a file, nil when it cannot be read.
func (s System) ReadFile(path string) []byte {
	data, err := os.ReadFile(s.Real(path))
	if err != nil {
		return nil
	}
	return data
}

// Glob returns the names that match pattern, sorted. Only the last element may
// hold wildcards.
func (s System) Glob(pattern string) []string {
	dir, last := filepath.Split(pattern)
	entries, err := os.ReadDir(s.Real(dir))
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if ok, _ := filepath.Match(last, e.Name()); ok {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	return out
}

// LookPath finds a program: a name on the system's PATH, a path as it is. It is
// "" when there is none.
func (s System) LookPath(name string) string {
	if name == "" {
		return ""
	}
	if s.Root == "" && runtime.GOOS == "windows" { // programs are known by their extension
		p, _ := exec.LookPath(name)
		return p
	}
	if strings.ContainsRune(name, '/') {
		if s.Root == "" {
			if abs, err := filepath.Abs(name); err == nil {
				name = abs
			}
		}
		if s.executable(name) {
			return name
		}
		return ""
	}
	for _, dir := range filepath.SplitList(s.Getenv("PATH")) {
		if !filepath.IsAbs(dir) {
			continue // as exec.LookPath refuses it
		}
		if p := filepath.Join(dir, name); s.executable(p) {
			return p
		}
	}
	return ""
}

func (s System) executable(path string) bool {
	info, err := s.Stat(path)
	return err == nil && !info.IsDir() && info.Mode()&0o111 != 0
}

// Output runs a program of the system and returns what it says on stdout. It
// gives up after a few seconds.
func (s System) Output(ctx context.Context, path string, args ...string) ([]byte, error) {
	if s.Run != nil {
		return s.Run(path, args...)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.program(path), args...)
	cmd.Env = s.Vars
	cmd.WaitDelay = time.Second
	return cmd.Output()
}

// program is what to execute for path: links are only followed where the path
// would otherwise lead out of the system, because some programs look at the name
// they were called by.
func (s System) program(path string) string {
	if s.Root == "" {
		return path
	}
	return s.Real(path)
}
