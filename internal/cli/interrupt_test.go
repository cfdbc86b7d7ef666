package cli_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"dot4fa/internal/cli"
)

// Ctrl-C during a build: exit code 130, the compiler gone, and the same command
// finishes the work.
func TestInterrupt(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for processes to end")
	}
	work := layOut(t)
	slow := filepath.Join(work, "slow-build")
	if err := os.WriteFile(slow, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		waitFor(t, filepath.Join(work, "copy/work/cpu/.dot4fa/log"), "build-")
		cancel()
	}()
	start := time.Now()
	code, _, stderr := dot4fa(ctx, "build", "--recipe", "cpu")
	if code != 130 || !strings.Contains(stderr, "error: interrupted during build") || !strings.Contains(stderr, "hint: the same command goes on") {
		t.Fatalf("exit code %d, stderr:\n%s", code, stderr)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("it took %v to stop", took)
	}
	if err := os.Remove(slow); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := dot4fa(context.Background(), "build", "--recipe", "cpu")
	if code != 0 || !strings.Contains(stdout, "llama-server") || strings.Contains(stderr, "fetch ") || strings.Contains(stderr, "configure ") {
		t.Errorf("the second run: exit code %d, stdout %q, stderr:\n%s", code, stdout, stderr)
	}
}

// Two runs on one work tree: the second says that it waits, and then does.
func TestSecondRunWaits(t *testing.T) {
	work := layOut(t)
	slow := filepath.Join(work, "slow-build")
	if err := os.WriteFile(slow, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	first := make(chan struct{})
	go func() {
		dot4fa(ctx, "build", "--recipe", "cpu")
		close(first)
	}()
	waitFor(t, filepath.Join(work, "copy/work/cpu/.dot4fa/log"), "build-")
	second := make(chan string)
	go func() {
		code, _, stderr := dot4fa(context.Background(), "apply", "--recipe", "cpu")
		if code != 0 {
			stderr = "failed: " + stderr
		}
		second <- stderr
	}()
	select {
	case <-second:
		t.Error("the second run did not wait for the first")
	case <-time.After(300 * time.Millisecond):
		cancel()
		if stderr := <-second; !strings.Contains(stderr, "another run is at work in ") || strings.HasPrefix(stderr, "failed") {
			t.Errorf("the second run said:\n%s", stderr)
		}
	}
	cancel()
	<-first
}

// layOut makes the scripts' fixture and runs the test in its working copy.
func layOut(t *testing.T) (work string) {
	t.Helper()
	work = t.TempDir()
	fixture, err := txtar.ParseFile("testdata/fixture.txtar")
	if err != nil {
		t.Fatal(err)
	}
	if err := lay(work, fixture); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Join(work, "bin"))
	t.Setenv("DOT4FA_CACHE", filepath.Join(work, "cache"))
	t.Setenv("DOT4FA_UPSTREAM", filepath.Join(work, "up"))
	t.Setenv("CC", "")
	t.Setenv("CXX", "")
	t.Chdir(filepath.Join(work, "copy"))
	return work
}

func dot4fa(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = cli.Run(ctx, os.DirFS(os.Getenv(rootVar)), cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}, args)
	return code, out.String(), errs.String()
}

// waitFor waits until dir holds a file whose name begins with prefix.
func waitFor(t *testing.T, dir, prefix string) {
	t.Helper()
	for range 200 {
		if found, _ := filepath.Glob(filepath.Join(dir, prefix+"*")); found != nil {
			time.Sleep(100 * time.Millisecond) // the program is starting
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
	t.Errorf("no %s* appeared in %s", prefix, dir)
}

// timeout(1) sends its signal twice at once: to the process, then to its group.
// That is one interruption, after which nothing is left behind.
func TestSignalTwice(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no such signals")
	}
	program, err := exec.LookPath("dot4fa") // of testscript: this binary
	if err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	var stderr bytes.Buffer
	cmd := exec.Command(program, "bench", "--make-model", filepath.Join(work, "m.gguf"), "--layers-like", "llama3-70b", "--layers", "1024")
	cmd.Stderr = &stderr
	cmd.Env = append(os.Environ(), "TMPDIR="+work) // where the file is until it is whole
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, work, ".m.gguf")
	ended := make(chan error)
	go func() { ended <- cmd.Wait() }()
	var why error
	for waiting := true; waiting; {
		_ = cmd.Process.Signal(syscall.SIGTERM) // until it has ended
		select {
		case why = <-ended:
			waiting = false
		case <-time.After(100 * time.Microsecond):
		}
	}
	if cmd.ProcessState.ExitCode() != 130 || !strings.Contains(stderr.String(), "error: interrupted") {
		t.Errorf("%v, stderr:\n%s", why, stderr.String())
	}
	if left, _ := os.ReadDir(work); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
