package gpu

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dot4fa/internal/machine"
)

func TestTargetOf(t *testing.T) {
	for version, want := range map[int64]string{
		110000: "gfx1100", 110001: "gfx1101", 110501: "gfx1151", 120001: "gfx1201", 100306: "gfx1036",
		90010: "gfx90a", 90402: "gfx942", 90012: "gfx90c", 0: "", -1: "",
	} {
		if got := targetOf(version); got != want {
			t.Errorf("the kernel's %d is %q, want %q", version, got, want)
		}
	}
}

const info = `ROCk module is loaded
==========
HSA Agents
==========
*******
Agent 1
*******
  Name:                    AMD Ryzen 9 7950X 16-Core Processor
  Marketing Name:          AMD Ryzen 9 7950X 16-Core Processor
  Device Type:             CPU
  Compute Unit:            32
*******
Agent 2
*******
  Name:                    gfx1100
  Marketing Name:          Radeon RX 7900 XTX
  Device Type:             GPU
  Compute Unit:            96
  Memory Properties:
  ISA Info:
    ISA 1
      Name:                    amdgcn-amd-amdhsa--gfx1100
    ISA 2
      Name:                    amdgcn-amd-amdhsa--gfx11-generic
*******
Agent 3
*******
  Name:                    gfx1151
  Marketing Name:          AMD Radeon 8060S Graphics
  Device Type:             GPU
  Compute Unit:            40
  Memory Properties:       APU
*** Done ***
`

func TestPrograms(t *testing.T) {
	got := parseInfo(info)
	want := []GPU{
		{Target: "gfx1100", Name: "Radeon RX 7900 XTX", Units: 96},
		{Target: "gfx1151", Name: "AMD Radeon 8060S Graphics", Units: 40, Integrated: true},
	}
	if !slices.Equal(got, want) {
		t.Errorf("rocminfo: %+v, want %+v", got, want)
	}
	if got := parseArch("gfx90a:sramecc+:xnack-\ngfx1036\nsomething else\n"); len(got) != 2 || got[0].Target != "gfx90a" || got[1].Target != "gfx1036" || !got[1].Integrated {
		t.Errorf("amdgpu-arch: %+v", got)
	}
}

// The programs are asked in their order and only where the kernel tells nothing.
func TestOrder(t *testing.T) {
	var asked []string
	answers := map[string]string{}
	on := machine.System{Root: t.TempDir(), Vars: []string{"PATH=/bin"}, Run: func(path string, _ ...string) ([]byte, error) {
		asked = append(asked, path)
		return []byte(answers[path]), nil
	}}
	for _, p := range []string{"/bin/rocminfo", "/rocm/llvm/bin/amdgpu-arch"} {
		program(t, on, p)
	}
	answers["/bin/rocminfo"] = info
	f := Detect(context.Background(), on, "/rocm/llvm/bin")
	if f.Source != ROCmInfo || len(f.GPUs) != 2 || strings.Join(asked, " ") != "/rocm/llvm/bin/amdgpu-arch /bin/rocminfo" {
		t.Errorf("asked %v, found %+v", asked, f)
	}
	answers["/rocm/llvm/bin/amdgpu-arch"] = "gfx1101\n"
	if f := Detect(context.Background(), on, "/rocm/llvm/bin"); f.Source != AMDGPUArch || f.GPUs[0].Target != "gfx1101" {
		t.Errorf("found %+v", f)
	}
	asked = nil
	on.Vars = append(on.Vars, "DOT4FA_CI=1")
	if f := Detect(context.Background(), on, "/rocm/llvm/bin"); f.Why != NotLooked || len(asked) != 0 {
		t.Errorf("a CI job asked %v and found %+v", asked, f)
	}
}

func TestInCI(t *testing.T) {
	for vars, want := range map[string]string{"": "", "CI=": "", "CI=false": "", "CI=0": "", "CI=true": "CI", "CI=woodpecker": "CI", "DOT4FA_CI=1": "DOT4FA_CI"} {
		if got := InCI(machine.System{Vars: []string{vars}}); got != want {
			t.Errorf("%q: %q, want %q", vars, got, want)
		}
	}
}

func TestVisible(t *testing.T) {
	two := []GPU{{Target: "gfx1100"}, {Target: "gfx1036"}}
	for list, want := range map[string]string{"0": "gfx1100", "1": "gfx1036", "1,0": "gfx1036 gfx1100", "0,7,1": "gfx1100", "-1": "", "2": ""} {
		got, ok := visible(two, list)
		var names []string
		for _, g := range got {
			names = append(names, g.Target)
		}
		if !ok || strings.Join(names, " ") != want {
			t.Errorf("%s shows %v, want %s", list, names, want)
		}
	}
	if _, ok := visible(two, "GPU-1fb8a6a50ca222e3"); ok {
		t.Error("a unique ID was taken for an index")
	}
}

func TestRuns(t *testing.T) {
	for _, c := range []struct {
		target, gpu string
		want        bool
	}{
		{"gfx1100", "gfx1100", true}, {"gfx1100", "gfx1101", false}, {"gfx11-generic", "gfx1151", true},
		{"gfx11-generic", "gfx1201", false}, {"gfx12-generic", "gfx1201", true},
	} {
		if Runs(c.target, c.gpu) != c.want {
			t.Errorf("code for %s on %s: want %v", c.target, c.gpu, c.want)
		}
	}
	for _, c := range []struct {
		target, gpu string
		want        bool
	}{
		{"90", "90", true}, {"86", "90", true}, {"86-real", "90", false}, {"86-real", "89", true}, {"90", "86", false},
		{"90a", "90", true}, {"90a", "100", false}, {"80-virtual", "120", true}, {"native", "75", true},
	} {
		if runsCUDA([]string{c.target}, c.gpu) != c.want {
			t.Errorf("CUDA code for %s on %s: want %v", c.target, c.gpu, c.want)
		}
	}
}

// program puts an executable file on a machine that a directory stands for.
func program(t *testing.T, on machine.System, path string) {
	t.Helper()
	real := filepath.Join(on.Root, path)
	if err := os.MkdirAll(filepath.Dir(real), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(real, nil, 0o755); err != nil {
		t.Fatal(err)
	}
}
