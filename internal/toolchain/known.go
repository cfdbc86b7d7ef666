package toolchain

import (
	"slices"
	"strings"

	"dot4fa/internal/recipe"
)

// BadCompiler is a release of ROCm whose clang cannot compile what this project
// builds.
type BadCompiler struct {
	Releases []string // as clang names its own, without "roc-"
	Targets  string   // prefix of the GPU targets that are affected
	Fault    string
	Lower    string // the optimisation level that works
	Source   string
}

// KnownBad lists the compilers that were reported not to work. None of them was
// tried here.
var KnownBad = []BadCompiler{{
	Releases: []string{"7.2.3", "7.2.4"},
	Targets:  "gfx11",
	Fault:    "crashes on the attention units for gfx1100 at -O2 and -O3 (SIInsertWaitcnts)",
	Lower:    "-O1",
	Source:   "https://github.com/ROCm/legacy-rocm-build/issues/6680",
}}

// Bad returns the entry of KnownBad that r's compiler and the targets match, nil
// when there is none.
func (r ROCm) Bad(targets []string) *BadCompiler {
	release := strings.TrimPrefix(r.LLVM, "roc-")
	if release == "" && inside(r.Clang.Path, r.Root) { // a distribution's build does not say
		release = string(r.Version)
	}
	for i, b := range KnownBad {
		if !slices.Contains(b.Releases, release) {
			continue
		}
		for _, t := range targets {
			if strings.HasPrefix(t, b.Targets) {
				return &KnownBad[i]
			}
		}
	}
	return nil
}

// lowered reports whether the recipe compiles device code at the level that
// works.
func (b *BadCompiler) lowered(r *recipe.Recipe) bool {
	return slices.Contains(strings.Fields(r.CMake["CMAKE_HIP_FLAGS_RELEASE"]), b.Lower)
}
