package toolchain

import (
	"context"
	"encoding/json"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// PrefixFile is the file by which a prefix made by `dot4fa toolchain bootstrap`
// is known. It lies in the directory that was bootstrapped.
const PrefixFile = "dot4fa-toolchain.json"

// Prefix describes a bootstrapped, compile-only prefix. Relative paths are
// relative to the directory of its file, so that it can be moved.
type Prefix struct {
	Root       string            `json:"root"`        // what to name as ROCM_PATH
	Compiler   string            `json:"compiler"`    // the clang++ it was made for, outside it
	DeviceLibs string            `json:"device_libs"` // the bitcode that this compiler can read
	Include    []string          `json:"include"`     // for -isystem
	Packages   map[string]string `json:"packages"`    // Debian packages it was made from, with their versions
}

// readPrefix reads the description of the bootstrapped prefix whose directory or
// root dir is; nil when it is none.
func (s finder) readPrefix(dir string) *Prefix {
	for at := dir; ; at = path.Dir(at) {
		if data := s.ReadFile(path.Join(at, PrefixFile)); data != nil {
			var p Prefix
			if json.Unmarshal(data, &p) != nil {
				return nil
			}
			p.Root, p.DeviceLibs = joined(at, p.Root), joined(at, p.DeviceLibs)
			for i := range p.Include {
				p.Include[i] = joined(at, p.Include[i])
			}
			if dir != at && dir != p.Root {
				return nil
			}
			return &p
		}
		if at == path.Dir(at) {
			return nil
		}
	}
}

func joined(dir, name string) string {
	if name == "" || path.IsAbs(name) {
		return name
	}
	return path.Join(dir, name)
}

var reRelease = regexp.MustCompile(`\broc-\d+(\.\d+)+`)

// compiler finds r's clang++ and the programs it runs. HIPCXX wins, as in CMake.
func (s finder) compiler(ctx context.Context, r *ROCm, made *Prefix) {
	const what = "HIP compiler"
	r.Clang, r.Bundler, r.Linker = Tool{Name: what}, Tool{Name: "clang-offload-bundler"}, Tool{Name: "lld"}
	var names []string
	switch hipcxx := s.Getenv("HIPCXX"); {
	case hipcxx != "":
		names = []string{hipcxx}
	case made != nil:
		names = []string{made.Compiler}
	default:
		names = []string{
			path.Join(r.Root, "llvm/bin/clang++"), path.Join(r.Root, "lib/llvm/bin/clang++"),
			path.Join(r.Root, "bin/amdclang++"),
		}
		if r.Layout == LayoutSystem {
			names = append([]string{"/usr/lib64/rocm/llvm/bin/clang++", "/usr/lib/rocm/llvm/bin/clang++"}, s.systemClangs()...)
		}
		if r.Layout == LayoutNix {
			names = append(names, "amdclang++", "clang++")
		}
	}
	if r.Clang = s.find(ctx, what, names...); !r.Clang.Found() {
		return
	}
	if out, err := s.Output(ctx, r.Clang.Path, "--version"); err == nil {
		r.LLVM = reRelease.FindString(string(out))
	}
	r.Bundler = s.locate(r.Bundler.Name, s.runBy(ctx, r.Clang, "clang-offload-bundler")...)
	r.Linker = s.locate(r.Linker.Name, append(s.runBy(ctx, r.Clang, "lld"), s.runBy(ctx, r.Clang, "ld.lld")...)...)
}

// runBy returns where clang may have a program that it runs: where it says, beside
// its real file, beside where it was called, on PATH.
func (s finder) runBy(ctx context.Context, clang Tool, name string) []string {
	var out []string
	if said, err := s.Output(ctx, clang.Path, "-print-prog-name="+name); err == nil {
		if p := strings.TrimSpace(string(said)); path.IsAbs(p) {
			out = append(out, p)
		}
	}
	return append(out, path.Join(path.Dir(s.Resolve(clang.Path)), name), path.Join(path.Dir(clang.Path), name), name)
}

// systemClangs are a distribution's clangs, the one that has device libraries
// first, then by version.
func (s finder) systemClangs() []string {
	var with, without []string
	for _, dir := range s.versioned("/usr/lib/llvm-*", "/usr/lib/llvm/*") {
		if len(s.bitcodeOf(dir)) > 0 {
			with = append(with, path.Join(dir, "bin/clang++"))
		} else {
			without = append(without, path.Join(dir, "bin/clang++"))
		}
	}
	return append(append(with, "/usr/bin/clang++"), without...)
}

// deviceLibs finds the bitcode that r's clang links device code with: where the
// environment says, where clang itself looks, where the packages put it.
func (s finder) deviceLibs(r ROCm) string {
	dirs := filepath.SplitList(s.Getenv("HIP_DEVICE_LIB_PATH"))
	dirs = append(dirs, path.Join(r.Root, "amdgcn/bitcode"), path.Join(r.Root, "lib/llvm/amdgcn/bitcode"))
	if r.Clang.Found() {
		dirs = append(dirs, s.bitcodeOf(path.Dir(path.Dir(s.Resolve(r.Clang.Path))))...)
	}
	for _, lib := range libDirs {
		dirs = append(dirs, path.Join(r.Root, lib, "amdgcn/bitcode"))
	}
	for _, dir := range dirs {
		if s.IsFile(path.Join(dir, "ocml.bc")) {
			return dir
		}
	}
	return ""
}

// bitcodeOf returns the directories with device libraries of the LLVM in dir.
func (s finder) bitcodeOf(dir string) []string {
	var out []string
	for _, lib := range []string{"lib", "lib64"} {
		for _, version := range s.versioned(path.Join(dir, lib, "clang", "*")) {
			if d := path.Join(version, "amdgcn/bitcode"); s.IsFile(path.Join(d, "ocml.bc")) {
				out = append(out, d)
			} else if d := path.Join(version, "lib/amdgcn/bitcode"); s.IsFile(path.Join(d, "ocml.bc")) {
				out = append(out, d)
			}
		}
	}
	return out
}
