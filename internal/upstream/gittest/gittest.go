// Package gittest makes small git repositories for tests, with the system's git.
package gittest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Repo is a repository with a work tree in a temporary directory.
type Repo struct {
	T   *testing.T
	Dir string
	n   int // commits made: each is a day younger than the one before
}

// New makes an empty repository, and skips the test where there is no git.
func New(t *testing.T) *Repo {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	r := &Repo{T: t, Dir: filepath.Join(t.TempDir(), "up stream é")}
	if err := os.Mkdir(r.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r.Git("init", "-q", "-b", "master")
	for _, kv := range []string{"user.name=t", "user.email=t@example.org", "commit.gpgsign=false", "tag.gpgsign=false",
		"uploadpack.allowFilter=true", "uploadpack.allowAnySHA1InWant=true", "core.autocrlf=false"} {
		k, v, _ := strings.Cut(kv, "=")
		r.Git("config", k, v)
	}
	return r
}

// Env is the environment the repository's git runs in: nobody's configuration.
func Env() []string {
	return append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C")
}

// Git runs git in the repository and returns what it prints, trimmed.
func (r *Repo) Git(args ...string) string {
	r.T.Helper()
	return r.In("", args...)
}

// In is Git with a standard input.
func (r *Repo) In(stdin string, args ...string) string {
	r.T.Helper()
	cmd := exec.Command("git", append([]string{"-C", r.Dir}, args...)...)
	date := "2026-01-01T00:00:00Z"
	if r.n > 0 {
		date = "2026-01-" + string(rune('0'+r.n/10)) + string(rune('0'+r.n%10)) + "T00:00:00Z"
	}
	cmd.Env = append(Env(), "GIT_AUTHOR_DATE="+date, "GIT_COMMITTER_DATE="+date)
	cmd.Stdin = strings.NewReader(stdin)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		r.T.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

// Write puts files into the work tree; a name that ends in "+x" is executable,
// content that starts with "->" is the target of a symbolic link.
func (r *Repo) Write(files map[string]string) {
	r.T.Helper()
	for name, content := range files {
		name, exec := strings.CutSuffix(name, "+x")
		p := filepath.Join(r.Dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			r.T.Fatal(err)
		}
		os.Remove(p)
		if to, link := strings.CutPrefix(content, "->"); link {
			if err := os.Symlink(to, p); err != nil {
				r.T.Fatal(err)
			}
			continue
		}
		mode := os.FileMode(0o644)
		if exec {
			mode = 0o755
		}
		if err := os.WriteFile(p, []byte(content), mode); err != nil {
			r.T.Fatal(err)
		}
	}
}

// Commit commits the work tree with files added and returns the commit's id.
func (r *Repo) Commit(subject string, files map[string]string) string {
	r.T.Helper()
	r.n++
	r.Write(files)
	r.Git("add", "-A")
	r.Git("commit", "-q", "--allow-empty", "-m", subject)
	return r.Git("rev-parse", "HEAD")
}

// Pack puts all objects into one pack, deltas included.
func (r *Repo) Pack() { r.Git("repack", "-adfq", "--depth=50", "--window=50") }
