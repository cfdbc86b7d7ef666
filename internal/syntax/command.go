package syntax

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"dot4fa/internal/fault"
	"dot4fa/internal/isa"
	"dot4fa/internal/shell"
	"dot4fa/internal/standin"
)

// hostArgs are what the units need of upstream's build: its include
// directories and the names it defines.
var hostArgs = []string{"-fsyntax-only", "-w", "-DGGML_USE_CPU", "-D_GNU_SOURCE", "-DGGML_SCHED_MAX_COPIES=4",
	`-DGGML_VERSION="0"`, `-DGGML_COMMIT="0"`, "-Iinclude", "-Isrc", "-Icommon", // ggml-cpu has a common.h too
	"-Iggml/include", "-Iggml/src", "-Iggml/src/ggml-cpu", "-Ivendor", "-Itests"}

// commands compile u where an image is laid out; with none there is the reason
// why that cannot be done here.
func (t *Tools) commands(u *Unit) (list [][]string, why string) {
	if !u.Device {
		compiler, std := t.CXX, "-std=gnu++17"
		if path.Ext(u.File) == ".c" {
			compiler, std = t.CC, "-std=gnu11"
		}
		return [][]string{append(append([]string{compiler, std}, hostArgs...), u.File)}, ""
	}
	if t.Device == nil {
		return nil, "no clang for AMD GPUs"
	}
	args := []string{t.Device.Path, "-x", "hip", "--offload-arch=" + isa.Targets[0], "-std=gnu++17", "-fsyntax-only", "-w", "-nogpulib",
		"-DGGML_USE_HIP", "-D__HIP_PLATFORM_AMD__", "-DGGML_HIP_NO_VMM"}
	device := append(args[:len(args):len(args)], "--offload-device-only")
	if t.HIP != "" {
		rest := []string{"--rocm-path=" + t.HIP, "-isystem", filepath.Join(t.HIP, "include"), "-Iggml/include", "-Iggml/src", "-Iggml/src/ggml-cuda", u.File}
		host := append(args[:len(args):len(args)], "--offload-host-only")
		return [][]string{append(host, rest...), append(device, rest...)}, ""
	}
	if !t.standIn(u) {
		return nil, "needs HIP's headers"
	}
	return [][]string{append(device, "-nogpuinc", "-I"+path.Join(standInDir, standin.Ggml), "-I"+path.Join(standInDir, standin.Hip),
		"-Iggml/include", "-Iggml/src", "-Iggml/src/ggml-cuda", path.Join(deviceDir, path.Base(u.File)))}, ""
}

// standIn reports whether u is compiled on the stand-in headers.
func (t *Tools) standIn(u *Unit) bool {
	return u.Device && t.HIP == "" && strings.HasPrefix(path.Base(u.File), "packed16-v-")
}

// run compiles u in dir and returns the files of dir it read; none when the
// compiler could not tell.
func (u *Unit) run(ctx context.Context, dir string, commands [][]string) (read []string, err error) {
	u.Status = OK
	for _, args := range commands {
		more, err := u.runOne(ctx, dir, args)
		if err != nil || u.Status == Failed {
			return more, err
		}
		read = append(read, more...)
	}
	slices.Sort(read)
	return slices.Compact(read), nil
}

func (u *Unit) runOne(ctx context.Context, dir string, args []string) (read []string, err error) {
	list, err := os.CreateTemp("", "dot4fa-read-*")
	if err != nil {
		return nil, fault.Temporary(err)
	}
	list.Close()
	defer os.Remove(list.Name())
	out, err := command(ctx, dir, args, "-MD", "-MF", list.Name())
	if err != nil {
		if !shell.Ran(err) {
			return nil, err
		}
		u.Status, u.Detail = Failed, firstErrors(out, 4)
		// Of a unit with errors compilers write no list; their preprocessor does.
		if _, err := command(ctx, dir, args, "-M", "-MF", list.Name()); shell.Ran(err) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
	}
	data, err := os.ReadFile(list.Name())
	if err != nil {
		return nil, fault.Read(err, list.Name())
	}
	return localFiles(dir, data), nil
}

func command(ctx context.Context, dir string, args []string, more ...string) (out string, err error) {
	unit := args[len(args)-1]
	args = append(append(append([]string{}, args[:len(args)-1]...), more...), unit)
	out, err = shell.Command{Env: []string{"LC_ALL=C"}, Dir: dir, Path: args[0], Args: args[1:]}.Text(ctx)
	var failed *shell.Failed
	if errors.As(err, &failed) && !shell.Ran(err) {
		return "", fault.New(fault.Environment, "cannot run the compiler: %w", failed.Err).At("%s", args[0]).
			Hintf("check that it is there and may be run, or name another")
	}
	return out, err
}

// localFiles are the prerequisites of a make rule that lie in dir.
func localFiles(dir string, rule []byte) []string {
	_, list, _ := bytes.Cut(rule, []byte(":"))
	var out []string
	for _, name := range strings.Fields(strings.ReplaceAll(string(list), "\\\n", " ")) {
		if filepath.IsAbs(name) {
			rel, err := filepath.Rel(dir, name)
			if err != nil {
				continue
			}
			name = rel
		}
		name = path.Clean(filepath.ToSlash(name))
		if filepath.IsLocal(name) {
			out = append(out, name)
		}
	}
	return out
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

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
