package bootstrap

import (
	"cmp"
	"context"
	"embed"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"dot4fa/internal/fault"
	"dot4fa/internal/shell"
)

//go:embed trial
var trial embed.FS

// trialTarget is the GPU that the trials are compiled for.
const trialTarget = "gfx1100"

// trialDir writes the files of the trials into dir.
func trialDir(dir string) error {
	entries, err := trial.ReadDir("trial")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fault.Write(err, dir)
	}
	for _, e := range entries {
		data, err := trial.ReadFile("trial/" + e.Name())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, e.Name()), data, 0o644); err != nil {
			return fault.Write(err, dir)
		}
	}
	return nil
}

// chooseBitcode finds device libraries that the compiler can read: its own
// version's, then older ones, then newer ones. Each is tried on a kernel that
// needs them.
func (r *root) chooseBitcode(ctx context.Context, h *host, scratch string) (version string, err error) {
	found := r.bitcode()
	if len(found) == 0 {
		return "", fault.New(fault.Environment, "the packages hold no device libraries").At("%s", r.dir).
			Hintf("packages rocm-device-libs-N move from suite to suite: name one that has them with --suite")
	}
	var tried []string
	for _, v := range byCloseness(found, h.major) {
		if err := r.useBitcode(found[v]); err != nil {
			return "", err
		}
		out := filepath.Join(scratch, "trial.o")
		args := append([]string{"-x", "hip", "--offload-arch=" + trialTarget, "-O2", "-fPIC", "-c", filepath.Join(scratch, "trial.hip"), "-o", out}, Flags(r.dir)...)
		said, err := run(ctx, shell.Command{Path: h.clang, Args: args})
		if err == nil {
			return v, nil
		}
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		tried = append(tried, "    bitcode of LLVM "+v+": "+firstError(said))
	}
	return "", fault.New(fault.Environment, "clang %s cannot compile for %s with what the suites have (HIP %s)\n%s", h.version, trialTarget, r.hip(), strings.Join(tried, "\n")).
		At("%s", h.clang).Hintf("use a clang that one of these versions fits (--clang), or suites that have bitcode for this one (--suite)")
}

// byCloseness orders versions of bitcode for a compiler of version major.
func byCloseness(found map[string]string, major int) []string {
	rank := func(v string) int {
		n, _ := strconv.Atoi(v)
		if n <= major {
			return major - n
		}
		return 1000 + n
	}
	var out []string
	for v := range found {
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	return out
}

// tryCMake builds a small project that asks for what llama.cpp's build asks
// for: the language HIP, and the packages hip, hipblas and rocblas.
func (r *root) tryCMake(ctx context.Context, h *host, scratch string) error {
	build := filepath.Join(scratch, "build")
	if err := os.RemoveAll(build); err != nil {
		return fault.Write(err, build)
	}
	env := []string{"ROCM_PATH=" + r.dir, "HIP_PATH=" + r.dir, "HIP_PLATFORM=amd", "LC_ALL=C.UTF-8",
		"HIPCXX=" + h.clang, "HIPFLAGS=" + strings.Join(Flags(r.dir), " ")}
	configure := shell.Command{Env: env, Path: h.cmake, Args: []string{"-S", scratch, "-B", build, "-G", "Ninja",
		"-DCMAKE_MAKE_PROGRAM=" + h.ninja, "-DCMAKE_HIP_COMPILER=" + h.clang, "-DCMAKE_HIP_COMPILER_ROCM_ROOT=" + r.dir,
		"-DCMAKE_HIP_ARCHITECTURES=" + trialTarget, "-DCMAKE_PREFIX_PATH=" + r.dir, "-DCMAKE_BUILD_TYPE=Release"}}
	said, err := run(ctx, configure)
	if strings.Contains(said, "HIP compiler identification is unknown") {
		return fault.New(fault.Environment, "CMake does not recognise clang %s as a HIP compiler and would drop its flags\n%s", h.version, firstError(said)).
			Hintf("apt-get install clang-tools-%d, whose clang-offload-bundler is needed", h.major)
	}
	if err == nil {
		said, err = run(ctx, shell.Command{Env: env, Path: h.cmake, Args: []string{"--build", build}})
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fault.New(fault.Environment, "a small HIP project does not build with the prefix (HIP %s, clang %s)\n    %s", r.hip(), h.version, firstError(said)).
			Hintf("the packages of these suites do not fit together: try others with --suite, or another compiler with --clang")
	}
	return nil
}

func run(ctx context.Context, cmd shell.Command) (string, error) {
	var out strings.Builder
	err := cmd.Run(ctx, &out)
	return out.String(), err
}

// firstError is the line that says what is wrong, with what belongs to it.
func firstError(out string) string {
	lines := strings.Split(out, "\n")
	for i, line := range lines {
		if strings.Contains(line, "error:") || strings.HasPrefix(line, "CMake Error") || strings.Contains(line, "undefined reference") {
			text := strings.TrimSpace(line)
			if strings.HasPrefix(line, "CMake Error") && i+1 < len(lines) {
				text += " " + strings.TrimSpace(lines[i+1])
			}
			return text
		}
	}
	return shell.Last(out, 2)
}
