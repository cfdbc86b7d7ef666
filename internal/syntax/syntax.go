// Package syntax asks compilers whether the edited units of an upstream commit
// still compile, without a work tree, a configured build or any code made: an
// edit can find its place and still use a name that is not there.
//
// Units for the CPU go to the host compiler. Device units go to a clang that
// generates code for gfx1100: with ROCm all of them on upstream's own headers,
// without it those kernels that compile on dot4fa's stand-in headers; the rest
// is reported as not checked.
package syntax

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"dot4fa/internal/fault"
	"dot4fa/internal/isa"
	"dot4fa/internal/series"
	"dot4fa/internal/standin"
)

// Status is what a compiler said of a unit.
type Status string

// The answers.
const (
	OK         Status = "ok"
	Failed     Status = "failed"
	NotChecked Status = "not checked" // no compiler here can; Detail says why
)

// Unit is one source file that the series edits or adds.
type Unit struct {
	File    string   `json:"file"`
	Device  bool     `json:"device,omitempty"`
	Status  Status   `json:"status"`
	Detail  string   `json:"detail,omitempty"` // the compiler's errors
	Edits   []string `json:"edits,omitempty"`  // made in the file
	Seconds float64  `json:"seconds,omitempty"`
}

// Tree is a commit with the series made in it.
type Tree struct {
	Paths []string                          // of upstream's files
	Read  func(path string) ([]byte, error) // upstream's content
	Plan  *series.Plan
	Added []series.Rendered
}

// Tools are the compilers.
type Tools struct {
	CC, CXX string
	Device  *isa.Compiler // nil: there is none
}

// Check compiles every unit of t, jobs at a time. The order is that of the paths.
func Check(ctx context.Context, t Tree, tools Tools, jobs int) ([]Unit, error) {
	dir, err := os.MkdirTemp("", "dot4fa-syntax-*")
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot make a temporary directory: %w", err)
	}
	defer os.RemoveAll(dir)
	units, err := t.lay(dir)
	if err != nil {
		return nil, err
	}
	headers := filepath.Join(dir, ".standin")
	if err := standin.Write(headers); err != nil {
		return nil, fault.New(fault.Environment, "cannot write the stand-in headers: %w", err)
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(max(jobs, 1))
	for i := range units {
		g.Go(func() error {
			start := time.Now()
			err := units[i].compile(gctx, dir, headers, tools)
			units[i].Seconds = float64(time.Since(start).Milliseconds()) / 1000
			return err
		})
	}
	return units, g.Wait()
}

// lay writes the edited and added files and all headers below dir, and returns the units.
func (t *Tree) lay(dir string) ([]Unit, error) {
	put := func(name string, data []byte) error {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return fault.New(fault.Environment, "cannot write the files to compile: %w", err)
		}
		if err := os.WriteFile(to, data, 0o666); err != nil {
			return fault.New(fault.Environment, "cannot write the files to compile: %w", err)
		}
		return nil
	}
	var units []Unit
	done := map[string]bool{}
	edits := map[string][]string{}
	for _, r := range t.Plan.Results {
		if r.Status == series.OK {
			edits[r.File] = append(edits[r.File], r.ID)
		}
	}
	take := func(name string, data []byte) error {
		done[name] = true
		if isUnit(name) {
			units = append(units, Unit{File: name, Device: path.Ext(name) == ".cu", Edits: edits[name]})
		}
		return put(name, data)
	}
	for _, f := range t.Plan.Files {
		if err := take(f.Path, f.Post); err != nil {
			return nil, err
		}
	}
	for _, f := range t.Added {
		if err := take(f.Path, f.Data); err != nil {
			return nil, err
		}
		if path.Base(path.Dir(f.Path)) == "ggml-cuda" {
			if err := put(path.Join(deviceDir, path.Base(f.Path)), f.Data); err != nil {
				return nil, err
			}
		}
	}
	for _, name := range t.Paths {
		if done[name] || !isHeader(name) {
			continue
		}
		data, err := t.Read(name)
		if err != nil {
			return nil, err
		}
		if err := put(name, data); err != nil {
			return nil, err
		}
	}
	sort.Slice(units, func(i, j int) bool { return units[i].File < units[j].File })
	return units, nil
}

func isUnit(name string) bool {
	switch path.Ext(name) {
	case ".c", ".cpp", ".cu":
		return true
	}
	return false
}

func isHeader(name string) bool {
	switch path.Ext(name) {
	case ".h", ".hpp", ".cuh", ".inc", ".inl":
		return true
	}
	return false
}

func (u *Unit) compile(ctx context.Context, dir, headers string, tools Tools) error {
	var cmd *exec.Cmd
	if u.Device {
		args, why := deviceArgs(u.File, headers, tools.Device)
		if why != "" {
			u.Status, u.Detail = NotChecked, why
			return nil
		}
		cmd = exec.CommandContext(ctx, tools.Device.Path, args...)
	} else {
		compiler, std := tools.CXX, "-std=gnu++17"
		if path.Ext(u.File) == ".c" {
			compiler, std = tools.CC, "-std=gnu11"
		}
		args := append([]string{std}, hostArgs...)
		cmd = exec.CommandContext(ctx, compiler, append(args, u.File)...)
	}
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil:
		u.Status = OK
	case errors.As(err, &exit):
		u.Status, u.Detail = Failed, firstErrors(out.String(), 4)
	default:
		return fault.New(fault.Environment, "cannot run the compiler: %w", err).At("%s", cmd.Path)
	}
	return nil
}

// hostArgs are what the units need of upstream's build: its include
// directories and the names it defines.
var hostArgs = []string{"-fsyntax-only", "-w", "-DGGML_USE_CPU", "-D_GNU_SOURCE", "-DGGML_SCHED_MAX_COPIES=4",
	`-DGGML_VERSION="0"`, `-DGGML_COMMIT="0"`, "-Iinclude", "-Isrc", "-Icommon", // ggml-cpu has a common.h too
	"-Iggml/include", "-Iggml/src", "-Iggml/src/ggml-cpu", "-Ivendor", "-Itests"}

// deviceDir holds the added device files apart from upstream's: beside its
// common.cuh they would not find the stand-in for it.
const deviceDir = ".device"

// deviceArgs compile a device unit, or the reason why it cannot be done here.
func deviceArgs(file, headers string, c *isa.Compiler) (args []string, why string) {
	if c == nil {
		return nil, "no clang for AMD GPUs"
	}
	args = []string{"-x", "hip", "--offload-device-only", "--offload-arch=" + isa.Targets[0], "-std=c++17", "-fsyntax-only", "-w",
		"-DGGML_USE_HIP", "-D__HIP_PLATFORM_AMD__", "-Iggml/include", "-Iggml/src", "-Iggml/src/ggml-cuda"}
	if c.ROCm != "" {
		return append(args, "--rocm-path="+c.ROCm, file), ""
	}
	if !strings.HasPrefix(path.Base(file), "packed16-v-") {
		return nil, "needs ROCm's headers"
	}
	ggml, hip := filepath.Join(headers, standin.Ggml), filepath.Join(headers, standin.Hip)
	return append([]string{"-I" + ggml, "-I" + hip, "-nogpulib", "-nogpuinc"}, append(args, path.Join(deviceDir, path.Base(file)))...), ""
}

// firstErrors are the first n lines that say what is wrong.
func firstErrors(out string, n int) string {
	var lines []string
	for line := range strings.Lines(out) {
		if strings.Contains(line, "error:") && len(lines) < n {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	if lines == nil {
		return strings.TrimSpace(out)
	}
	return strings.Join(lines, "\n")
}

// Bad are the units that failed.
func Bad(units []Unit) []Unit {
	var bad []Unit
	for _, u := range units {
		if u.Status == Failed {
			bad = append(bad, u)
		}
	}
	return bad
}

// Summary puts the outcome in words.
func Summary(units []Unit) string {
	n := map[Status]int{}
	for _, u := range units {
		n[u.Status]++
	}
	text := fmt.Sprintf("%d units compile", n[OK])
	if n[Failed] > 0 {
		text += fmt.Sprintf(", %d fail", n[Failed])
	}
	if n[NotChecked] > 0 {
		text += fmt.Sprintf(", %d not checked", n[NotChecked])
	}
	return text
}
