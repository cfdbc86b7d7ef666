package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"dot4fa/internal/fault"
	"dot4fa/internal/progress"
	"dot4fa/internal/shell"
)

const (
	shownErrors = 8  // lines of a failure shown in the error itself
	keptLogs    = 20 // logs of each kind kept beside the newest

	// Errors are looked for in English, and ccache keeps what was compiled in
	// another locale apart.
	locale = "LC_ALL=C.UTF-8"
)

// Configure runs a configure command and returns its log's name. fresh first
// forgets what CMake remembers, for a changed compiler.
func (t Tree) Configure(ctx context.Context, cmd shell.Command, fresh bool, report *progress.Reporter) (log string, err error) {
	if fresh {
		for _, name := range []string{"CMakeCache.txt", "CMakeFiles"} {
			if err := os.RemoveAll(filepath.Join(t.Dir, name)); err != nil {
				return "", fault.New(fault.Environment, "cannot clear the old configuration: %w", err).At("%s", t.Dir).
					Hintf("remove the directory by hand and run the command again")
			}
		}
	}
	f, err := t.openLog("configure", cmd)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var tail bytes.Buffer
	out := io.MultiWriter(f, &tail, lastLine{report, "configure"})
	if err := cmd.Run(ctx, out, locale); err != nil {
		report.Clear()
		return f.Name(), failed(ctx, "configure", err, cmakeErrors(tail.String()), f.Name())
	}
	report.Clear()
	return f.Name(), nil
}

// Compiled says what a build did.
type Compiled struct {
	Units  int `json:"units"`  // object files made
	Linked int `json:"linked"` // libraries and programs made

	// Warnings counts them by file, relative to the source tree where it lies there.
	Warnings map[string]int `json:"warnings"`

	Log  string        `json:"log"`
	Took time.Duration `json:"-"`
}

// Nothing reports whether everything was up to date. That Ninja ran a step says
// little: upstream has one that is always out of date.
func (c Compiled) Nothing() bool { return c.Units == 0 && c.Linked == 0 }

// Compile runs a compile command, showing its progress.
func (t Tree) Compile(ctx context.Context, cmd shell.Command, report *progress.Reporter) (Compiled, error) {
	start := time.Now()
	f, err := t.openLog("build", cmd)
	if err != nil {
		return Compiled{}, err
	}
	defer f.Close()
	counter := report.Count("build")
	w := &watcher{step: counter.Step}
	var tail tailBuffer
	err = cmd.Run(ctx, io.MultiWriter(f, w, &tail), ninjaStatus, locale)
	report.Clear()
	done := Compiled{Units: w.units, Linked: w.linked, Warnings: map[string]int{}, Log: f.Name(), Took: time.Since(start)}
	for file, n := range w.warned {
		if rel, err := filepath.Rel(t.Source, file); err == nil && filepath.IsLocal(rel) {
			file = filepath.ToSlash(rel)
		}
		done.Warnings[file] += n
	}
	if err != nil {
		lines := w.failure
		if lines == nil {
			lines = tail.lines()
		}
		return done, failed(ctx, "build", err, firstErrors(lines, shownErrors), f.Name())
	}
	return done, nil
}

// failed makes the error of a command that did not succeed.
func failed(ctx context.Context, what string, err error, lines []string, log string) error {
	if ctx.Err() != nil {
		return fault.New(fault.Interrupted, "interrupted during %s", what).
			Hintf("the same command goes on where this one stopped; log: %s", log)
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return fault.New(fault.Environment, "%s could not start: %w", what, err).Hintf("dot4fa doctor says which of the tools is missing; log: %s", log)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s failed (%s)", what, exit.ProcessState)
	for _, s := range lines {
		b.WriteString("\n    " + strings.TrimRight(s, " \t"))
	}
	return fault.New(fault.BuildFailed, "%s", b.String()).Hintf("the full log is %s", log)
}

// openLog starts a log file whose first line is the command, and drops the
// oldest ones of its kind.
func (t Tree) openLog(kind string, cmd shell.Command) (*os.File, error) {
	if err := os.MkdirAll(t.Logs, 0o755); err != nil {
		return nil, fault.Write(err, t.Logs)
	}
	old, _ := filepath.Glob(filepath.Join(t.Logs, kind+"-*.log"))
	sort.Strings(old)
	for i := 0; i < len(old)-keptLogs; i++ {
		os.Remove(old[i])
	}
	name := kind + "-" + time.Now().Format("20060102-150405.000") + ".log"
	f, err := os.Create(filepath.Join(t.Logs, name))
	if err != nil {
		return nil, fault.Write(err, t.Logs)
	}
	fmt.Fprintf(f, "$ %s\n", cmd)
	return f, nil
}

// cmakeErrors returns the first "CMake Error" block of a configure's output.
func cmakeErrors(out string) []string {
	lines := strings.Split(out, "\n")
	for i, s := range lines {
		if strings.HasPrefix(s, "CMake Error") {
			var block []string
			for _, s := range lines[i:] {
				if strings.TrimSpace(s) != "" {
					block = append(block, s)
				} else if len(block) > 1 {
					break
				}
			}
			return block[:min(len(block), shownErrors)]
		}
	}
	return firstErrors(lines, shownErrors)
}

// lastLine shows the newest line of output as the status.
type lastLine struct {
	report *progress.Reporter
	label  string
}

func (l lastLine) Write(p []byte) (int, error) {
	lines := strings.Split(strings.TrimRight(string(p), "\n"), "\n")
	l.report.Status("%s  %s", l.label, lines[len(lines)-1])
	return len(p), nil
}

// tailBuffer keeps the end of what is written to it.
type tailBuffer struct{ data []byte }

const tailBytes = 16 << 10

func (t *tailBuffer) Write(p []byte) (int, error) {
	t.data = append(t.data, p...)
	if len(t.data) > 2*tailBytes {
		t.data = append([]byte(nil), t.data[len(t.data)-tailBytes:]...)
	}
	return len(p), nil
}

func (t *tailBuffer) lines() []string { return strings.Split(string(t.data), "\n") }
