package toolchain

import (
	"slices"
	"strings"

	"dot4fa/internal/machine"
)

// manager is a distribution's package manager.
type manager struct {
	command string
	like    []string // IDs in /etc/os-release
}

var managers = []manager{
	{"sudo apt-get install", []string{"debian", "ubuntu"}},
	{"sudo dnf install", []string{"fedora", "rhel", "centos"}},
	{"sudo pacman -S", []string{"arch"}},
	{"sudo zypper install", []string{"suse", "opensuse", "sles"}},
}

// names of a package: for apt-get, dnf, pacman, zypper.
type names [4]string

func same(n string) names { return names{n, n, n, n} }

// dev is a development package that only differs in its suffix; Arch has none.
func dev(n string) names { return names{n + "-dev", n + "-devel", n, n + "-devel"} }

// hostPackages by what is missing.
var hostPackages = map[string]names{
	"cmake":    same("cmake"),
	"ninja":    {"ninja-build", "ninja-build", "ninja", "ninja"},
	"cc":       same("gcc"),
	"cxx":      {"g++", "gcc-c++", "gcc", "gcc-c++"},
	"launcher": same("ccache"),
	"git":      same("git"),
	"bundler":  {"clang-tools-%", "clang-tools-extra", "clang", "clang-tools"},
	"lld":      {"lld-%", "lld", "lld", "lld"},
}

// rocmPackages by what is missing of an installation, for each layout that comes
// from a package manager. Before 7.14 AMD named them after the part, then after
// the whole; distributions have names of their own.
var rocmPackages = map[Layout]map[string]names{
	LayoutOpt: {
		"hip":            {"hip-dev", "hip-devel", "hip-runtime-amd", "hip-devel"},
		"hip-lang":       {"hip-dev", "hip-devel", "hip-runtime-amd", "hip-devel"},
		"hipblas":        dev("hipblas"),
		"hipblas-common": dev("hipblas-common"),
		"rocblas":        dev("rocblas"),
		"hsa-runtime64":  {"hsa-rocr-dev", "hsa-rocr-devel", "hsa-rocr", "hsa-rocr-devel"},
		"amd_comgr":      {"comgr", "comgr", "comgr", "comgr"},
		"AMDDeviceLibs":  same("rocm-device-libs"),
		"clang":          same("rocm-llvm"),
	},
	LayoutCore: {
		"hipblas":        dev("amdrocm-blas"),
		"hipblas-common": dev("amdrocm-hipblas-common"),
		"rocblas":        dev("amdrocm-blas"),
		"":               same("amdrocm-core-sdk"), // all of it
	},
	LayoutSystem: {
		"hip":            {"libamdhip64-dev", "rocm-hip-devel", "hip-runtime-amd", "hip-devel"},
		"hip-lang":       {"libamdhip64-dev", "rocm-hip-devel", "hip-runtime-amd", "hip-devel"},
		"hipblas":        {"libhipblas-dev", "hipblas-devel", "hipblas", "hipblas-devel"},
		"hipblas-common": {"libhipblas-common-dev", "hipblas-common-devel", "hipblas-common", "hipblas-common-devel"},
		"rocblas":        {"librocblas-dev", "rocblas-devel", "rocblas", "rocblas-devel"},
		"hsa-runtime64":  {"libhsa-runtime-dev", "rocm-runtime-devel", "hsa-rocr", "rocm-runtime-devel"},
		"amd_comgr":      {"libamd-comgr-dev", "rocm-comgr-devel", "comgr", "rocm-comgr-devel"},
		"AMDDeviceLibs":  {"rocm-device-libs-%", "rocm-device-libs", "rocm-device-libs", "rocm-device-libs"},
		"clang":          {"clang-% clang-tools-% lld-%", "rocm-clang rocm-lld", "rocm-llvm", "clang lld"},
	},
}

// Install returns the command that installs a program on a machine, or says what
// to install where its package manager is not known.
func Install(on machine.System, program string) string {
	return finder{on}.install("", hostPackages[program])
}

// install returns the command that installs the packages, or says what to
// install where the distribution is not known. major replaces a % in a name: the
// version of clang that goes with the rest.
func (s finder) install(major string, what ...names) string {
	ids := s.Distribution()
	for i, m := range managers {
		for _, id := range ids {
			if slices.Contains(m.like, id) {
				return m.command + " " + packageList(i, major, what)
			}
		}
	}
	return "install " + packageList(0, major, what)
}

func packageList(manager int, major string, what []names) string {
	var list []string
	for _, n := range what {
		for _, name := range strings.Fields(strings.ReplaceAll(n[manager], "%", major)) {
			if !slices.Contains(list, name) {
				list = append(list, name)
			}
		}
	}
	return strings.Join(list, " ")
}

// complete returns what adds the missing parts to r.
func (s finder) complete(r ROCm, parts ...string) string {
	switch r.Layout {
	case LayoutWheel:
		return `python -m pip install "rocm[libraries,devel]" && rocm-sdk init`
	case LayoutNix:
		return "add rocmPackages." + strings.Join(parts, ", rocmPackages.") + " to the shell, so that CMAKE_PREFIX_PATH names it"
	case LayoutBootstrap:
		return "dot4fa toolchain bootstrap " + r.Root + "  # makes it anew"
	}
	var what []names
	for _, p := range parts {
		n, ok := rocmPackages[r.Layout][p]
		if !ok {
			n = rocmPackages[r.Layout][""]
		}
		what = append(what, n)
	}
	return s.install(major(r), what...)
}

// major is the first number of r's clang, or of the newest one that the
// distribution's ROCm is made with where there is none.
func major(r ROCm) string {
	m, _, _ := strings.Cut(r.Clang.Version, ".")
	if m == "" {
		return "21"
	}
	return m
}
