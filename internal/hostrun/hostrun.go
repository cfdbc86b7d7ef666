// Package hostrun runs the project's GPU kernels on the CPU: real kernel text,
// compiled by clang++ under ASan and UBSan, each thread of a block a fiber.
// The C++ side is in internal/standin (include/host/hostrun.h says what it finds).
package hostrun

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sync/errgroup"

	"dot4fa/internal/fault"
	"dot4fa/internal/machine"
	"dot4fa/internal/shell"
	"dot4fa/internal/standin"
	"dot4fa/internal/toolchain"
)

// least is the first clang whose sanitizers know what the harness asks of them.
const least = 16

// FindCompiler returns a clang++ whose AddressSanitizer runtime is installed:
// $CXX when it is one, else the newest on PATH.
func FindCompiler(ctx context.Context) (string, error) {
	var names []string
	if cxx := os.Getenv("CXX"); strings.Contains(filepath.Base(cxx), "clang") {
		names = append(names, cxx)
	}
	for _, c := range toolchain.Clangs(ctx, machine.Host(), least) {
		names = append(names, c.Path)
	}
	found := ""
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		found = path
		for _, lib := range []string{"libclang_rt.asan-" + arch() + ".a", "libclang_rt.asan.a"} {
			out, err := shell.Command{Path: path, Args: []string{"-print-file-name=" + lib}}.Output(ctx)
			if err == nil && filepath.IsAbs(strings.TrimSpace(string(out))) {
				return path, nil
			}
		}
	}
	if found != "" {
		return "", fault.New(fault.Environment, "%s has no AddressSanitizer runtime", found).
			Hintf("install the compiler-rt package of that version (Debian: libclang-rt-19-dev)")
	}
	return "", fault.New(fault.Environment, "no clang++ (%d or newer) found", least).
		Hintf("install clang and its compiler-rt (Debian: clang-19 libclang-rt-19-dev)")
}

func arch() string {
	if runtime.GOARCH == "arm64" {
		return "aarch64"
	}
	return "x86_64"
}

// Options say what to compile.
type Options struct {
	Compiler string   // from FindCompiler
	Dir      string   // where headers, objects and the program go; made when missing
	Name     string   // file name of the program
	Sources  []string // C++ files; one of them defines HOSTRUN_MAIN
	Plain    []string // C++ files compiled for speed and without sanitizers (references)
	Include  []string // include directories, before the stand-ins'
	Defines  []string // as in -D
	Traced   bool     // watch shared memory for races and uninitialised reads
	Bare     bool     // no sanitizers and no optimisation: for programs whose kernels run elsewhere
	Jobs     int      // compilers at once; 0 means the number of CPUs
}

// Flags every unit is compiled with. Contraction is off so that bits do not
// depend on the host; flexible arrays off so that UBSan checks every bound.
var common = []string{
	"-std=c++17", "-g1", "-ffp-contract=off", "-fstrict-flex-arrays=3",
	"-Wall", "-Wextra", "-Wno-unused-function", "-Wno-unused-parameter", "-Wno-unknown-pragmas",
	// Kernels unroll for a GPU; under sanitizers that costs minutes of compile time and gains nothing.
	"-mllvm", "-pragma-unroll-threshold=1", "-Wno-pass-failed",
}

var sanitized = []string{
	"-O1", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
	"-fsanitize-address-use-after-return=never",
}

// The runtime itself and the standard library are not watched.
const ignored = "fun:*7hostrun*\nfun:_ZNSt*\nfun:_ZNKSt*\nfun:_ZSt*\n"

// Program is a compiled host-run program.
type Program struct {
	Path       string
	Traced     bool
	symbolizer string // llvm-symbolizer of the compiler; empty when it has none
	away       func(*Away) error
}

// Compile builds a host-run program. A compiler error is a fault with code
// BuildFailed whose message ends with the compiler's own text.
func Compile(ctx context.Context, o Options) (*Program, error) {
	headers := filepath.Join(o.Dir, "standin")
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, err
	}
	if err := standin.Write(headers); err != nil {
		return nil, err
	}
	ignore := filepath.Join(o.Dir, "untraced.txt")
	if err := os.WriteFile(ignore, []byte(ignored), 0o644); err != nil {
		return nil, err
	}
	flags := append([]string{}, common...)
	if hasF16C() {
		flags = append(flags, "-mf16c")
	}
	for _, dir := range append(append([]string{}, o.Include...), filepath.Join(headers, standin.Ggml), filepath.Join(headers, standin.Host)) {
		flags = append(flags, "-I"+dir)
	}
	for _, d := range o.Defines {
		flags = append(flags, "-D"+d)
	}
	checked := append(append([]string{}, flags...), sanitized...)
	link := []string{"-fsanitize=address,undefined"}
	if o.Bare {
		checked, link = append(append([]string{}, flags...), "-O0", "-fno-pie"), []string{"-no-pie"}
	}
	if o.Traced {
		// Promotion out of loops would make every lane load what one lane reads: a race that is not in the text.
		checked = append(checked, "-DHOSTRUN_TRACED", "-fsanitize-coverage=func,trace-loads,trace-stores", "-fsanitize-coverage-ignorelist="+ignore,
			"-mllvm", "-disable-licm-promotion")
		link = append(link, "-Wl,--wrap=__asan_memcpy")
	}
	jobs := o.Jobs
	if jobs == 0 {
		jobs = runtime.NumCPU()
	}
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(jobs)
	program := filepath.Join(o.Dir, o.Name)
	objects := make([]string, 0, len(o.Sources)+len(o.Plain))
	compile := func(source string, flags ...string) {
		object := fmt.Sprintf("%s.%d.o", program, len(objects))
		objects = append(objects, object)
		group.Go(func() error {
			return toolchain.Compile(gctx, o.Compiler, append(append([]string{}, flags...), "-c", source, "-o", object)...)
		})
	}
	for _, s := range o.Sources {
		compile(s, checked...)
	}
	for _, s := range o.Plain {
		compile(s, append(append([]string{}, flags...), "-O2")...)
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if err := toolchain.Compile(ctx, o.Compiler, append(append(link, objects...), "-o", program)...); err != nil {
		return nil, err
	}
	p := &Program{Path: program, Traced: o.Traced}
	if out, err := (shell.Command{Path: o.Compiler, Args: []string{"-print-prog-name=llvm-symbolizer"}}).Output(ctx); err == nil && filepath.IsAbs(strings.TrimSpace(string(out))) {
		p.symbolizer = strings.TrimSpace(string(out))
	}
	return p, nil
}

func hasF16C() bool {
	if runtime.GOARCH != "amd64" {
		return false
	}
	info, err := os.ReadFile("/proc/cpuinfo")
	return err == nil && bytes.Contains(info, []byte(" f16c"))
}

// Exit statuses of a host-run program besides its own.
const (
	Diverged = 86 // a message "hostrun: …": divergence, race, uninitialised read
	Memory   = 87 // AddressSanitizer or UndefinedBehaviorSanitizer stopped it
)

// Result is how a run ended.
type Result struct {
	Status int // the program's exit status, Diverged or Memory
	Stdout []byte
	Stderr string
}

// Run runs the program with the given arguments and standard input.
// A program that ends with any exit status is a Result, not an error.
func (p *Program) Run(ctx context.Context, stdin []byte, args ...string) (*Result, error) {
	cmd := exec.CommandContext(ctx, p.Path, args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &out, &errs
	cmd.Env = append(os.Environ(),
		fmt.Sprintf("ASAN_OPTIONS=exitcode=%d:detect_leaks=0:abort_on_error=0", Memory),
		fmt.Sprintf("UBSAN_OPTIONS=exitcode=%d:print_stacktrace=1", Memory))
	if p.symbolizer != "" {
		cmd.Env = append(cmd.Env, "ASAN_SYMBOLIZER_PATH="+p.symbolizer)
	}
	err := p.run(cmd)
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return &Result{Status: exit.ExitCode(), Stdout: out.Bytes(), Stderr: errs.String()}, nil
	case err != nil:
		return nil, fault.New(fault.Failure, "%s: %w\n%s", filepath.Base(p.Path), err, errs.String()).
			Hintf("try another compiler: $CXX names a clang++")
	}
	return &Result{Stdout: out.Bytes(), Stderr: errs.String()}, nil
}

// run runs the command, its launches through the program's handler when it has one.
func (p *Program) run(cmd *exec.Cmd) error {
	if p.away == nil {
		return cmd.Run()
	}
	pipes, err := openAway(p.Path, p.away)
	if err != nil {
		return err
	}
	cmd.ExtraFiles = []*os.File{pipes.replies, pipes.requests} // 3 and 4
	err = cmd.Start()
	pipes.started()
	if err == nil {
		err = cmd.Wait()
	}
	<-pipes.done
	return err
}
