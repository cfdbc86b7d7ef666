package toolchain

import (
	"strings"
	"testing"
)

// Everything that leads a part of the build to a ROCm is set, whatever was set
// before, and each to the same one.
func TestSettings(t *testing.T) {
	r := ROCm{Root: "/opt/rocm-7.1.1", Clang: Tool{Path: "/opt/rocm-7.1.1/lib/llvm/bin/clang++"}, DeviceLibs: "/opt/rocm-7.1.1/amdgcn/bitcode"}
	s := r.Settings()
	set := map[string]string{}
	for _, v := range s.Env {
		name, value, _ := strings.Cut(v, "=")
		set[name] = value
	}
	for _, name := range []string{"ROCM_PATH", "HIP_PATH", "HIPCXX", "HIP_CLANG_PATH", "HIP_DEVICE_LIB_PATH"} {
		if !inside(set[name], r.Root) {
			t.Errorf("%s=%s does not lie in %s", name, set[name], r.Root)
		}
	}
	if set["HIP_PLATFORM"] != "amd" || set["HIPFLAGS"] != "" {
		t.Errorf("the environment is %v", s.Env)
	}
	if s.Cache["CMAKE_PREFIX_PATH"] != r.Root || s.Cache["CMAKE_HIP_COMPILER"] != r.Clang.Path || s.Cache["CMAKE_HIP_COMPILER_ROCM_ROOT"] != r.Root {
		t.Errorf("the cache entries are %v", s.Cache)
	}
	if none := (ROCm{}).Settings(); len(none.Env)+len(none.Cache) > 0 {
		t.Errorf("without ROCm there are settings: %+v", none)
	}
}

// A clang that belongs to no ROCm has to be told where everything is, and CMake
// where a package lies that is not in the root.
func TestSettingsElsewhere(t *testing.T) {
	r := ROCm{Root: "/home/a/rocm", DeviceLibs: "/home/a/rocm/amdgcn/bitcode", CompileOnly: true, Include: []string{"/home/a/rocm/include"},
		Packages: []Package{{Name: "hip", Dir: "/home/a/rocm/lib/cmake/hip"}, {Name: "hipblas", Dir: "/nix/store/b/lib/cmake/hipblas"}, {Name: "rocblas"}}}
	s := r.Settings()
	if all := strings.Join(s.Env, "\n"); !strings.Contains(all, "HIPFLAGS=--rocm-path=/home/a/rocm --rocm-device-lib-path=/home/a/rocm/amdgcn/bitcode -isystem /home/a/rocm/include") {
		t.Errorf("the environment is\n%s", all)
	}
	if got := s.Cache["CMAKE_PREFIX_PATH"]; got != "/home/a/rocm;/nix/store/b/lib/cmake/hipblas" {
		t.Errorf("CMake looks in %s", got)
	}
}
