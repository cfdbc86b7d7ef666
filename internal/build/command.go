// Package build configures and compiles a patched tree with CMake and Ninja.
package build

import (
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"dot4fa/internal/recipe"
	"dot4fa/internal/shell"
	"dot4fa/internal/toolchain"
)

// Tree is where a build happens.
type Tree struct {
	Source string // the patched llama.cpp
	Dir    string // CMake's binary directory
	Logs   string // where the full logs go
}

// TreeOf returns the build tree of the work tree at dir.
func TreeOf(work string) Tree {
	return Tree{
		Source: work,
		Dir:    filepath.Join(work, "build"),
		Logs:   filepath.Join(work, ".dot4fa", "log"),
	}
}

// Bin is where upstream's build puts its programs.
func (t Tree) Bin() string { return filepath.Join(t.Dir, "bin") }

// ConfigureCommand returns the CMake command that configures t for r. The work
// tree has no git of its own and may lie inside another repository, so what
// upstream would ask git for is passed in and git is kept out of it.
func (t Tree) ConfigureCommand(r *recipe.Recipe, tools toolchain.Set) shell.Command {
	entries := cacheEntries(r, tools)
	args := []string{"-S", t.Source, "-B", t.Dir, "-G", generator}
	for _, k := range slices.Sorted(maps.Keys(entries)) {
		args = append(args, "-D"+k+"="+entries[k])
	}
	return shell.Command{Env: environment(r, tools), Path: program(tools.CMake, "cmake"), Args: args}
}

const generator = "Ninja"

// cacheEntries is all that CMake is told about r.
func cacheEntries(r *recipe.Recipe, tools toolchain.Set) map[string]string {
	entries := map[string]string{
		"LLAMA_BUILD_NUMBER": buildNumber(r.Upstream.Tag),
		"LLAMA_BUILD_COMMIT": shortCommit(r.Upstream.Commit) + "-dot4fa",
		"GIT_EXE":            "OFF",
	}
	if tools.Ninja.Found() {
		entries["CMAKE_MAKE_PROGRAM"] = tools.Ninja.Path
	}
	langs := []string{"C", "CXX"}
	switch r.Backend {
	case recipe.HIP:
		langs = append(langs, "HIP")
		for k, v := range tools.ROCm.Settings().Cache {
			entries[k] = v
		}
	case recipe.CUDA:
		langs = append(langs, "CUDA")
		if tools.NVCC.Found() {
			entries["CMAKE_CUDA_COMPILER"] = tools.NVCC.Path
		}
	}
	if tools.Launcher.Found() {
		for _, l := range langs {
			entries["CMAKE_"+l+"_COMPILER_LAUNCHER"] = tools.Launcher.Path
		}
	}
	for k, v := range r.CMake { // the recipe has the last word
		entries[k] = v
	}
	return entries
}

// CompileCommand returns the command that builds targets (all when empty).
// The environment is that of the configure: CMake runs again by itself when one
// of its files has changed, and clang reads some of it too.
func (t Tree) CompileCommand(r *recipe.Recipe, targets []string, jobs Jobs, tools toolchain.Set) shell.Command {
	args := []string{"--build", t.Dir, "--parallel", strconv.Itoa(jobs.N)}
	if len(targets) > 0 {
		args = append(append(args, "--target"), targets...)
	}
	return shell.Command{Env: environment(r, tools), Path: program(tools.CMake, "cmake"), Args: args}
}

// environment is what CMake, the compilers and upstream's build read besides
// their arguments.
func environment(r *recipe.Recipe, tools toolchain.Set) []string {
	if r.Backend != recipe.HIP {
		return nil
	}
	return tools.ROCm.Settings().Env
}

// program is the tool's path, or its bare name where it was not found: a
// printed command stays readable.
func program(t toolchain.Tool, name string) string {
	if t.Found() {
		return t.Path
	}
	return name
}

// buildNumber is the number in an upstream release tag: b10573 is 10573.
func buildNumber(tag string) string {
	if n := strings.TrimPrefix(tag, "b"); n != "" && strings.Trim(n, "0123456789") == "" {
		return n
	}
	return "0"
}

func shortCommit(c string) string { return c[:min(9, len(c))] }
