// Package toolchain finds the programs a build needs and says what to install
// when one is missing.
package toolchain

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"sort"
	"strings"
	"time"

	"dot4fa/internal/fault"
	"dot4fa/internal/recipe"
)

// Tool is a program that was looked for. A zero Path means: not found.
type Tool struct {
	Name    string `json:"name"`
	Path    string `json:"path,omitempty"`
	Version string `json:"version,omitempty"`
}

// Found reports whether the program is there.
func (t Tool) Found() bool { return t.Path != "" }

// Where the vendors' packages install; variables for tests.
var (
	installedROCm = "/opt/rocm"
	installedNVCC = "/usr/local/cuda/bin/nvcc"
)

// Set is what a build can use on this machine.
type Set struct {
	CMake    Tool   `json:"cmake"`
	Ninja    Tool   `json:"ninja"`
	CC       Tool   `json:"cc"`
	CXX      Tool   `json:"cxx"`
	Launcher Tool   `json:"launcher"` // compiler cache
	ROCm     string `json:"rocm,omitempty"`
	HIPClang Tool   `json:"hip_clang"`
	NVCC     Tool   `json:"nvcc"`
}

// Find looks for everything, asking each program for its version. It fails on
// nothing: Require judges.
func Find(ctx context.Context) Set {
	s := Set{
		CMake:    find(ctx, "cmake", "cmake"),
		Ninja:    find(ctx, "ninja", "ninja", "ninja-build"),
		CC:       compiler(ctx, "C compiler", "CC", "cc", "gcc", "clang"),
		CXX:      compiler(ctx, "C++ compiler", "CXX", "c++", "g++", "clang++"),
		Launcher: find(ctx, "compiler cache", "ccache", "sccache"),
	}
	s.ROCm = rocmRoot(ctx)
	if s.ROCm != "" {
		s.HIPClang = hipClang(ctx, s.ROCm)
	}
	s.NVCC = nvcc(ctx)
	return s
}

// Tools returns every tool of the set that was found.
func (s Set) Tools() []Tool {
	var out []Tool
	for _, t := range []Tool{s.CMake, s.Ninja, s.CC, s.CXX, s.Launcher, s.HIPClang, s.NVCC} {
		if t.Found() {
			out = append(out, t)
		}
	}
	return out
}

// Require returns an Environment fault for the first thing missing to build
// for backend, with every way on in its hint.
func (s Set) Require(backend recipe.Backend) error {
	for _, need := range []struct {
		tool Tool
		pkg  string
	}{
		{s.CMake, "cmake"},
		{s.Ninja, "ninja-build"},
		{s.CC, "gcc"},
		{s.CXX, "g++"},
	} {
		if !need.tool.Found() {
			return fault.New(fault.Environment, "no %s on PATH", need.tool.Name).
				Hintf("install it (Debian and Ubuntu: apt-get install %s) and run the same command again; what is finished is kept", need.pkg)
		}
	}
	switch backend {
	case recipe.HIP:
		return s.requireROCm()
	case recipe.CUDA:
		if !s.NVCC.Found() {
			return fault.New(fault.Environment, "this recipe builds for NVIDIA GPUs and no nvcc was found").
				Hintf("install the CUDA toolkit, or name it with CUDACXX=/path/to/nvcc; without a GPU: --recipe cpu")
		}
	}
	return nil
}

func (s Set) requireROCm() error {
	if s.ROCm == "" {
		return fault.New(fault.Environment, "this recipe builds for AMD GPUs and no ROCm was found").
			Hintf("install ROCm 6.1 or newer (ROCM_PATH=/path names one elsewhere than /opt/rocm), or build for the CPU: --recipe cpu")
	}
	if !s.HIPClang.Found() {
		return fault.New(fault.Environment, "ROCm has no clang++ for HIP").At("%s", s.ROCm).
			Hintf("install ROCm's compiler (package rocm-llvm or hipcc), name one with HIPCXX=/path/to/clang++, or build for the CPU: --recipe cpu")
	}
	return nil
}

func find(ctx context.Context, what string, names ...string) Tool {
	for _, n := range names {
		if p, err := exec.LookPath(n); err == nil {
			return Tool{Name: what, Path: absolute(p), Version: version(ctx, p)}
		}
	}
	return Tool{Name: what}
}

// compiler follows CMake's own choice: the environment variable, then the
// usual names in CMake's order.
func compiler(ctx context.Context, what, env string, names ...string) Tool {
	if v := strings.Fields(os.Getenv(env)); len(v) > 0 {
		return find(ctx, what+" ("+env+")", v[0])
	}
	return find(ctx, what, names...)
}

func absolute(p string) string {
	if a, err := filepath.Abs(p); err == nil {
		return a
	}
	return p
}

var reVersion = regexp.MustCompile(`\d+(\.\d+)+`)

// version asks a program for its version; "" when it does not say within a
// few seconds.
func version(ctx context.Context, path string) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return ""
	}
	if m := reVersion.FindAll(bytes.SplitN(out, []byte("\n\n"), 2)[0], -1); len(m) > 0 {
		line := string(bytes.SplitN(out, []byte("\n"), 2)[0])
		if v := reVersion.FindAllString(line, -1); len(v) > 0 {
			return v[len(v)-1] // "g++ (Debian 12.2.0-14) 12.2.0"
		}
		return string(m[0])
	}
	return ""
}

// rocmRoot finds the ROCm installation: ROCM_PATH, hipconfig, /opt/rocm, the
// newest /opt/rocm-*.
func rocmRoot(ctx context.Context) string {
	for _, env := range []string{"ROCM_PATH", "HIP_PATH"} {
		if dir := os.Getenv(env); dir != "" && isROCm(dir) {
			return dir
		}
	}
	if p, err := exec.LookPath("hipconfig"); err == nil {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		out, err := exec.CommandContext(ctx, p, "--rocmpath").Output()
		if dir := strings.TrimSpace(string(out)); err == nil && dir != "" && isROCm(dir) {
			return dir
		}
	}
	if runtime.GOOS == "windows" {
		return ""
	}
	dirs, _ := filepath.Glob(installedROCm + "-*")
	sort.Slice(dirs, func(i, j int) bool { return versionLess(dirs[j], dirs[i]) })
	for _, dir := range append([]string{installedROCm}, dirs...) {
		if isROCm(dir) {
			return dir
		}
	}
	return ""
}

// isROCm reports whether dir holds HIP's CMake package, which upstream's build
// asks for; a bare clang is not ROCm.
func isROCm(dir string) bool {
	for _, lib := range []string{"lib", "lib64", "lib/x86_64-linux-gnu"} {
		if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(lib), "cmake", "hip", "hip-config.cmake")); err == nil {
			return true
		}
	}
	return false
}

func versionLess(a, b string) bool {
	va, vb := reVersion.FindString(a), reVersion.FindString(b)
	for va != "" && vb != "" {
		var x, y string
		x, va, _ = strings.Cut(va, ".")
		y, vb, _ = strings.Cut(vb, ".")
		if x != y {
			return len(x) < len(y) || len(x) == len(y) && x < y
		}
	}
	return va == "" && vb != ""
}

func hipClang(ctx context.Context, root string) Tool {
	const what = "HIP compiler"
	if v := os.Getenv("HIPCXX"); v != "" {
		return find(ctx, what, v)
	}
	return find(ctx, what,
		filepath.Join(root, "llvm", "bin", "clang++"),
		filepath.Join(root, "lib", "llvm", "bin", "clang++"),
		filepath.Join(root, "bin", "amdclang++"))
}

func nvcc(ctx context.Context) Tool {
	const what = "CUDA compiler"
	if v := os.Getenv("CUDACXX"); v != "" {
		return find(ctx, what, v)
	}
	names := []string{"nvcc"}
	for _, env := range []string{"CUDA_PATH", "CUDA_HOME"} {
		if dir := os.Getenv(env); dir != "" {
			names = append(names, filepath.Join(dir, "bin", "nvcc"))
		}
	}
	return find(ctx, what, append(names, installedNVCC)...)
}
