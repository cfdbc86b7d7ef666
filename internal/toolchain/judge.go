package toolchain

import (
	"fmt"
	"path"
	"strings"

	"dot4fa/internal/finding"
	"dot4fa/internal/recipe"
)

// Require returns an Environment fault for the first thing that keeps r from
// being built, with every way on in its hint.
func (s Set) Require(r *recipe.Recipe) error { return s.Judge(r).Err() }

// Judge says of everything that building r takes whether it is there and fits.
func (s Set) Judge(r *recipe.Recipe) finding.List {
	var l finding.List
	s.judgeHost(&l, r.Backend)
	switch r.Backend {
	case recipe.HIP:
		s.judgeROCm(&l, r)
	case recipe.CUDA:
		s.judgeCUDA(&l)
	}
	return l
}

func (s Set) judgeHost(l *finding.List, backend recipe.Backend) {
	switch {
	case !s.CMake.Found():
		l.Fail("cmake", "no cmake on PATH", s.on.install("", hostPackages["cmake"]))
	case backend == recipe.HIP && s.CMake.Version != "" && Version(s.CMake.Version).Less(MinCMake):
		l.Fail("cmake", fmt.Sprintf("%s is %s; HIP as a language needs %s", s.CMake.Path, s.CMake.Version, MinCMake),
			s.on.install("", hostPackages["cmake"]), "python -m pip install cmake  # and put it first on PATH")
	default:
		l.OK("cmake", s.CMake.String())
	}
	for _, t := range []struct {
		check string
		tool  Tool
	}{{"ninja", s.Ninja}, {"cc", s.CC}, {"cxx", s.CXX}} {
		switch {
		case !t.tool.Found():
			mend := s.on.install("", hostPackages[t.check])
			if _, env, ok := strings.Cut(t.tool.Name, "("); ok {
				mend = "unset " + strings.TrimSuffix(env, ")")
			}
			l.Fail(t.check, "no "+t.tool.Name+" on PATH", mend)
		case strings.HasPrefix(path.Base(t.tool.Path), "hipcc"):
			l.Fail(t.check, fmt.Sprintf("%s is %s: upstream then compiles everything with hipcc, its CPU code too", t.tool.Name, t.tool.Path),
				"unset CC CXX")
		default:
			l.OK(t.check, t.tool.String())
		}
	}
	switch off := s.on.Getenv("CCACHE_DISABLE"); {
	case s.Launcher.Found() && off != "" && path.Base(s.Launcher.Path) == "ccache":
		l.Warn("compiler cache", fmt.Sprintf("CCACHE_DISABLE=%s switches %s off", off, s.Launcher.Path), "unset CCACHE_DISABLE")
	case s.Launcher.Found():
		l.OK("compiler cache", s.Launcher.String())
	default:
		l.Warn("compiler cache", "no ccache or sccache on PATH: a changed header compiles everything again", s.on.install("", hostPackages["launcher"]))
	}
}

// String is the tool as a finding shows it.
func (t Tool) String() string {
	if t.Version == "" {
		return t.Path
	}
	return t.Version + ", " + t.Path
}

func (s Set) judgeCUDA(l *finding.List) {
	if !s.NVCC.Found() {
		l.Fail("nvcc", "this recipe builds for NVIDIA GPUs and no nvcc was found",
			"install the CUDA toolkit", "export CUDACXX=/path/to/nvcc", wayOut)
		return
	}
	l.OK("nvcc", s.NVCC.String())
}

// wayOut builds without ROCm.
const wayOut = "dot4fa build --recipe cpu  # for the CPU"

func (s Set) judgeROCm(l *finding.List, r *recipe.Recipe) {
	rocm := s.ROCm
	if !rocm.Found() {
		s.judgeAbsence(l)
		return
	}
	if !s.judgeChoice(l) {
		return
	}
	switch {
	case rocm.HIP == "":
		l.Warn("hip", fmt.Sprintf("%s does not say its version; upstream needs %s", rocm.HIPConfig, MinHIP), s.on.complete(rocm, "hip"))
	case rocm.HIP.Less(MinHIP):
		l.Fail("hip", fmt.Sprintf("HIP %s in %s; upstream needs %s or newer", rocm.HIP, rocm.Root, MinHIP),
			s.newer(), wayOut)
	default:
		l.OK("hip", fmt.Sprintf("%s, %s", rocm.HIP, rocm.HIPConfig))
	}
	s.judgeClang(l, r)
	s.judgePackages(l)
	s.judgeMixture(l)
	if len(r.GPUTargets) > 0 {
		s.judgeBLAS(l, r.GPUTargets)
	}
}

// newer is the way to a HIP that upstream takes.
func (s Set) newer() string {
	for _, o := range s.Others {
		if !o.HIP.Less(MinHIP) {
			return "export ROCM_PATH=" + o.Root
		}
	}
	return "install ROCm 6.1 or newer, and name it with ROCM_PATH when it is not in /opt/rocm"
}

// judgeAbsence says what was looked at and what it lacked.
func (s Set) judgeAbsence(l *finding.List) {
	what := "this recipe builds for AMD GPUs and no ROCm was found"
	var mend []string
	traces := s.on.traces()
	if len(traces) == 0 {
		what += " in ROCM_PATH, HIP_PATH, /opt/rocm, /opt/rocm-*, /opt/rocm/core-*, /usr or by rocm-sdk or hipconfig on PATH"
	} else {
		what += ": " + strings.Join(traces, "; ")
	}
	for _, v := range []string{"ROCM_PATH", "HIP_PATH"} {
		if dir := s.on.Getenv(v); dir != "" {
			if sub := s.on.below(dir); sub != "" {
				mend = append(mend, "export ROCM_PATH="+sub)
			}
		}
	}
	if p := s.on.LookPath("rocm-sdk"); p != "" {
		what += fmt.Sprintf("; %s is there without its development files", p)
		mend = append(mend, s.on.complete(ROCm{Layout: LayoutWheel}))
	}
	for _, dir := range append([]string{"/opt/rocm"}, s.on.versioned("/opt/rocm-*", "/opt/rocm/core-*")...) {
		if s.on.hasRuntime(dir) {
			mend = append(mend, s.on.complete(ROCm{Layout: layout(s.on.Resolve(dir))}, "hip", "hipblas", "rocblas"))
			break
		}
	}
	if len(mend) == 0 {
		mend = append(mend, "install ROCm 6.1 or newer (ROCM_PATH=/path names one elsewhere than /opt/rocm)")
	}
	l.Fail("rocm", what, append(mend, "dot4fa toolchain bootstrap ~/rocm && dot4fa build --toolchain ~/rocm  # compiles here, runs elsewhere", wayOut)...)
}

// judgeChoice reports whether the ROCm that was found is the one that was meant.
func (s Set) judgeChoice(l *finding.List) bool {
	rocm := s.ROCm
	for _, v := range []string{"ROCM_PATH", "HIP_PATH"} {
		dir := s.on.Getenv(v)
		if dir == "" || s.on.owner(dir) != "" || inside(dir, rocm.Root) || s.on.readPrefix(s.on.Resolve(dir)) != nil || rocm.From == s.on.called(v) {
			continue
		}
		roots := []string{rocm.Root}
		if sub := s.on.below(dir); sub != "" {
			roots = append([]string{sub}, roots...)
		}
		name := s.on.called(v)
		var mend []string
		for _, root := range roots {
			if name == v {
				mend = append(mend, "export "+v+"="+root)
			} else {
				mend = append(mend, "dot4fa build --toolchain "+root)
			}
		}
		if name == v {
			mend = append(mend, "unset "+v)
		}
		l.Fail("rocm", fmt.Sprintf("%s=%s %s; %s has one, but was not asked for", name, dir, s.on.lacks(dir), rocm.Root), mend...)
		return false
	}
	what := rocm.Root
	if rocm.Version != "" {
		what = string(rocm.Version) + ", " + what
	}
	if rocm.From != rocm.Root {
		what += " (from " + rocm.From + ")"
	}
	if rocm.CompileOnly {
		what += "; for compiling only, its programs run elsewhere"
	}
	l.OK("rocm", what)
	return true
}
