package toolchain

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"dot4fa/internal/finding"
	"dot4fa/internal/recipe"
)

// judgePackages checks the CMake packages that a configure will ask for.
func (s Set) judgePackages(l *finding.List) {
	rocm := s.ROCm
	var missing, parts, found []string
	for _, p := range rocm.Packages {
		switch {
		case p.Dir != "":
			found = append(found, p.Name)
		case s.wants(p):
			missing = append(missing, fmt.Sprintf("%s (asked for by %s)", p.Name, p.By))
			parts = append(parts, p.Name)
		}
	}
	if len(missing) > 0 {
		l.Fail("cmake packages", fmt.Sprintf("%s has no CMake package %s", rocm.Root, strings.Join(missing, ", ")), s.on.complete(rocm, parts...))
		return
	}
	lang := rocm.Package("hip-lang").Dir
	if v := Version(s.CMake.Version); v != "" && v.Less(anyLibCMake) && lang != path.Join(rocm.Root, "lib/cmake/hip-lang") {
		l.Fail("cmake packages", fmt.Sprintf("CMake %s looks for hip-lang only in %s/lib/cmake, and it is in %s", v, rocm.Root, path.Dir(lang)),
			"python -m pip install cmake  # "+string(anyLibCMake)+" or newer, and put it first on PATH", s.on.install("", hostPackages["cmake"]))
		return
	}
	l.OK("cmake packages", strings.Join(found, ", "))
}

// wants reports whether somebody asks for p: upstream always, a package only
// when its files say so.
func (s Set) wants(p Package) bool {
	by := s.ROCm.Package(p.By)
	if by.Dir == "" {
		return p.By == "llama.cpp" || p.By == "CMake"
	}
	ask := regexp.MustCompile(`(?i)\bfind_(dependency|package)\s*\(\s*"?` + regexp.QuoteMeta(p.Name) + `\b`)
	for _, f := range s.on.Glob(path.Join(by.Dir, "*.cmake")) {
		if ask.Match(s.on.ReadFile(f)) {
			return true
		}
	}
	return false
}

func (s Set) judgeClang(l *finding.List, r *recipe.Recipe) {
	rocm := s.ROCm
	clang := rocm.Clang
	if !clang.Found() {
		what, mend := "ROCm has no clang++ for HIP", []string{s.on.complete(rocm, "clang")}
		if v := s.on.Getenv("HIPCXX"); v != "" {
			what, mend = fmt.Sprintf("HIPCXX=%s is no program", v), []string{"unset HIPCXX"}
		}
		l.Fail("hip compiler", rocm.Root+": "+what, append(mend, "export HIPCXX=/path/to/clang++", wayOut)...)
		return
	}
	if base := path.Base(clang.Path); strings.HasPrefix(base, "hipcc") || !strings.Contains(base, "clang") {
		l.Fail("hip compiler", fmt.Sprintf("HIPCXX=%s: CMake takes a clang for HIP, and no wrapper", clang.Path), "unset HIPCXX", "export HIPCXX=/path/to/clang++")
		return
	}
	what := clang.String()
	if rocm.LLVM != "" {
		what += ", " + rocm.LLVM
	} else if rocm.Version != "" {
		what += ", of ROCm " + string(rocm.Version)
	}
	switch bad := rocm.Bad(r.GPUTargets); {
	case bad == nil:
		l.OK("hip compiler", what)
	case bad.lowered(r):
		l.Warn("hip compiler", fmt.Sprintf("%s %s; the recipe compiles with %s (%s)", what, bad.Fault, bad.Lower, bad.Source))
	default:
		l.Fail("hip compiler", fmt.Sprintf("%s %s: %s", what, bad.Fault, bad.Source),
			s.otherRelease(bad),
			fmt.Sprintf(`printf 'name: slow\nsummary: device code at %[2]s\nextends: %[1]s\ncmake:\n  CMAKE_HIP_FLAGS_RELEASE: %[2]s -DNDEBUG\n' > slow.yaml && dot4fa build --recipe slow.yaml`, r.Name, bad.Lower))
	}
	if rocm.Bundler.Found() {
		l.OK("offload bundler", rocm.Bundler.Path)
	} else {
		l.Fail("offload bundler", fmt.Sprintf("no clang-offload-bundler beside %s or on PATH: CMake would not know the compiler and drop -O3", clang.Path),
			s.missingTool(hostPackages["bundler"]))
	}
	if rocm.Linker.Found() {
		l.OK("device linker", rocm.Linker.Path)
	} else {
		l.Fail("device linker", fmt.Sprintf("no lld beside %s or on PATH: device code cannot be linked", clang.Path), s.missingTool(hostPackages["lld"]))
	}
	s.judgeBitcode(l, r.GPUTargets)
	s.judgeHeaders(l)
}

// otherRelease names an installation whose compiler is not b.
func (s Set) otherRelease(b *BadCompiler) string {
	for _, o := range s.Others {
		if o.LLVM != s.ROCm.LLVM && !o.HIP.Less(MinHIP) {
			return "export ROCM_PATH=" + o.Root
		}
	}
	return "install another release than " + strings.Join(b.Releases, " and ") + ", and name it with ROCM_PATH"
}

// missingTool mends a part of the compiler: AMD's packages have them all in one.
func (s Set) missingTool(n names) string {
	switch s.ROCm.Layout {
	case LayoutSystem, LayoutBootstrap:
		return s.on.install(major(s.ROCm), n)
	}
	return s.on.complete(s.ROCm, "clang")
}

var reLLVM = regexp.MustCompile(`/(?:clang/|llvm-)(\d+)(?:[./]|$)`)

// judgeBitcode checks the device libraries: that there are some, for these
// targets, and that the compiler can read them.
func (s Set) judgeBitcode(l *finding.List, targets []string) {
	rocm := s.ROCm
	if rocm.DeviceLibs == "" {
		l.Fail("device libraries", fmt.Sprintf("no ocml.bc where %s looks (%s/amdgcn/bitcode, %s/lib/llvm/amdgcn/bitcode, its own lib/clang): it would say \"cannot find ROCm device library\"",
			path.Base(rocm.Clang.Path), rocm.Root, rocm.Root),
			s.on.complete(rocm, "AMDDeviceLibs"), "export HIP_DEVICE_LIB_PATH=/directory/with/ocml.bc")
		return
	}
	for _, t := range targets {
		isa := "oclc_isa_version_" + strings.TrimPrefix(t, "gfx") + ".bc"
		if !s.on.IsFile(path.Join(rocm.DeviceLibs, isa)) {
			l.Fail("device libraries", fmt.Sprintf("%s has no %s: this ROCm does not know %s", rocm.DeviceLibs, isa, t),
				s.otherTargets(targets, t)...)
			return
		}
	}
	if m := reLLVM.FindStringSubmatch(rocm.DeviceLibs); m != nil {
		made, _ := strconv.Atoi(m[1])
		if reads := Version(rocm.Clang.Version).Numbers(); len(reads) > 0 && made > reads[0] {
			l.Fail("device libraries", fmt.Sprintf("%s is made by LLVM %d, and clang %d cannot read that", rocm.DeviceLibs, made, reads[0]),
				s.on.install(strconv.Itoa(made), rocmPackages[LayoutSystem]["clang"]), s.on.complete(rocm, "AMDDeviceLibs"))
			return
		}
	}
	l.OK("device libraries", rocm.DeviceLibs)
}

// otherTargets are the ways on without a target that this ROCm does not know.
func (s Set) otherTargets(targets []string, unknown string) []string {
	ways := []string{"install a newer ROCm, and name it with ROCM_PATH"}
	others := slices.DeleteFunc(slices.Clone(targets), func(t string) bool { return t == unknown })
	if len(others) > 0 {
		return append(ways, "dot4fa build --gpu-targets "+strings.Join(others, ","))
	}
	return append(ways, wayOut)
}

// looksForHeaders is the first clang that prefers a GCC with C++ headers to a
// newer one without (llvm/llvm-project#145056); LLVM 21 only warns.
const looksForHeaders = 22

// judgeHeaders checks that the newest GCC that clang will choose has C++ headers:
// clang goes by the directory of the C compiler, which comes without them.
func (s Set) judgeHeaders(l *finding.List) {
	if v := Version(s.ROCm.Clang.Version).Numbers(); len(v) > 0 && v[0] >= looksForHeaders {
		return
	}
	for _, triple := range s.on.Glob("/usr/lib/gcc/*-linux*") {
		newest := 0
		for _, dir := range s.on.Glob(triple + "/*") {
			if n, err := strconv.Atoi(path.Base(dir)); err == nil && n > newest && s.on.IsFile(path.Join(dir, "crtbegin.o")) {
				newest = n
			}
		}
		if newest == 0 {
			continue // no GCC, or one whose directories are named otherwise
		}
		dir := fmt.Sprintf("/usr/include/c++/%d", newest)
		if !s.on.IsDir(dir) {
			l.Fail("c++ headers", fmt.Sprintf("clang takes the newest GCC, %s/%d, and its C++ headers (%s) are missing: \"'cmath' file not found\"", triple, newest, dir),
				s.on.install(strconv.Itoa(newest), names{"libstdc++-%-dev", "libstdc++-devel", "gcc", "libstdc++-devel"}))
			return
		}
		l.OK("c++ headers", dir)
		return
	}
}

// judgeMixture refuses a build that would take parts from two installations.
func (s Set) judgeMixture(l *finding.List) {
	rocm := s.ROCm
	var other, roots []string
	unset := map[string]bool{}
	var mend []string
	for _, p := range s.on.strangers(rocm) {
		if p.root == "" {
			other = append(other, fmt.Sprintf("%s is of release %s", p.name, p.value))
			continue
		}
		other = append(other, fmt.Sprintf("%s lies in %s", p, p.root))
		if !slices.Contains(roots, p.root) {
			roots = append(roots, p.root)
		}
		if !unset[p.name] {
			unset[p.name] = true
			mend = append(mend, p.name)
		}
	}
	if len(other) > 0 {
		evidence := "the ROCm to use is " + rocm.Root
		if rocm.From != rocm.Root {
			evidence += ", from " + rocm.From
		}
		if rocm.Version != "" {
			evidence += " (" + string(rocm.Version) + ")"
		}
		var ways []string
		named := rocm.From == "--toolchain"
		switch {
		case len(mend) == 0:
			ways = append(ways, s.on.complete(rocm, "clang")+"  # again: its parts are of two releases")
		case named:
			ways = append(ways, "unset "+strings.Join(mend, " "))
		default:
			ways = append(ways, "unset "+strings.Join(mend, " ")+" && export ROCM_PATH="+rocm.Root)
		}
		switch {
		case len(roots) != 1:
		case named:
			ways = append(ways, "dot4fa build --toolchain "+roots[0]+"  # if that is the one to use")
		default:
			ways = append(ways, "export ROCM_PATH="+roots[0]+"  # if that is the one to use")
		}
		l.Fail("one rocm", evidence+", but "+strings.Join(other, ", "), ways...)
		return
	}
	if dirs := s.on.runsWith(rocm); len(dirs) > 0 {
		l.Warn("one rocm", fmt.Sprintf("LD_LIBRARY_PATH has another HIP runtime first (%s): programs built with %s would start with that", strings.Join(dirs, ", "), rocm.Root),
			"unset LD_LIBRARY_PATH  # programs built here find their libraries without it")
		return
	}
	what := "nothing leads elsewhere than to " + rocm.Root
	if n := len(s.Others); n > 0 {
		var roots []string
		for _, o := range s.Others {
			roots = append(roots, o.Root)
		}
		what += "; also installed and not used: " + strings.Join(roots, ", ")
	}
	l.OK("one rocm", what)
}

// judgeBLAS looks for rocBLAS's own kernels: it ends a program on a GPU that it
// has none for.
func (s Set) judgeBLAS(l *finding.List, targets []string) {
	dir := path.Join(s.ROCm.Root, "lib/rocblas/library")
	for _, lib := range libDirs {
		if d := path.Join(s.ROCm.Root, lib, "rocblas/library"); s.on.IsDir(d) {
			dir = d
		}
	}
	if s.ROCm.CompileOnly || !s.on.IsDir(dir) {
		return // not for running, or packed elsewhere
	}
	for _, t := range targets {
		if strings.HasSuffix(t, "-generic") {
			continue // rocBLAS goes by the GPU, not by what is built for
		}
		if len(s.on.Glob(path.Join(dir, "*"+t+"*"))) == 0 {
			l.Warn("rocblas kernels", fmt.Sprintf("%s has none for %s: rocBLAS ends the program with \"Cannot read TensileLibrary\" when it is needed", dir, t),
				s.blasMend(t)...)
			return
		}
	}
	l.OK("rocblas kernels", dir)
}

func (s Set) blasMend(target string) []string {
	mend := []string{s.on.complete(s.ROCm, "rocblas")}
	if strings.HasPrefix(target, "gfx11") {
		mend = append(mend, "dot4fa build --gpu-targets gfx1100  # and run with HSA_OVERRIDE_GFX_VERSION=11.0.0")
	}
	return mend
}
