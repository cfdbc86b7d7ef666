package bench

import (
	"context"
	"slices"
	"strings"

	"dot4fa/internal/fault"
	"dot4fa/internal/recipe"
)

// Memory is how fast the device's memory is.
type Memory struct {
	GBps   float64 `json:"gb_per_s"`
	Spread float64 `json:"spread,omitempty"`
	From   string  `json:"from"` // "copy": measured, bytes read and written; "data sheet"
}

// Peak is what a device's data sheet says.
type Peak struct {
	GBps   float64 `json:"gb_per_s"`
	F32    float64 `json:"f32_tflops"`        // vector units
	Matrix float64 `json:"f16_matrix_tflops"` // dense, accumulated in f32
	Source string  `json:"source"`
}

// known GPUs, the longest name first where one is the beginning of another.
var known = []struct {
	name string
	Peak
}{
	{"RX 7900 XTX", Peak{960, 61.4, 122.8, "AMD, Radeon RX 7900 XTX specifications"}},
	{"RX 7900 XT", Peak{800, 51.6, 103, "AMD, Radeon RX 7900 XT specifications"}},
	{"RX 7900 GRE", Peak{576, 46, 92, "AMD, Radeon RX 7900 GRE specifications"}},
	{"RX 7800 XT", Peak{624, 37.3, 74.7, "AMD, Radeon RX 7800 XT specifications"}},
	{"PRO W7900", Peak{864, 61.3, 122.6, "AMD, Radeon PRO W7900 data sheet"}},
	{"H200", Peak{4800, 67, 989, "NVIDIA, H200 data sheet (SXM)"}},
	{"H100", Peak{3350, 67, 989, "NVIDIA, H100 data sheet (SXM)"}},
	{"A100", Peak{2039, 19.5, 312, "NVIDIA, A100 data sheet (80 GB SXM)"}},
	{"RTX 4090", Peak{1008, 82.6, 165.2, "NVIDIA, Ada GPU architecture paper"}},
	{"RTX 3090", Peak{936, 35.6, 71, "NVIDIA, Ampere GA102 architecture paper"}},
}

// PeakOf returns the data sheet's figures of a device, nil when they are not
// known here.
func PeakOf(device string) *Peak {
	for _, k := range known {
		if at := strings.Index(device, k.name); at >= 0 && !strings.HasPrefix(device[at+len(k.name):], "X") {
			p := k.Peak
			return &p
		}
	}
	return nil
}

// defaultDevice is ggml's name of the first device of a backend.
func defaultDevice(b recipe.Backend) string {
	return map[recipe.Backend]string{recipe.CPU: "CPU", recipe.HIP: "ROCm0", recipe.CUDA: "CUDA0"}[b]
}

// findDevice asks the built program for a device and returns its description.
func (b *Bench) findDevice(ctx context.Context) (string, error) {
	if b.Device == "" {
		b.Device = defaultDevice(b.Backend)
	}
	out, err := b.output(ctx, "test-backend-ops", nil, "perf", "-b", b.Device, "-o", "none", "-p", "^$")
	if err != nil {
		return "", err
	}
	var names []string
	for _, d := range parseDevices(out) {
		if d.name == b.Device && d.description != "" {
			return d.description, nil
		}
		names = append(names, d.name)
	}
	if len(names) == 0 {
		return "", fault.New(fault.Environment, "test-backend-ops lists no device: it is not the program of this build, or of another llama.cpp").
			At("%s", b.program("test-backend-ops")).Hintf("build it again: dot4fa build --recipe %s", b.Recipe)
	}
	hint := "the build's devices: " + strings.Join(names, ", ")
	if b.Backend != recipe.CPU && slices.Equal(names, []string{"CPU"}) {
		hint = "no GPU that this build can use: dot4fa doctor says why; --device CPU measures the CPU"
	}
	return "", fault.New(fault.Environment, "there is no device %s", b.Device).Hintf("%s", hint)
}
