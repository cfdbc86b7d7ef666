package isa

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"dot4fa/internal/fault"
	"dot4fa/internal/input"
	"dot4fa/internal/machine"
	"dot4fa/internal/recipe"
	"dot4fa/internal/shell"
	"dot4fa/internal/standin"
	"dot4fa/internal/toolchain"
)

// Targets are the GPUs the kernels are compiled for; the first is the default.
var Targets = []string{"gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1200", "gfx1201"}

// Compiler is a clang that generates code for AMD GPUs.
type Compiler struct {
	Path    string // of clang++
	Version string // "19.1.7"
	Major   int
	ROCm    string // root of the ROCm installation it belongs to; empty for a plain clang
}

var versionLine = regexp.MustCompile(`clang version (\d+)\.\d+\.\d+`)

// least is the first plain clang whose code for these GPUs is held to the budgets.
const least = 19

// FindCompiler returns the compiler to use: path when given, else the clang of
// the ROCm that a build would use, else the newest clang++ on PATH that is new
// enough and has the amdgcn target.
func FindCompiler(ctx context.Context, on machine.System, path string) (*Compiler, error) {
	if path != "" {
		full, err := input.Program(path, "name a clang++ with --compiler")
		if err != nil {
			return nil, err
		}
		return probe(ctx, full)
	}
	candidates := toolchain.Clangs(ctx, on, least)
	if rocm := toolchain.FindROCm(ctx, on); rocm.Clang.Found() {
		candidates = append([]toolchain.Tool{rocm.Clang}, candidates...)
	}
	var last error
	for _, c := range candidates {
		found, err := probe(ctx, c.Path)
		if err == nil {
			return found, nil
		}
		last = err
	}
	if last != nil {
		return nil, last
	}
	return nil, fault.New(fault.Environment, "no clang++ (%d or newer) and no ROCm compiler found", least).
		Hintf("install clang (Debian: clang-%d), or name a ROCm with --toolchain", least)
}

func probe(ctx context.Context, full string) (*Compiler, error) {
	out, err := shell.Command{Path: full, Args: []string{"--version"}}.Output(ctx)
	if err != nil {
		return nil, fault.New(fault.Environment, "does not answer --version: %w", err).At("%s", full).Hintf("name a clang++ with --compiler")
	}
	m := versionLine.FindSubmatch(out)
	if m == nil {
		return nil, fault.New(fault.Environment, "is not clang").At("%s", full).Hintf("name a clang++ with --compiler")
	}
	major, _ := strconv.Atoi(string(m[1]))
	c := &Compiler{Path: full, Major: major, Version: strings.TrimPrefix(string(m[0]), "clang version ")}
	if resolved, err := filepath.EvalSymlinks(full); err == nil && strings.Contains(resolved, "rocm") {
		for dir := filepath.Dir(resolved); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			if _, err := os.Stat(filepath.Join(dir, "include", "hip", "hip_runtime.h")); err == nil {
				c.ROCm = dir
				break
			}
		}
	}
	if c.ROCm == "" && major < least {
		return nil, fault.New(fault.Environment, "is clang %s; %d or newer is needed", c.Version, least).At("%s", full).
			Hintf("name another with --compiler, or install clang-%d", least)
	}
	targets, err := shell.Command{Path: full, Args: []string{"--print-targets"}}.Output(ctx)
	if err != nil || !bytes.Contains(targets, []byte("amdgcn")) {
		return nil, fault.New(fault.Environment, "has no amdgcn target").At("%s", full).
			Hintf("install a clang that has it (Debian's clang-19 does)")
	}
	return c, nil
}

// Source is what to compile, and where its headers are.
type Source struct {
	Units   []string // files; between them they instantiate every kernel, some of them more than once
	Include []string // directories with the kernels and their generated headers
	Tree    string   // ggml/src/ggml-cuda of an upstream tree, for the real common.cuh; empty: the stand-in
	Defines []string // as in -D
}

// packUnit instantiates the kernels whose launch code needs more of ggml than the stand-in has.
const packUnit = `#include "packed16-pack.cuh"
void * const packed16_kernels[] = { (void *) packed16_pack_rows<float>, (void *) packed16_pack_rows<half> };
`

// Kernels renders r's device code from assets into dir and returns all of it as a Source.
func Kernels(dir string, r *recipe.Recipe, assets fs.FS) (Source, error) {
	names, err := standin.WriteKernels(dir, r, assets)
	if err != nil {
		return Source{}, err
	}
	src := Source{Include: []string{dir}}
	for _, name := range names {
		if strings.HasPrefix(name, "packed16-v-") && filepath.Ext(name) == ".cu" {
			src.Units = append(src.Units, filepath.Join(dir, name))
		}
	}
	if len(src.Units) == 0 {
		return Source{}, fault.New(fault.Usage, "recipe %s renders no kernels", r.Name).Hintf("use a recipe with a GPU backend, such as rdna3")
	}
	unit := filepath.Join(dir, "packed16-pack-only.cu")
	src.Units = append(src.Units, unit)
	return src, os.WriteFile(unit, []byte(packUnit), 0o644)
}

// compile writes the assembly of one unit of src for target into dir and returns its text and the assembled code object.
func (c *Compiler) compile(ctx context.Context, src Source, unit, target, dir string) (asm, object []byte, err error) {
	headers := filepath.Join(dir, "standin")
	if err := standin.Write(headers); err != nil {
		return nil, nil, err
	}
	out := filepath.Join(dir, "unit.s")
	args := []string{"-x", "hip", "--offload-device-only", "--offload-arch=" + target, "-std=c++17", "-O3", "-DNDEBUG",
		"-DGGML_USE_HIP", "-D__HIP_PLATFORM_AMD__", "-Wno-unused-function", "-S", unit, "-o", out}
	for _, d := range src.Defines {
		args = append(args, "-D"+d)
	}
	for _, dir := range src.Include {
		args = append(args, "-I"+dir)
	}
	if src.Tree != "" {
		args = append(args, "-I"+src.Tree, "-I"+filepath.Join(src.Tree, "..", "..", "include"), "-I"+filepath.Join(src.Tree, ".."))
	} else {
		args = append(args, "-I"+filepath.Join(headers, standin.Ggml))
	}
	if c.ROCm != "" {
		args = append(args, "--rocm-path="+c.ROCm)
	} else {
		args = append(args, "-nogpulib", "-nogpuinc", "-I"+filepath.Join(headers, standin.Hip), "-I"+filepath.Join(headers, standin.Ggml))
	}
	if err := toolchain.Compile(ctx, c.Path, args...); err != nil {
		return nil, nil, err
	}
	if asm, err = os.ReadFile(out); err != nil {
		return nil, nil, err
	}
	obj := filepath.Join(dir, "unit.o")
	if err := toolchain.Compile(ctx, c.Path, "-x", "assembler", "--target=amdgcn-amd-amdhsa", "-mcpu="+target, "-c", out, "-o", obj); err != nil {
		return nil, nil, err
	}
	object, err = os.ReadFile(obj)
	return asm, object, err
}
