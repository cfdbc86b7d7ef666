package toolchain

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dot4fa/internal/fault"
	"dot4fa/internal/machine"
	"dot4fa/internal/recipe"
)

// program writes a script that answers --version and returns its path.
func program(t *testing.T, path, version string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho '"+version+"'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// alone is a machine with nothing on its PATH but what the test puts there.
func alone(t *testing.T) (s machine.System, bin string) {
	root := t.TempDir()
	return machine.System{Root: root, Vars: []string{"PATH=/bin"}}, filepath.Join(root, "bin")
}

func TestRequireNamesWhatIsMissing(t *testing.T) {
	s, bin := alone(t)
	ctx := context.Background()
	for _, step := range []struct{ tool, missing string }{
		{"", "no cmake"}, {"cmake", "no ninja"}, {"ninja", "no C compiler"}, {"gcc", "no C++ compiler"}, {"g++", ""},
	} {
		if step.tool != "" {
			program(t, filepath.Join(bin, step.tool), step.tool+" 3.25.1")
		}
		err := Find(ctx, s).Require(&recipe.Recipe{Backend: recipe.CPU})
		switch {
		case step.missing == "" && err != nil:
			t.Errorf("everything is there, but: %v", err)
		case step.missing != "" && (err == nil || !strings.HasPrefix(err.Error(), step.missing) || fault.Code(err) != fault.Environment || fault.Hint(err) == ""):
			t.Errorf("after %q: %v (hint %q), want %q", step.tool, err, fault.Hint(err), step.missing)
		}
	}
	for b, want := range map[recipe.Backend]string{recipe.HIP: "no ROCm", recipe.CUDA: "no nvcc"} {
		if err := Find(ctx, s).Require(&recipe.Recipe{Backend: b, GPUTargets: []string{"gfx1100"}}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(fault.Hint(err), "--recipe cpu") {
			t.Errorf("%s without its toolchain: %v (hint %q)", b, err, fault.Hint(err))
		}
	}
}

func TestROCm(t *testing.T) {
	s, bin := alone(t)
	ctx := context.Background()
	hip := &recipe.Recipe{Backend: recipe.HIP}
	for _, tool := range []string{"cmake", "ninja", "cc", "c++"} {
		program(t, filepath.Join(bin, tool), tool+" 3.30.1")
	}
	put := func(file, text string) {
		t.Helper()
		program(t, filepath.Join(s.Root, file), text)
	}
	for _, v := range []string{"6.2.4", "6.10.0"} {
		put("opt/rocm-"+v+"/lib/cmake/hip/hip-config.cmake", "")
	}
	if r := Find(ctx, s).ROCm; r.Root != "/opt/rocm-6.10.0" || r.From != "/opt/rocm-6.10.0" || r.Version != "6.10.0" {
		t.Errorf("of two installations this one was taken: %+v", r)
	}
	s.Vars = append(s.Vars, "ROCM_PATH=/mine")
	if r := Find(ctx, s).ROCm; r.Root == "/mine" {
		t.Error("an empty directory was taken for ROCm")
	}
	put("mine/lib/cmake/hip/hip-config.cmake", "")
	set := Find(ctx, s)
	if set.ROCm.Root != "/mine" || set.ROCm.From != "ROCM_PATH" {
		t.Fatalf("ROCm was not found in ROCM_PATH: %+v", set.ROCm)
	}
	if err := set.Require(hip); err == nil || !strings.Contains(err.Error(), "no clang++ for HIP") || fault.Code(err) != fault.Environment {
		t.Errorf("ROCm without a compiler: %v", err)
	}
	put("mine/lib/llvm/bin/clang++", "AMD clang version 19.0.0git (https://x roc-6.4.1 25184)")
	set = Find(ctx, s)
	if c := set.ROCm.Clang; c.Path != "/mine/lib/llvm/bin/clang++" || c.Version != "19.0.0" || set.ROCm.LLVM != "roc-6.4.1" {
		t.Errorf("the compiler was not found: %+v", set.ROCm)
	}
}

func TestVersions(t *testing.T) {
	s, bin := alone(t)
	for said, want := range map[string]string{
		"cmake version 3.25.1":          "3.25.1",
		"g++ (Debian 12.2.0-14) 12.2.0": "12.2.0",
		"1.11.1":                        "1.11.1",
		"no number":                     "",
		"nvcc: NVIDIA (R) Cuda compiler driver\nCopyright (c) 2005-2025\nCuda compilation tools, release 12.9, V12.9.41": "12.9",
	} {
		program(t, filepath.Join(bin, "tool"), said)
		if got := (finder{s}).version(context.Background(), "/bin/tool"); got != want {
			t.Errorf("%q is version %q, want %q", said, got, want)
		}
	}
}

func TestVersionOrder(t *testing.T) {
	for _, c := range []struct {
		a, b Version
		want int
	}{
		{"6.2.4", "6.10.0", -1}, {"7.0", "6.4.1", 1}, {"6.4", "6.4.0", 0}, {"7.14.0", "10.0", -1},
		{"7.2.53211", "6.1", 1}, {"6.0.32831", "6.1", -1}, {"", "6.1", -1}, {"", "", 0},
	} {
		if got := c.a.Compare(c.b); got < 0 != (c.want < 0) || got > 0 != (c.want > 0) {
			t.Errorf("%s against %s is %d, want %d", c.a, c.b, got, c.want)
		}
	}
	if v := ParseVersion("ROCm 10.0.0a20260801+x"); v != "10.0.0" {
		t.Errorf("a nightly's version is read as %s", v)
	}
}
