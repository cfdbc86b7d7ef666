package toolchain

import (
	"context"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"

	"dot4fa/internal/machine"
)

// Use returns the machine with the ROCm in dir named before everything else,
// whatever the environment says. An empty dir is what DOT4FA_ROCM names, if
// anything.
func Use(on machine.System, dir string) machine.System {
	if dir == "" {
		dir = on.Getenv(Named)
	}
	if dir == "" {
		return on
	}
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	on.Vars = append(slices.Clip(on.Vars), "ROCM_PATH="+dir, "HIP_PATH=", Named+"="+dir)
	return on
}

// FindROCm returns the ROCm that a build uses; it is empty when there is none.
func FindROCm(ctx context.Context, on machine.System) ROCm {
	if all := (finder{on}).rocms(ctx); len(all) > 0 {
		return all[0]
	}
	return ROCm{}
}

// Clangs returns every clang++ on PATH of at least the given major version, the
// newest first and the one without a number in its name last.
func Clangs(ctx context.Context, on machine.System, least int) []Tool {
	s := finder{on}
	var majors []int
	for _, dir := range filepath.SplitList(s.Getenv("PATH")) {
		for _, file := range s.Glob(path.Join(dir, "clang++-*")) {
			n, err := strconv.Atoi(strings.TrimPrefix(path.Base(file), "clang++-"))
			if err == nil && n >= least && !slices.Contains(majors, n) {
				majors = append(majors, n)
			}
		}
	}
	slices.Sort(majors)
	slices.Reverse(majors)
	var names []string
	for _, n := range majors {
		names = append(names, "clang++-"+strconv.Itoa(n))
	}
	var out []Tool
	for _, name := range append(names, "clang++") {
		t := s.find(ctx, "clang++", name)
		if v := Version(t.Version).Numbers(); t.Found() && len(v) > 0 && v[0] >= least {
			out = append(out, t)
		}
	}
	return out
}

// candidate is a place that may hold ROCm.
type candidate struct{ dir, from string }

// rocms returns the installations of the machine, the one to use first. A
// variable wins over a program on PATH, which wins over the usual places; of
// several versions side by side the newest comes first, and what is too old last.
func (s finder) rocms(ctx context.Context) []ROCm {
	var out []ROCm
	for _, c := range s.candidates(ctx) {
		r := s.rocmAt(ctx, c.dir)
		if !r.Found() {
			continue
		}
		known := false
		for _, o := range out {
			known = known || o.Root == r.Root
		}
		if !known {
			r.From = c.from
			out = append(out, r)
		}
	}
	// Nobody asked by name for one that upstream refuses.
	slices.SortStableFunc(out, func(a, b ROCm) int { return rank(a) - rank(b) })
	return out
}

func rank(r ROCm) int {
	switch {
	case strings.HasSuffix(r.From, "_PATH"), strings.HasPrefix(r.From, "--"):
		return 0
	case r.HIP == "" || !r.HIP.Less(MinHIP):
		return 1
	}
	return 2
}

// called is how the user named the ROCm that a variable leads to.
func (s finder) called(variable string) string {
	if v := s.Getenv(Named); v != "" && v == s.Getenv(variable) {
		return "--toolchain"
	}
	return variable
}

func (s finder) candidates(ctx context.Context) []candidate {
	var list []candidate
	for _, name := range []string{"ROCM_PATH", "HIP_PATH"} {
		if dir := s.Getenv(name); dir != "" {
			list = append(list, candidate{dir, s.called(name)})
		}
	}
	for _, ask := range []struct{ program, flag, sub string }{
		{"rocm-sdk", "path", "--root"},
		{"hipconfig", "--rocmpath", ""},
	} {
		if p := s.LookPath(ask.program); p != "" {
			args := []string{ask.flag}
			if ask.sub != "" {
				args = append(args, ask.sub)
			}
			out, err := s.Output(ctx, p, args...)
			if dir := strings.TrimSpace(string(out)); err == nil && path.IsAbs(dir) {
				list = append(list, candidate{dir, ask.program + " on PATH"})
			}
		}
	}
	for _, dir := range append([]string{"/opt/rocm"}, s.versioned("/opt/rocm-*", "/opt/rocm/core-*", "/opt/rocm/core")...) {
		list = append(list, candidate{dir, dir})
	}
	return append(list, candidate{"/usr", "/usr"})
}

// versioned returns the directories that match, the newest version first.
func (s finder) versioned(patterns ...string) []string {
	var dirs []string
	for _, p := range patterns {
		dirs = append(dirs, s.Glob(p)...)
	}
	sort.SliceStable(dirs, func(i, j int) bool {
		return trailingVersion(path.Base(dirs[j])).Less(trailingVersion(path.Base(dirs[i])))
	})
	return dirs
}
