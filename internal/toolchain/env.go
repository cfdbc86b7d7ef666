package toolchain

import (
	"path/filepath"
	"sort"
	"strings"
)

// Settings are what CMake is given so that it uses one ROCm and no other.
type Settings struct {
	Env   []string          // NAME=value, for the configure command
	Cache map[string]string // -D entries; CMAKE_PREFIX_PATH is a ;-list
}

// Settings returns everything that names r to CMake, to clang and to upstream's
// build, all of it at once: upstream reads ROCM_PATH, CMake HIPCXX, clang
// HIP_DEVICE_LIB_PATH, hip's CMake package HIP_PATH and HIP_PLATFORM, and one
// left over from another installation mixes the two.
func (r ROCm) Settings() Settings {
	if !r.Found() {
		return Settings{}
	}
	s := Settings{Cache: map[string]string{
		"CMAKE_HIP_COMPILER_ROCM_ROOT": r.Root,
		"CMAKE_PREFIX_PATH":            strings.Join(r.PrefixPath(), ";"),
	}}
	env := map[string]string{
		"ROCM_PATH":    r.Root,
		"HIP_PATH":     r.Root,
		"HIP_PLATFORM": "amd", // where CUDA is installed too, hip's package chooses that by itself
	}
	if r.Clang.Found() {
		env["HIPCXX"] = r.Clang.Path
		env["HIP_CLANG_PATH"] = filepath.Dir(r.Clang.Path)
		s.Cache["CMAKE_HIP_COMPILER"] = r.Clang.Path
	}
	if r.DeviceLibs != "" {
		env["HIP_DEVICE_LIB_PATH"] = r.DeviceLibs
	}
	if r.CompileOnly {
		env["HIPFLAGS"] = strings.Join(r.Flags(), " ")
	}
	names := make([]string, 0, len(env))
	for name := range env {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		s.Env = append(s.Env, name+"="+env[name])
	}
	return s
}

// PrefixPath is where CMake looks for packages: the root, and the directory of
// each package that lies outside it.
func (r ROCm) PrefixPath() []string {
	paths := []string{r.Root}
	for _, p := range r.Packages {
		if p.Dir != "" && !inside(p.Dir, r.Root) {
			paths = append(paths, p.Dir)
		}
	}
	return paths
}

// Flags tell a clang where everything of r is: of its own accord one that belongs
// to no ROCm would find nothing. HIPFLAGS cannot pass a path with a space.
func (r ROCm) Flags() []string {
	f := []string{"--rocm-path=" + r.Root}
	if r.DeviceLibs != "" {
		f = append(f, "--rocm-device-lib-path="+r.DeviceLibs)
	}
	for _, dir := range r.Include {
		f = append(f, "-isystem", dir)
	}
	return f
}

// inside reports whether path is dir or lies in it.
func inside(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}
