package toolchain

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"
)

// pointer is a variable that leads a build to a ROCm.
type pointer struct {
	name, value string
	root        string // the installation it lies in, "" when in none
}

func (p pointer) String() string { return p.name + "=" + p.value }

// pointers are the variables that lead a part of a build to ROCm: upstream's
// CMake files, CMake's own search, clang, hipcc.
var pointerVars = []string{"ROCM_PATH", "HIP_PATH", "HIPCXX", "HIP_CLANG_PATH", "HIP_DEVICE_LIB_PATH",
	"hip_DIR", "hip_ROOT", "hipblas_DIR", "hipblas_ROOT", "rocblas_DIR", "rocblas_ROOT", "CMAKE_PREFIX_PATH"}

// strangers returns what leads elsewhere than to r. What lies in no ROCm at all
// is only one where it had to.
func (s finder) strangers(r ROCm) []pointer {
	var out []pointer
	for _, name := range pointerVars {
		for _, value := range filepath.SplitList(s.Getenv(name)) {
			if value == "" {
				continue
			}
			if name == "HIPCXX" && !strings.ContainsRune(value, '/') {
				value = s.LookPath(value)
			}
			p := pointer{name, value, s.owner(value)}
			switch {
			case p.root == r.Root || p.root == "" || inside(value, r.Root) || inside(s.Resolve(value), r.Root):
			case r.Layout == LayoutNix && strings.HasPrefix(p.root, "/nix/store/"):
			case r.Layout == LayoutBootstrap && name == "HIPCXX":
			case name == "HIPCXX" && p.root == "/usr": // a clang of the distribution; judged by what it lacks
			default:
				out = append(out, p)
			}
		}
	}
	// A point release may come with the compiler of an earlier one.
	if rel := strings.TrimPrefix(r.LLVM, "roc-"); rel != "" && len(r.Version.Numbers()) > 1 && !Version(rel).sameSeries(r.Version) && r.Layout != LayoutSystem && r.Layout != LayoutNix {
		if len(out) == 0 {
			out = append(out, pointer{r.Clang.Path, rel, ""})
		}
	}
	return out
}

// owner returns the root of the ROCm that path lies in, "" when it is in none.
func (s finder) owner(name string) string {
	for dir := s.Resolve(name); dir != "/"; dir = path.Dir(dir) {
		if home := s.home(dir); home != "" {
			return home
		}
		if s.IsFile(path.Join(dir, ".info/version")) {
			return dir
		}
	}
	return ""
}

// runsWith returns the directories of LD_LIBRARY_PATH that hold another HIP
// runtime than r's: the loader prefers them to what a program was linked with.
func (s finder) runsWith(r ROCm) []string {
	var out []string
	for _, dir := range filepath.SplitList(s.Getenv("LD_LIBRARY_PATH")) {
		if dir != "" && len(s.Glob(path.Join(dir, "libamdhip64.so*"))) > 0 && !inside(s.Resolve(dir), r.Root) {
			out = append(out, dir)
		}
	}
	return out
}

// traces says what was found of a ROCm where none can be used: each place with
// what it lacks.
func (s finder) traces() []string {
	var out []string
	for _, v := range []string{"ROCM_PATH", "HIP_PATH"} {
		if dir := s.Getenv(v); dir != "" {
			out = append(out, s.called(v)+"="+dir+" "+s.lacks(dir))
		}
	}
	seen := map[string]bool{}
	for _, dir := range append([]string{"/opt/rocm"}, s.versioned("/opt/rocm-*", "/opt/rocm/core-*")...) {
		to := s.Resolve(dir)
		switch {
		case seen[to]:
		case s.IsDir(dir):
			out = append(out, dir+" "+s.lacks(dir))
		case to != dir:
			out = append(out, fmt.Sprintf("%s leads to %s, which does not exist", dir, to))
		}
		seen[to] = true
	}
	return out
}

// lacks says why dir is no ROCm to build with.
func (s finder) lacks(dir string) string {
	switch {
	case !s.IsDir(dir):
		return "does not exist"
	case s.hasRuntime(dir):
		return "has what HIP programs run with and no lib/cmake/hip: the development packages are missing"
	}
	return "holds no ROCm: there is no lib/cmake/hip/hip-config.cmake"
}

func (s finder) hasRuntime(dir string) bool {
	for _, lib := range libDirs {
		if len(s.Glob(path.Join(dir, lib, "libamdhip64.so*"))) > 0 {
			return true
		}
	}
	return false
}

// below returns the ROCm in a subdirectory of dir: the variable names the
// directory that an archive was unpacked in. "" when there is none.
func (s finder) below(dir string) string {
	for _, sub := range s.Glob(path.Join(dir, "*")) {
		if s.cmakeFile(sub, "hip") != "" {
			return sub
		}
	}
	return ""
}
