package toolchain

import (
	"bytes"
	"context"
	"path"
	"path/filepath"
	"strings"
)

// Named is the variable that says which ROCm to use, whatever else the
// environment says; it is the default of --toolchain.
const Named = "DOT4FA_ROCM"

// MinHIP is the oldest HIP that upstream's build takes.
const MinHIP Version = "6.1"

// Layout is how an installation of ROCm is laid out.
type Layout string

// The layouts that are told apart.
const (
	LayoutOpt       Layout = "opt"       // one directory, AMD's packages up to 7.2: /opt/rocm-7.2.4
	LayoutCore      Layout = "core"      // /opt/rocm/core-7.14, AMD's packages from then on
	LayoutWheel     Layout = "wheel"     // TheRock's python wheels: _rocm_sdk_devel
	LayoutSystem    Layout = "system"    // spread over /usr by a distribution
	LayoutNix       Layout = "nix"       // one store path for each part
	LayoutBootstrap Layout = "bootstrap" // made by `dot4fa toolchain bootstrap`, for compiling only
)

// ROCm is one installation of ROCm, or what was found of it.
type ROCm struct {
	Root   string `json:"root,omitempty"` // symbolic links followed; empty: none
	From   string `json:"from,omitempty"` // what led there: a variable, a program, a path
	Layout Layout `json:"layout,omitempty"`

	Version   Version `json:"version,omitempty"`    // ROCm's; empty where it does not say
	HIP       Version `json:"hip,omitempty"`        // of hip's CMake package, which upstream asks for
	HIPConfig string  `json:"hip_config,omitempty"` // that package's file

	Clang      Tool   `json:"clang"`
	LLVM       string `json:"llvm,omitempty"`        // the release in clang's own words, as "roc-7.2.4"
	Bundler    Tool   `json:"bundler"`               // clang-offload-bundler
	Linker     Tool   `json:"linker"`                // lld, which links device code
	DeviceLibs string `json:"device_libs,omitempty"` // the directory with ocml.bc

	Packages []Package `json:"packages,omitempty"`

	// CompileOnly is set for a prefix that can compile and link and holds
	// nothing to run with.
	CompileOnly bool     `json:"compile_only,omitempty"`
	Include     []string `json:"include,omitempty"` // what its clang has to be told to search
}

// Found reports whether there is any ROCm.
func (r ROCm) Found() bool { return r.Root != "" }

// Bin returns the directories with r's programs.
func (r ROCm) Bin() []string {
	if !r.Found() {
		return nil
	}
	dirs := []string{path.Join(r.Root, "bin"), path.Join(r.Root, "llvm/bin"), path.Join(r.Root, "lib/llvm/bin")}
	if r.Clang.Found() {
		dirs = append(dirs, path.Dir(r.Clang.Path))
	}
	return dirs
}

// Package is a CMake package that upstream's HIP build asks for, by itself or
// through another one.
type Package struct {
	Name string `json:"name"`
	Dir  string `json:"dir,omitempty"` // of its CMake files; empty: not found
	By   string `json:"-"`             // who asks for it
}

// Package returns the package of that name; its Dir is empty when it is missing.
func (r ROCm) Package(name string) Package {
	for _, p := range r.Packages {
		if p.Name == name {
			return p
		}
	}
	return Package{Name: name}
}

// wanted are the CMake packages of a HIP build and who asks for each.
var wanted = []Package{
	{Name: "hip", By: "llama.cpp"},
	{Name: "hip-lang", By: "CMake"},
	{Name: "hipblas", By: "llama.cpp"},
	{Name: "rocblas", By: "llama.cpp"},
	{Name: "hipblas-common", By: "hipblas"},
	{Name: "hsa-runtime64", By: "hip"},
	{Name: "amd_comgr", By: "hip"},
	{Name: "AMDDeviceLibs", By: "hip"},
}

// libDirs are where a prefix has its libraries, by distribution.
var libDirs = []string{"lib", "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"}

// rocmAt describes the ROCm in dir; it is empty when dir holds none. What makes
// a directory one is hip's CMake package, which upstream's build asks for: a
// clang alone is not enough.
func (s finder) rocmAt(ctx context.Context, dir string) ROCm {
	r := ROCm{Root: s.Resolve(dir)}
	made := s.readPrefix(r.Root)
	if made != nil {
		r.Root = made.Root
	}
	if r.HIPConfig = s.cmakeFile(r.Root, "hip"); r.HIPConfig == "" {
		for _, sub := range s.versioned(path.Join(dir, "core-*")) { // ROCM_PATH=/opt/rocm beside /opt/rocm/core-7.14
			if r := s.rocmAt(ctx, sub); r.Found() {
				return r
			}
		}
		return ROCm{}
	}
	if home := s.home(r.Root); home != r.Root {
		r.Root, r.HIPConfig = home, s.cmakeFile(home, "hip")
	}
	r.Layout = layout(r.Root)
	r.HIP = s.hipVersion(r)
	r.Version = s.rocmVersion(r)
	if made != nil {
		r.Layout, r.CompileOnly, r.Include = LayoutBootstrap, true, made.Include
		r.DeviceLibs = made.DeviceLibs
	}
	for _, p := range wanted {
		if f := s.cmakeFile(r.Root, p.Name); f != "" {
			p.Dir = path.Dir(f)
		} else if f := s.elsewhere(p.Name); r.Layout == LayoutNix && f != "" {
			p.Dir = path.Dir(f)
		}
		r.Packages = append(r.Packages, p)
	}
	s.compiler(ctx, &r, made)
	if r.DeviceLibs == "" {
		r.DeviceLibs = s.deviceLibs(r)
	}
	return r
}

// home is the installation that dir shows: /opt/rocm/lib may be a link into
// /opt/rocm/core-7.14. It is "" when dir shows none.
func (s finder) home(dir string) string {
	f := s.cmakeFile(dir, "hip")
	if f == "" {
		return ""
	}
	if home, _, ok := strings.Cut(s.Resolve(f), "/lib/cmake/"); ok && inside(home, dir) {
		return home
	}
	return dir
}

func layout(root string) Layout {
	switch base := path.Base(root); {
	case root == "/usr":
		return LayoutSystem
	case strings.HasPrefix(root, "/nix/store/"):
		return LayoutNix
	case strings.HasPrefix(base, "_rocm_sdk"):
		return LayoutWheel
	case strings.HasPrefix(base, "core") && strings.HasPrefix(root, "/opt/rocm"):
		return LayoutCore
	}
	return LayoutOpt
}

// cmakeFile returns the configuration file of a CMake package under root.
func (s finder) cmakeFile(root, name string) string {
	for _, lib := range libDirs {
		dir := path.Join(root, lib, "cmake", name)
		for _, file := range []string{name + "-config.cmake", name + "Config.cmake", strings.ToLower(name) + "-config.cmake"} {
			if f := path.Join(dir, file); s.IsFile(f) {
				return f
			}
		}
	}
	return ""
}

// elsewhere looks for a CMake package where the environment leads CMake to.
func (s finder) elsewhere(name string) string {
	for _, v := range []string{name + "_DIR", name + "_ROOT"} {
		if dir := s.Getenv(v); dir != "" {
			if f := path.Join(dir, name+"-config.cmake"); s.IsFile(f) {
				return f
			}
			if f := s.cmakeFile(dir, name); f != "" {
				return f
			}
		}
	}
	for _, dir := range filepath.SplitList(s.Getenv("CMAKE_PREFIX_PATH")) {
		if f := s.cmakeFile(dir, name); f != "" {
			return f
		}
	}
	return ""
}

// hipVersion is the version of hip's CMake package.
func (s finder) hipVersion(r ROCm) Version {
	file := path.Join(path.Dir(r.HIPConfig), "hip-config-version.cmake")
	for _, line := range bytes.Split(s.ReadFile(file), []byte("\n")) {
		if bytes.Contains(line, []byte("PACKAGE_VERSION ")) && bytes.Contains(line, []byte("set")) {
			return ParseVersion(string(line))
		}
	}
	// Also where hipconfig has its answer from: bin/.hipVersion, share/hip/version.
	for _, name := range []string{"share/hip/version", "bin/.hipVersion"} {
		var parts []string
		for _, key := range []string{"HIP_VERSION_MAJOR=", "HIP_VERSION_MINOR=", "HIP_VERSION_PATCH="} {
			for _, line := range strings.Split(string(s.ReadFile(path.Join(r.Root, name))), "\n") {
				if v, ok := strings.CutPrefix(line, key); ok {
					parts = append(parts, strings.TrimSpace(v))
				}
			}
		}
		if len(parts) > 1 {
			return Version(strings.Join(parts, "."))
		}
	}
	return ""
}

// rocmVersion is the version of the whole, "" where nothing says it.
func (s finder) rocmVersion(r ROCm) Version {
	for _, name := range []string{".info/version", ".info/version-dev", "share/doc/rocm-core/version"} {
		if v := ParseVersion(string(s.ReadFile(path.Join(r.Root, name)))); v != "" {
			return v
		}
	}
	if r.Layout != LayoutSystem && r.Layout != LayoutBootstrap {
		return trailingVersion(path.Base(r.Root))
	}
	return ""
}
