package bench

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dot4fa/internal/fault"
	"dot4fa/internal/progress"
	"dot4fa/internal/recipe"
	"dot4fa/internal/shell"
)

// Bench is a built tree to measure, and how.
type Bench struct {
	Bin     string // where its programs are
	Recipe  string
	Backend recipe.Backend
	Kernel  recipe.Kernel
	Device  string            // ggml's name of the device; empty for the backend's first
	Commit  string            // of the dot4fa that made the tree
	Env     map[string]string // the recipe's; what the environment says already stays

	Repeat int           // repetitions
	Least  time.Duration // least time of a case in a repetition
	Within time.Duration // begin nothing new after this long; 0 for no limit
	Report *progress.Reporter

	began time.Time
}

// Plan is what to measure.
type Plan struct {
	Suites []string // attention, model
	Shapes Selection
	Model  ModelRun
}

// Commands are what a plan runs in its first repetition, each runnable as it stands.
func (b *Bench) Commands(p Plan) []shell.Command {
	if b.Device == "" {
		b.Device = defaultDevice(b.Backend)
	}
	var cmds []shell.Command
	if slices.Contains(p.Suites, "attention") {
		cmds = append(cmds, b.attentionCommands(p.Shapes)...)
	}
	if slices.Contains(p.Suites, "model") {
		cmds = append(cmds, b.modelCommands(p.Model)...)
	}
	return cmds
}

// Run measures. A part that gives no figures is listed in the result; it is an
// error when nothing of a suite does.
func (b *Bench) Run(ctx context.Context, p Plan) (*Result, error) {
	programs := []string{"test-backend-ops"}
	if slices.Contains(p.Suites, "model") {
		programs = append(programs, "llama-bench")
	}
	name, err := b.Start(ctx, programs...)
	if err != nil {
		return nil, err
	}
	r := &Result{Device: name, Backend: b.Device, Commit: b.Commit, Recipe: b.Recipe, When: b.began.UTC().Truncate(time.Second), Repeat: b.Repeat,
		Peak: PeakOf(name), Rows: []Row{}}
	if slices.Contains(p.Suites, "attention") {
		if err := b.attention(ctx, p.Shapes, r); err != nil {
			return nil, err
		}
	}
	if slices.Contains(p.Suites, "model") {
		if err := b.endToEnd(ctx, p.Model, r); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Start looks whether the programs are there, and returns the name of the device.
func (b *Bench) Start(ctx context.Context, programs ...string) (string, error) {
	b.began = time.Now()
	if err := b.check(programs...); err != nil {
		return "", err
	}
	return b.findDevice(ctx)
}

// late reports whether the time given is over.
func (b *Bench) late() bool { return b.Within > 0 && time.Since(b.began) > b.Within }

func (b *Bench) program(name string) string { return filepath.Join(b.Bin, name) }

// check says what is missing before anything is run.
func (b *Bench) check(programs ...string) error {
	for _, name := range programs {
		info, err := os.Stat(b.program(name))
		if err != nil {
			return fault.New(fault.Environment, "there is no %s in the build", name).At("%s", b.Bin).
				Hintf("build it first: dot4fa build --recipe %s; --work names another tree", b.Recipe)
		}
		if info.IsDir() || info.Mode()&0o111 == 0 {
			return fault.New(fault.Environment, "%s is not a program", name).At("%s", b.Bin).
				Hintf("build it again: dot4fa build --recipe %s", b.Recipe)
		}
	}
	return nil
}

func (b *Bench) command(name string, env []string, args ...string) shell.Command {
	var own []string
	for _, key := range slices.Sorted(maps.Keys(b.Env)) {
		if _, set := os.LookupEnv(key); !set {
			own = append(own, key+"="+b.Env[key])
		}
	}
	return shell.Command{Env: append(own, env...), Path: b.program(name), Args: args}
}

// lookup is the environment that the programs see.
func (b *Bench) lookup(key string) (string, bool) {
	if v, set := os.LookupEnv(key); set {
		return v, true
	}
	v, set := b.Env[key]
	return v, set
}

// patience is how long after the time given a program may still run: one that
// hangs must not cost the figures that are there.
var patience = 30 * time.Second

var errLate = fault.New(fault.Failure, "stopped: it ran on after the time given was over").Hintf("give it more with --within, or fewer shapes")

// output runs a program of the build and returns its stdout.
func (b *Bench) output(ctx context.Context, name string, env []string, args ...string) (string, error) {
	if b.Within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, b.began.Add(b.Within+patience), errLate)
		defer cancel()
	}
	var out, log bytes.Buffer
	cmd := b.command(name, env, args...)
	err := cmd.RunSplit(ctx, &out, &log)
	if err == nil {
		return out.String(), nil
	}
	if ctx.Err() != nil {
		return "", err
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return "", fault.New(fault.Environment, "%s could not start: %w", name, err).At("%s", b.program(name)).
			Hintf("build it again: dot4fa build --recipe %s", b.Recipe)
	}
	why := lastLines(log.String(), 3)
	if why == "" {
		why = lastLines(out.String(), 3)
	}
	if why != "" {
		why = ": " + why
	}
	return out.String(), fault.New(fault.Failure, "%s ended with %s%s", name, exit.ProcessState, why).Hintf("the command: %s", cmd)
}

// lastLines are the last n lines of text that say something, on one line.
func lastLines(text string, n int) string {
	var lines []string
	for _, l := range strings.Split(text, "\n") {
		if l = strings.TrimSpace(l); l != "" {
			lines = append(lines, l)
		}
	}
	return strings.Join(lines[max(0, len(lines)-n):], " | ")
}
