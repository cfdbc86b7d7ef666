package bootstrap

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"dot4fa/internal/apt"
	"dot4fa/internal/fault"
	"dot4fa/internal/importlib"
	"dot4fa/internal/shell"
	"dot4fa/internal/toolchain"
)

// root is a prefix being made: what Debian has in /usr, laid out so that it is
// also what clang, CMake and upstream expect of a ROCm root.
type root struct {
	dir string
	lib string // the directory of libraries in dir: lib/x86_64-linux-gnu
}

// unpack lays the packages' files out in a root at dir.
func unpack(ctx context.Context, dir, debs string, list []apt.Package) (*root, error) {
	raw := dir + ".raw"
	for _, old := range []string{raw, dir} {
		if err := os.RemoveAll(old); err != nil {
			return nil, fault.Write(err, old)
		}
	}
	if err := os.MkdirAll(raw, 0o755); err != nil {
		return nil, fault.Write(err, raw)
	}
	for _, p := range list {
		var out strings.Builder
		cmd := shell.Command{Env: []string{"LC_ALL=C.UTF-8"}, Path: "dpkg-deb", Args: []string{"-x", filepath.Join(debs, p.File), raw}}
		if err := cmd.Run(ctx, &out); err != nil {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			f := fault.New(fault.Environment, "%s cannot be unpacked: %w\n%s", p.File, err, shell.Last(out.String(), 3))
			if strings.Contains(out.String(), "No space left") {
				return nil, f.Hintf("%s", fault.DiskFull)
			}
			return nil, f.Hintf("remove %s and run the same command again", filepath.Join(debs, p.File))
		}
	}
	if err := os.Rename(filepath.Join(raw, "usr"), dir); err != nil {
		return nil, fault.New(fault.Environment, "the packages hold no /usr: %w", err).At("%s", raw).
			Hintf("the packages are not those of Debian that dot4fa asks for: `dot4fa toolchain bootstrap DIR --dry-run` lists them")
	}
	if err := os.RemoveAll(raw); err != nil {
		return nil, fault.Write(err, raw)
	}
	r := &root{dir: dir}
	for _, name := range []string{"lib/x86_64-linux-gnu", "lib", "lib64"} {
		if _, err := os.Stat(filepath.Join(dir, name, "cmake", "hip", "hip-config.cmake")); err == nil {
			r.lib = name
			break
		}
	}
	if r.lib == "" {
		return nil, fault.New(fault.Environment, "libamdhip64-dev has no CMake package hip").At("%s", dir).
			Hintf("its files have moved: another suite may do (--suite)")
	}
	return r, nil
}

var reHIPVersion = regexp.MustCompile(`(?m)^HIP_VERSION_(MAJOR|MINOR|PATCH)=(\d+)`)

// hip returns the version of HIP in the root.
func (r *root) hip() toolchain.Version {
	data, _ := os.ReadFile(filepath.Join(r.dir, "share", "hip", "version"))
	var parts []string
	for _, m := range reHIPVersion.FindAllStringSubmatch(string(data), -1) {
		parts = append(parts, m[2])
	}
	return toolchain.Version(strings.Join(parts, "."))
}

// bitcode returns the directories with device libraries by the version of LLVM
// they belong to.
func (r *root) bitcode() map[string]string {
	out := map[string]string{}
	dirs, _ := filepath.Glob(filepath.Join(r.dir, "lib", "llvm-*", "lib", "clang", "*", "amdgcn", "bitcode"))
	for _, dir := range dirs {
		if rel, err := filepath.Rel(r.dir, dir); err == nil {
			out[filepath.Base(filepath.Dir(filepath.Dir(dir)))] = rel
		}
	}
	return out
}

// targets are the GPUs that the chosen bitcode knows.
func (r *root) targets() []string {
	names, _ := filepath.Glob(filepath.Join(r.dir, deviceLibs, "oclc_isa_version_*.bc"))
	var out []string
	for _, n := range names {
		out = append(out, "gfx"+strings.TrimSuffix(strings.TrimPrefix(filepath.Base(n), "oclc_isa_version_"), ".bc"))
	}
	slices.Sort(out)
	return out
}

// useBitcode makes dir the device libraries of the root.
func (r *root) useBitcode(dir string) error {
	at := filepath.Join(r.dir, filepath.FromSlash(deviceLibs))
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return fault.Write(err, at)
	}
	os.Remove(at)
	return link(filepath.Join("..", dir), at)
}

func link(to, at string) error {
	if err := os.Symlink(to, at); err != nil {
		return fault.Write(err, at)
	}
	return nil
}

// hipLang is where CMake before 3.28 looks for the language's package, in one
// place only; Debian has it below the architecture's directory.
const hipLang = "lib/cmake/hip-lang/hip-lang-config.cmake"

// complete adds what Debian's packages lack to be a ROCm root: directories that
// CMake packages check for, a compiler in its usual place, and the links that
// clang's own -lamdhip64 needs.
func (r *root) complete(clang string) error {
	for _, dir := range []string{"bin", "llvm/bin"} {
		if err := os.MkdirAll(filepath.Join(r.dir, dir), 0o755); err != nil {
			return fault.Write(err, filepath.Join(r.dir, dir))
		}
	}
	if err := link(clang, filepath.Join(r.dir, "llvm", "bin", "clang++")); err != nil {
		return err
	}
	if r.lib == "lib" {
		return nil
	}
	forward := filepath.Join(r.dir, filepath.FromSlash(hipLang))
	if _, err := os.Stat(forward); err != nil {
		if err := os.MkdirAll(filepath.Dir(forward), 0o755); err != nil {
			return fault.Write(err, forward)
		}
		text := "include(\"${CMAKE_CURRENT_LIST_DIR}/../../../" + r.lib + "/cmake/hip-lang/hip-lang-config.cmake\")\n"
		if err := os.WriteFile(forward, []byte(text), 0o644); err != nil {
			return fault.Write(err, forward)
		}
	}
	names, _ := filepath.Glob(filepath.Join(r.dir, r.lib, "*.so"))
	for _, name := range names {
		at := filepath.Join(r.dir, "lib", filepath.Base(name))
		to, err := filepath.Rel(filepath.Dir(at), name)
		if err != nil {
			return err
		}
		if err := link(to, at); err != nil {
			return err
		}
	}
	return nil
}

// reImported matches where a CMake package says a library is, and its soname.
var reImported = regexp.MustCompile(`IMPORTED_LOCATION_\w+ "\$\{_IMPORT_PREFIX\}/([^"]+\.so[^"]*)"(?:\s+IMPORTED_SONAME_\w+ "([^"]+)")?`)

// stubs returns an import library for every library that a CMake package of the
// root names: with the symbols of the real one where it was downloaded.
func (r *root) stubs() ([]importlib.Library, error) {
	var out []importlib.Library
	seen := map[string]bool{}
	err := filepath.WalkDir(filepath.Join(r.dir, r.lib, "cmake"), func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(name) != ".cmake" {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for _, m := range reImported.FindAllStringSubmatch(string(data), -1) {
			if seen[m[1]] || !filepath.IsLocal(m[1]) {
				continue
			}
			seen[m[1]] = true
			s := importlib.Library{Path: filepath.Join(r.dir, filepath.FromSlash(m[1])), Soname: m[2]}
			if _, err := os.Stat(s.Path); err == nil {
				if s, err = importlib.Read(s.Path); err != nil {
					return err
				}
			}
			if s.Soname == "" {
				s.Soname = filepath.Base(s.Path)
			}
			out = append(out, s)
		}
		return nil
	})
	return out, err
}

// makeStubs puts import libraries where the CMake packages expect libraries,
// and drops the links that lead nowhere. It returns their sonames.
func (r *root) makeStubs(ctx context.Context, clang, scratch string) ([]string, error) {
	list, err := r.stubs()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, s := range list {
		if err := s.Make(ctx, clang, scratch); err != nil {
			return nil, err
		}
		at := filepath.Join(filepath.Dir(s.Path), s.Soname)
		if _, err := os.Lstat(at); err != nil {
			if err := link(filepath.Base(s.Path), at); err != nil {
				return nil, err
			}
		}
		names = append(names, s.Soname)
	}
	for _, dir := range []string{r.lib, "lib"} {
		links, _ := filepath.Glob(filepath.Join(r.dir, dir, "*.so*"))
		for _, name := range links {
			if _, err := os.Stat(name); err != nil {
				os.Remove(name)
			}
		}
	}
	slices.Sort(names)
	return names, nil
}

// size is what the root takes on disk.
func (r *root) size() int64 {
	var n int64
	_ = filepath.WalkDir(r.dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil
	})
	return n
}
