// Package toolchain finds the programs a build needs, and judges whether they
// belong together.
package toolchain

import (
	"bytes"
	"context"
	"path"
	"strings"

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

// MinCMake is the first CMake that knows HIP as a language.
const MinCMake Version = "3.21"

// Set is what a build can use on a machine.
type Set struct {
	CMake    Tool `json:"cmake"`
	Ninja    Tool `json:"ninja"`
	CC       Tool `json:"cc"`
	CXX      Tool `json:"cxx"`
	Launcher Tool `json:"launcher"` // compiler cache
	ROCm     ROCm `json:"rocm"`
	NVCC     Tool `json:"nvcc"`
}

// Find looks for everything on this machine; see System.Find.
func Find(ctx context.Context) Set { return Host().Find(ctx) }

// Find looks for everything, asking each program for its version. It fails on
// nothing: Require judges.
func (s System) Find(ctx context.Context) Set {
	set := Set{
		CMake:    s.find(ctx, "cmake", "cmake"),
		Ninja:    s.find(ctx, "ninja", "ninja", "ninja-build"),
		CC:       s.hostCompiler(ctx, "C compiler", "CC", "cc", "gcc", "clang"),
		CXX:      s.hostCompiler(ctx, "C++ compiler", "CXX", "c++", "g++", "clang++"),
		Launcher: s.find(ctx, "compiler cache", "ccache", "sccache"),
		NVCC:     s.nvcc(ctx),
	}
	if all := s.ROCms(ctx); len(all) > 0 {
		set.ROCm = all[0]
	}
	return set
}

// Tools returns every tool of the set that was found.
func (s Set) Tools() []Tool {
	var out []Tool
	for _, t := range []Tool{s.CMake, s.Ninja, s.CC, s.CXX, s.Launcher, s.ROCm.Clang, s.NVCC} {
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
	if !s.ROCm.Found() {
		return fault.New(fault.Environment, "this recipe builds for AMD GPUs and no ROCm was found").
			Hintf("install ROCm 6.1 or newer (ROCM_PATH=/path names one elsewhere than /opt/rocm), or build for the CPU: --recipe cpu")
	}
	if !s.ROCm.Clang.Found() {
		return fault.New(fault.Environment, "ROCm has no clang++ for HIP").At("%s", s.ROCm.Root).
			Hintf("install ROCm's compiler (package rocm-llvm or hipcc), name one with HIPCXX=/path/to/clang++, or build for the CPU: --recipe cpu")
	}
	return nil
}

func (s System) find(ctx context.Context, what string, names ...string) Tool {
	t := s.locate(what, names...)
	if t.Found() {
		t.Version = s.version(ctx, t.Path)
	}
	return t
}

// locate finds the first of the programs that is there.
func (s System) locate(what string, names ...string) Tool {
	for _, n := range names {
		if p := s.LookPath(n); p != "" {
			return Tool{Name: what, Path: p}
		}
	}
	return Tool{Name: what}
}

// hostCompiler follows CMake's own choice: the environment variable, then the
// usual names in CMake's order.
func (s System) hostCompiler(ctx context.Context, what, env string, names ...string) Tool {
	if v := strings.Fields(s.Getenv(env)); len(v) > 0 {
		return s.find(ctx, what+" ("+env+")", v[0])
	}
	return s.find(ctx, what, names...)
}

// version asks a program for its version; "" when it does not say within a
// few seconds.
func (s System) version(ctx context.Context, program string) string {
	out, err := s.Output(ctx, program, "--version")
	if err != nil {
		return ""
	}
	if m := reVersion.FindAll(bytes.SplitN(out, []byte("\n\n"), 2)[0], -1); len(m) > 0 {
		line := string(bytes.SplitN(out, []byte("\n"), 2)[0])
		if v := reRelease.FindString(line); v != "" { // AMD clang version 22.0.0git (… roc-7.2.4 26084 …)
			line = strings.Replace(line, v, "", 1)
			return reVersion.FindString(line)
		}
		if v := reVersion.FindAllString(line, -1); len(v) > 0 {
			return v[len(v)-1] // "g++ (Debian 12.2.0-14) 12.2.0"
		}
		return string(m[0])
	}
	return ""
}

func (s System) nvcc(ctx context.Context) Tool {
	const what = "CUDA compiler"
	if v := s.Getenv("CUDACXX"); v != "" {
		return s.find(ctx, what, v)
	}
	names := []string{"nvcc"}
	for _, env := range []string{"CUDA_PATH", "CUDA_HOME"} {
		if dir := s.Getenv(env); dir != "" {
			names = append(names, path.Join(dir, "bin/nvcc"))
		}
	}
	return s.find(ctx, what, append(names, "/usr/local/cuda/bin/nvcc")...)
}
