package upstream

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// git is a system git that is new enough: 2.30 fetches objects by id from a
// list on standard input.
type git struct{ path string }

// findGit returns the system's git, nil when there is none that will do.
func findGit(ctx context.Context, path string) *git {
	if path == "" {
		path = "git"
	}
	path, err := exec.LookPath(path)
	if err != nil {
		return nil
	}
	g := &git{path: path}
	out, err := g.run(ctx, nil, "version")
	if err != nil {
		return nil
	}
	var major, minor int
	if _, err := fmt.Sscanf(strings.TrimPrefix(string(out), "git version "), "%d.%d", &major, &minor); err != nil {
		return nil
	}
	if major < 2 || major == 2 && minor < 30 {
		return nil
	}
	return g
}

// gitError is a failed git command with what it said.
type gitError struct {
	args   []string
	stderr string
	err    error
}

func (e *gitError) Error() string {
	if msg := e.message(); msg != "" {
		return "git " + e.args[0] + ": " + msg
	}
	return "git " + e.args[0] + ": " + e.err.Error()
}

func (e *gitError) Unwrap() error { return e.err }

// message is the line of git's output that says most.
func (e *gitError) message() string {
	// The first says what happened, the ones after it what followed from that.
	for _, p := range []string{"remote error: ", "fatal: ", "error: "} {
		if i := strings.Index(e.stderr, p); i >= 0 {
			line, _, _ := strings.Cut(strings.TrimPrefix(e.stderr[i:], "fatal: "), "\n")
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// run runs git without a terminal, a prompt or hooks, and returns its standard
// output. On cancellation git and what it started are ended, politely first.
func (g *git) run(ctx context.Context, opt *runOptions, args ...string) ([]byte, error) {
	if opt == nil {
		opt = &runOptions{}
	}
	fixed := []string{
		"-c", "core.hooksPath=" + os.DevNull, "-c", "gc.auto=0", "-c", "maintenance.auto=false",
		"-c", "protocol.version=2", "-c", "fetch.writeCommitGraph=false", "-c", "core.fsmonitor=false",
		// A connection that says nothing for a minute is a dead one.
		"-c", "http.lowSpeedLimit=1", "-c", "http.lowSpeedTime=60",
	}
	for _, kv := range opt.config {
		fixed = append(fixed, "-c", kv)
	}
	if opt.dir != "" {
		fixed = append(fixed, "--git-dir="+opt.dir)
	}
	cmd := exec.CommandContext(ctx, g.path, append(fixed, args...)...)
	cmd.Env = gitEnv()
	cmd.Stdin = opt.stdin
	var out bytes.Buffer
	cmd.Stdout = &out
	tail := &tailWriter{status: opt.status}
	cmd.Stderr = tail
	ownGroup(cmd)
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, &gitError{args, tail.text(), err}
	}
	return out.Bytes(), nil
}

type runOptions struct {
	dir    string   // git directory
	config []string // name=value
	stdin  io.Reader
	status func(string) // receives progress lines
}

// gitEnv is the environment for git: no variable that points it at another
// repository, no question on a terminal, messages in English.
func gitEnv() []string {
	var env []string
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		switch name {
		case "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
			"GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_SHALLOW_FILE", "GIT_TERMINAL_PROMPT", "LC_ALL", "LANGUAGE", "GIT_TRACE",
			"GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT":
			continue
		}
		env = append(env, kv)
	}
	env = append(env, "GIT_TERMINAL_PROMPT=0", "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0")
	if os.Getenv("GIT_SSH_COMMAND") == "" && os.Getenv("GIT_SSH") == "" {
		env = append(env, "GIT_SSH_COMMAND=ssh -oBatchMode=yes")
	}
	return env
}

// tailWriter keeps the end of git's messages and passes progress on.
type tailWriter struct {
	status func(string)
	line   []byte
	kept   []byte
}

var reProgress = regexp.MustCompile(`^(?:remote: )?([A-Z][A-Za-z ]+): +(\d+)%`)

func (t *tailWriter) Write(p []byte) (int, error) {
	for _, c := range p {
		if c != '\n' && c != '\r' {
			t.line = append(t.line, c)
			continue
		}
		if m := reProgress.FindSubmatch(t.line); m != nil {
			if t.status != nil {
				t.status(string(m[1]) + " " + string(m[2]) + "%")
			}
		} else if len(t.line) > 0 {
			t.kept = append(append(t.kept, t.line...), '\n')
			if over := len(t.kept) - 16<<10; over > 0 {
				t.kept = t.kept[over:]
			}
		}
		t.line = t.line[:0]
	}
	return len(p), nil
}

func (t *tailWriter) text() string { return string(append(t.kept, t.line...)) }

// lsRemote lists the refs of a remote that match patterns.
func (g *git) lsRemote(ctx context.Context, url string, patterns ...string) ([]refLine, error) {
	out, err := g.run(ctx, nil, append([]string{"ls-remote", "--quiet", "--", url}, patterns...)...)
	if err != nil {
		return nil, err
	}
	var refs []refLine
	sc := bufio.NewScanner(bytes.NewReader(out))
	for sc.Scan() {
		if id, name, ok := strings.Cut(sc.Text(), "\t"); ok {
			refs = append(refs, refLine{name, id})
		}
	}
	return refs, sc.Err()
}

// refLine is a ref's name and the object it points at.
type refLine struct{ name, id string }

// releaseNumber returns the number in a release tag such as b10573.
func releaseNumber(tag string) (int, bool) {
	n, err := strconv.Atoi(strings.TrimPrefix(tag, "b"))
	return n, err == nil && strings.HasPrefix(tag, "b")
}
