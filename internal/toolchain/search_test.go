package toolchain

import (
	"path/filepath"
	"slices"
	"testing"
)

// The newest clang comes first, whatever its number; what is too old, no version
// or another program stays out.
func TestClangs(t *testing.T) {
	s, bin := alone(t)
	for name, version := range map[string]string{
		"clang++-9": "clang version 9.0.1", "clang++-19": "Debian clang version 19.1.7", "clang++-100": "clang version 100.0.0",
		"clang++": "clang version 18.1.3", "clang++-19.cfg": "not a program", "clang++-tidy": "clang version 20.0.0",
	} {
		program(t, filepath.Join(bin, name), version)
	}
	for least, want := range map[int][]string{
		0:  {"100.0.0", "19.1.7", "9.0.1", "18.1.3"},
		16: {"100.0.0", "19.1.7", "18.1.3"},
		19: {"100.0.0", "19.1.7"},
	} {
		var got []string
		for _, c := range Clangs(t.Context(), s, least) {
			got = append(got, c.Version)
		}
		if !slices.Equal(got, want) {
			t.Errorf("at least %d: %v, want %v", least, got, want)
		}
	}
}

// What is named by hand comes before the environment, by flag before variable.
func TestUse(t *testing.T) {
	s, _ := alone(t)
	s.Vars = append(s.Vars, "ROCM_PATH=/a", "HIP_PATH=/b")
	if got := Use(s, "").Getenv("ROCM_PATH"); got != "/a" {
		t.Errorf("nothing is named: %s", got)
	}
	s.Vars = append(s.Vars, Named+"=/c")
	for dir, want := range map[string]string{"": "/c", "/d": "/d"} {
		u := Use(s, dir)
		if u.Getenv("ROCM_PATH") != want || u.Getenv("HIP_PATH") != "" || u.Getenv(Named) != want {
			t.Errorf("%q: %v", dir, u.Vars)
		}
	}
}
