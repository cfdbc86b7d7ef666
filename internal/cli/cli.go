// Package cli is the dot4fa command.
//
// stdout carries the result and nothing else: a table, JSON, a command to run.
// stderr carries progress, remarks and errors. An error is one line,
// "dot4fa: error: …", lower case and without a full stop, followed where there
// is something to do by "dot4fa: hint: …". The exit codes are those of package
// fault.
//
// The commands hold no logic: each reads its flags, calls one function of the
// package that does the work, and prints what comes back.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"golang.org/x/term"

	"dot4fa/internal/fault"
	"dot4fa/internal/machine"
	"dot4fa/internal/pipeline"
	"dot4fa/internal/progress"
	"dot4fa/internal/recipe"
	"dot4fa/internal/toolchain"
)

// Streams are the command's connections to the outside.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// app is what every command shares.
type app struct {
	Streams
	embedded fs.FS
	report   *progress.Reporter
	color    bool // the result may be coloured

	recipe   string
	upstream string
	work     string
	json     bool
	dryRun   bool

	rocm       string   // --toolchain
	gpuTargets []string // --gpu-targets
}

// Main runs dot4fa with the process's arguments and streams and returns the
// exit code. embedded holds kernels/, patches/, recipes/ and templates/.
func Main(embedded fs.FS) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second Ctrl-C ends the process at once. What comes with the first is no
	// second one: timeout(1) sends a signal to the process and then to its group.
	context.AfterFunc(ctx, func() {
		time.Sleep(time.Second)
		stop()
	})
	return Run(ctx, embedded, Streams{os.Stdin, os.Stdout, os.Stderr}, os.Args[1:])
}

// Run runs one dot4fa command and returns its exit code.
func Run(ctx context.Context, embedded fs.FS, s Streams, args []string) int {
	out := &sticky{w: s.Out}
	a := &app{
		Streams:  Streams{s.In, out, s.Err},
		embedded: embedded,
		report:   progress.New(s.Err, columns(s.Err)),
		color:    columns(s.Out) != nil && os.Getenv("NO_COLOR") == "",
	}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(s.In)
	root.SetOut(out)
	root.SetErr(s.Err)
	err := root.ExecuteContext(ctx)
	a.report.Clear()
	if out.err != nil && (err == nil || errors.Is(err, out.err)) {
		err = fault.New(fault.Failure, "cannot write the result: %w", out.err).
			Hintf("stdout takes no more: check the program or the disk that it goes to")
	}
	if err == nil {
		return fault.OK
	}
	if ctx.Err() != nil && fault.Code(err) != fault.Interrupted {
		err = fault.New(fault.Interrupted, "interrupted").Hintf("the same command goes on where this one stopped")
	}
	fmt.Fprintf(s.Err, "dot4fa: error: %s\n", visible(strings.TrimRight(err.Error(), "\n")))
	if hint := fault.Hint(err); hint != "" {
		fmt.Fprintf(s.Err, "dot4fa: hint: %s\n", visible(hint))
	}
	return fault.Code(err)
}

// visible spells out the characters that would act on a terminal, as they come
// from the name of a file; lines stay lines.
func visible(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// sticky remembers that something could not be written.
type sticky struct {
	w   io.Writer
	err error
}

func (s *sticky) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	var n int
	n, s.err = s.w.Write(p)
	return n, s.err
}

// columns returns a function for the width of w, nil when w is no terminal.
func columns(w io.Writer) func() int {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return func() int {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			return n
		}
		return 80
	}
}

// note prints a remark on stderr.
func (a *app) note(format string, args ...any) { a.report.Say("dot4fa: note: "+format, args...) }

// assets returns the files of the working copy that the command runs in, or
// else the embedded ones.
func (a *app) assets() (fs.FS, string) {
	dir, err := os.Getwd()
	if err != nil {
		return a.embedded, ""
	}
	if root := pipeline.WorkingCopy(dir); root != "" {
		return os.DirFS(root), root
	}
	return a.embedded, ""
}

// loadRecipe loads the recipe that --recipe names.
func (a *app) loadRecipe() (*recipe.Recipe, error) {
	assets, _ := a.assets()
	r, err := recipe.Load(assets, a.recipe)
	if err == nil && a.gpuTargets != nil {
		err = r.SetGPUTargets(a.gpuTargets)
	}
	return r, err
}

// machine is where tools are looked for. A toolchain that was named comes
// before everything else, whatever the environment says.
func (a *app) machine() machine.System { return toolchain.Use(machine.Host(), a.rocm) }

// run returns the pipeline that the global flags describe.
func (a *app) run() (*pipeline.Run, error) {
	r, err := a.loadRecipe()
	if err != nil {
		return nil, err
	}
	assets, copyRoot := a.assets()
	work := a.work
	if work == "" {
		work = filepath.Join("work", r.Name)
	}
	abs, err := filepath.Abs(work)
	if err != nil {
		return nil, fault.Here(err)
	}
	location := a.upstream
	if location == "" {
		location = os.Getenv("DOT4FA_UPSTREAM")
	}
	return pipeline.New(pipeline.Options{
		Recipe:       r,
		Assets:       assets,
		Work:         abs,
		Upstream:     location,
		Flags:        globalFlags(a, abs),
		Copy:         copyRoot,
		DryRun:       a.dryRun,
		Out:          a.Out,
		Report:       a.report,
		Machine:      a.machine(),
		TargetsGiven: a.gpuTargets != nil,
		Version:      version(),
	}), nil
}

// globalFlags are the flags that a printed dot4fa command repeats so that it
// does the same from any directory.
func globalFlags(a *app, work string) []string {
	name := a.recipe
	if strings.ContainsAny(name, `/\`) || strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml") {
		if abs, err := filepath.Abs(name); err == nil {
			name = abs
		}
	}
	flags := []string{"--recipe", name, "--work", work}
	if a.upstream != "" {
		up := a.upstream
		if _, err := os.Stat(up); err == nil {
			if abs, err := filepath.Abs(up); err == nil {
				up = abs
			}
		}
		flags = append(flags, "--upstream", up)
	}
	if a.rocm != "" {
		if abs, err := filepath.Abs(a.rocm); err == nil {
			flags = append(flags, "--toolchain", abs)
		}
	}
	if a.gpuTargets != nil {
		flags = append(flags, "--gpu-targets", strings.Join(a.gpuTargets, ","))
	}
	return flags
}
