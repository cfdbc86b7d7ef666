package toolchain

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dot4fa/internal/fault"
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

// alone gives the test a PATH with nothing on it but what it puts there.
func alone(t *testing.T) (bin string) {
	bin = t.TempDir()
	for _, v := range []string{"CC", "CXX", "HIPCXX", "CUDACXX", "ROCM_PATH", "HIP_PATH", "CUDA_PATH", "CUDA_HOME"} {
		t.Setenv(v, "")
	}
	t.Setenv("PATH", bin)
	rocm, nvcc := installedROCm, installedNVCC
	installedROCm, installedNVCC = filepath.Join(bin, "rocm"), filepath.Join(bin, "cuda")
	t.Cleanup(func() { installedROCm, installedNVCC = rocm, nvcc })
	return bin
}

func TestRequireNamesWhatIsMissing(t *testing.T) {
	bin := alone(t)
	ctx := context.Background()
	for _, step := range []struct{ tool, missing string }{
		{"", "no cmake"}, {"cmake", "no ninja"}, {"ninja", "no C compiler"}, {"gcc", "no C++ compiler"}, {"g++", ""},
	} {
		if step.tool != "" {
			program(t, filepath.Join(bin, step.tool), step.tool+" 1.2.3")
		}
		err := Find(ctx).Require(recipe.CPU)
		switch {
		case step.missing == "" && err != nil:
			t.Errorf("everything is there, but: %v", err)
		case step.missing != "" && (err == nil || !strings.HasPrefix(err.Error(), step.missing) || fault.Code(err) != fault.Environment || fault.Hint(err) == ""):
			t.Errorf("after %q: %v (hint %q), want %q", step.tool, err, fault.Hint(err), step.missing)
		}
	}
	for b, want := range map[recipe.Backend]string{recipe.HIP: "no ROCm", recipe.CUDA: "no nvcc"} {
		if err := Find(ctx).Require(b); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(fault.Hint(err), "--recipe cpu") {
			t.Errorf("%s without its toolchain: %v (hint %q)", b, err, fault.Hint(err))
		}
	}
}

func TestROCm(t *testing.T) {
	bin := alone(t)
	for _, v := range []string{"6.2.4", "6.10.0"} {
		program(t, filepath.Join(bin, "rocm-"+v, "lib", "cmake", "hip", "hip-config.cmake"), "")
	}
	if s := Find(context.Background()); s.ROCm != filepath.Join(bin, "rocm-6.10.0") {
		t.Errorf("of two installations %q was taken", s.ROCm)
	}
	root := t.TempDir()
	t.Setenv("ROCM_PATH", root)
	ctx := context.Background()
	if s := Find(ctx); s.ROCm == root {
		t.Error("an empty directory was taken for ROCm")
	}
	config := filepath.Join(root, "lib", "cmake", "hip", "hip-config.cmake")
	program(t, config, "")
	s := Find(ctx)
	if s.ROCm != root {
		t.Fatalf("ROCm was not found in ROCM_PATH: %+v", s)
	}
	if err := s.requireROCm(); err == nil || !strings.Contains(err.Error(), "no clang++ for HIP") {
		t.Errorf("ROCm without a compiler: %v", err)
	}
	clang := program(t, filepath.Join(root, "lib", "llvm", "bin", "clang++"), "AMD clang version 19.0.0git (https://x roc-6.4.1 25184)")
	if s := Find(ctx); s.HIPClang.Path != clang || s.requireROCm() != nil {
		t.Errorf("the compiler was not found: %+v", s.HIPClang)
	}
}

func TestVersions(t *testing.T) {
	bin := alone(t)
	for said, want := range map[string]string{
		"cmake version 3.25.1":          "3.25.1",
		"g++ (Debian 12.2.0-14) 12.2.0": "12.2.0",
		"1.11.1":                        "1.11.1",
		"no number":                     "",
		"nvcc: NVIDIA (R) Cuda compiler driver\nCopyright (c) 2005-2025\nCuda compilation tools, release 12.9, V12.9.41": "12.9",
	} {
		if got := version(context.Background(), program(t, filepath.Join(bin, "tool"), said)); got != want {
			t.Errorf("%q is version %q, want %q", said, got, want)
		}
	}
	if !versionLess("/opt/rocm-6.2.4", "/opt/rocm-6.10.0") || versionLess("/opt/rocm-7.0", "/opt/rocm-6.4.1") || versionLess("/opt/rocm-6.4", "/opt/rocm-6.4") {
		t.Error("versions are not ordered by number")
	}
}
