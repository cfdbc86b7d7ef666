// Package toolchain finds the programs a build needs, and judges whether they
// belong together.
package toolchain

import (
	"bytes"
	"context"
	"path"
	"strings"

	"dot4fa/internal/machine"
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

// anyLibCMake is the first CMake that looks for hip-lang, its own package for the
// language, in all of a prefix's library directories; before, only in lib.
const anyLibCMake Version = "3.28"

// Set is what a build can use on a machine.
type Set struct {
	CMake    Tool   `json:"cmake"`
	Ninja    Tool   `json:"ninja"`
	CC       Tool   `json:"cc"`
	CXX      Tool   `json:"cxx"`
	Launcher Tool   `json:"launcher"` // compiler cache
	ROCm     ROCm   `json:"rocm"`
	Others   []ROCm `json:"others,omitempty"` // installations of ROCm that are not used
	NVCC     Tool   `json:"nvcc"`

	on finder
}

// finder looks for tools on a machine.
type finder struct{ machine.System }

// Find looks for everything, asking each program for its version. It fails on
// nothing: Judge and Require do.
func Find(ctx context.Context, on machine.System) Set {
	s := finder{on}
	set := Set{
		CMake:    s.find(ctx, "cmake", "cmake"),
		Ninja:    s.find(ctx, "ninja", "ninja", "ninja-build"),
		CC:       s.hostCompiler(ctx, "C compiler", "CC", "cc", "gcc", "clang"),
		CXX:      s.hostCompiler(ctx, "C++ compiler", "CXX", "c++", "g++", "clang++"),
		Launcher: s.find(ctx, "compiler cache", "ccache", "sccache"),
		NVCC:     s.nvcc(ctx),
		on:       s,
	}
	if all := s.rocms(ctx); len(all) > 0 {
		set.ROCm, set.Others = all[0], all[1:]
	}
	return set
}

// Tools returns every tool of the set that was found, HIP among them.
func (s Set) Tools() []Tool {
	var out []Tool
	for _, t := range []Tool{s.CMake, s.Ninja, s.CC, s.CXX, s.Launcher, {Name: "HIP", Path: s.ROCm.Root, Version: string(s.ROCm.HIP)}, s.ROCm.Clang, s.NVCC} {
		if t.Found() {
			out = append(out, t)
		}
	}
	return out
}

func (s finder) find(ctx context.Context, what string, names ...string) Tool {
	t := s.locate(what, names...)
	if t.Found() {
		t.Version = s.version(ctx, t.Path)
	}
	return t
}

// locate finds the first of the programs that is there.
func (s finder) locate(what string, names ...string) Tool {
	for _, n := range names {
		if p := s.LookPath(n); p != "" {
			return Tool{Name: what, Path: p}
		}
	}
	return Tool{Name: what}
}

// hostCompiler follows CMake's own choice: the environment variable, then the
// usual names in CMake's order.
func (s finder) hostCompiler(ctx context.Context, what, env string, names ...string) Tool {
	if v := strings.Fields(s.Getenv(env)); len(v) > 0 {
		return s.find(ctx, what+" ("+env+")", v[0])
	}
	return s.find(ctx, what, names...)
}

// version asks a program for its version; "" when it does not say within a
// few seconds.
func (s finder) version(ctx context.Context, program string) string {
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

func (s finder) nvcc(ctx context.Context) Tool {
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
