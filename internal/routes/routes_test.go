package routes

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"dot4fa/internal/recipe"
)

// kernel is the recipe package's defaults, spelled out, with the seed's split-K threshold, which leaves depths to both routes.
func kernel() recipe.Kernel {
	return recipe.Kernel{
		HeadSizes: []int{64, 128, 256}, VTypes: []string{"f16", "q8_0", "q4_0"}, KScale: "absmax",
		Chunk: 128, SuperChunk: 1024, SplitSize: 512, SplitKThreshold: 2048, DecodeBN: 64, VSubTile: 8,
		VerifyMaxNQ: 8, PrefillVariant: "auto", BM: 64, BN: 64, KStaging: "lds", GQAGroup: "single",
	}
}

// TestKernelIsTheDefault keeps kernel() honest.
func TestKernelIsTheDefault(t *testing.T) {
	r, err := recipe.Load(os.DirFS(filepath.Join("..", "..")), "rdna3")
	if err != nil {
		t.Fatal(err)
	}
	want := kernel()
	want.SplitKThreshold = 256
	if !reflect.DeepEqual(r.Kernel, want) {
		t.Errorf("recipe rdna3 has %+v", r.Kernel)
	}
	if _, err := CXX(r.Kernel); err != nil {
		t.Error(err)
	}
	r.Kernel.PrefillVariant = "wmma3"
	if _, err := CXX(r.Kernel); err == nil {
		t.Error("a prefill variant without a kernel is rendered")
	}
}

func parse(t *testing.T, vars ...string) Env {
	t.Helper()
	m := map[string]string{}
	for _, v := range vars {
		name, value, _ := strings.Cut(v, "=")
		m[name] = value
	}
	env, err := ParseEnv(kernel(), func(n string) (string, bool) { v, ok := m[n]; return v, ok })
	if err != nil {
		t.Fatal(err)
	}
	return env
}

func TestRoute(t *testing.T) {
	const (
		cache  = "GGML_CUDA_ROCM_Q8K_DOT4_PACKED16_K_CACHE=1"
		kqOff  = "GGML_CUDA_ROCM_Q8K_DOT4_KQ=0"
		fullFA = "GGML_CUDA_ROCM_Q8K_DOT4_KQ_FULL_FA=1"
		req    = "GGML_CUDA_FA_ROUTE_REQUIRE=rocm_q8k_dot4_kq"
		noSpl  = "GGML_CUDA_ROCM_Q8K_DOT4_DECODE_SPLITK=0"
		at512  = "GGML_CUDA_ROCM_Q8K_DOT4_DECODE_SPLITK_THRESHOLD=512"
		by256  = "GGML_CUDA_ROCM_Q8K_DOT4_DECODE_SPLITK_SIZE=256"
	)
	canonical := func(nq, nk int) Shape {
		return Shape{K: "packed16", V: "q4_0", NQ: nq, NK: nk, D: 256, DV: 256, GQA: 6}
	}
	with := func(s Shape, change func(*Shape)) Shape { change(&s); return s }
	f16 := with(canonical(1, 4096), func(s *Shape) { s.K = "f16" })
	bad := func(change func(*Shape)) Shape { return with(canonical(1, 4096), change) }

	for _, c := range []struct {
		name string
		s    Shape
		env  []string
		want string
	}{
		{"prefill", canonical(9, 4096), nil, "PREFILL " + VariantDot4},
		{"prefill, matrix cores", with(canonical(9, 4096), func(s *Shape) { s.MatrixCores = true }), nil, "PREFILL " + VariantMMA},
		{"prefill, dot4 on matrix cores", with(canonical(9, 4096), func(s *Shape) { s.MatrixCores = true }), []string{"GGML_CUDA_ROCM_Q8K_DOT4_KQ_VARIANT=" + VariantDot4}, "PREFILL " + VariantDot4},
		{"prefill, mma without matrix cores", canonical(9, 4096), []string{"GGML_CUDA_ROCM_Q8K_DOT4_KQ_VARIANT=" + VariantMMA}, "REFUSED VARIANT_DEVICE"},
		{"prefill, unpacked", canonical(9, 4096), []string{"GGML_CUDA_ROCM_Q8K_DOT4_KQ_VARIANT=" + VariantF16}, "PREFILL " + VariantF16},
		{"prefill, unpacked, f16-K mode", canonical(9, 4096), []string{fullFA, "GGML_CUDA_ROCM_Q8K_DOT4_KQ_VARIANT=" + VariantF16}, "REFUSED VARIANT_DEVICE"},
		{"prefill, unpacked, one mask for all sequences", with(canonical(9, 4096), func(s *Shape) { s.SharedMask = true }), []string{"GGML_CUDA_ROCM_Q8K_DOT4_KQ_VARIANT=" + VariantF16}, "REFUSED VARIANT_DEVICE"},
		{"prefill, unpacked, ours required", canonical(9, 4096), []string{req, "GGML_CUDA_ROCM_Q8K_DOT4_KQ_VARIANT=" + VariantF16}, "REFUSED VARIANT_DEVICE"},
		{"prefill, canonical", canonical(512, 15104), []string{"GGML_CUDA_ROCM_Q8K_DOT4_KQ_VARIANT=" + VariantDot4}, "PREFILL " + VariantDot4},
		{"verify, shallow", canonical(8, 2047), nil, "VERIFY 0"},
		{"verify, deep", canonical(2, 2048), nil, "VERIFY 512"},
		{"short decode", canonical(1, 2047), nil, "SHORT_DECODE 0"},
		{"long decode", canonical(1, 2048), nil, "LONG_DECODE 512"},
		{"split-K off", canonical(1, 131072), []string{noSpl}, "SHORT_DECODE 0"},
		{"threshold and size", canonical(1, 512), []string{at512, by256}, "LONG_DECODE 256"},
		{"no kernels for packed16", canonical(1, 512), []string{kqOff}, "REFUSED KQ_OFF"},
		{"f16 K", f16, nil, "UPSTREAM F16_MODE_OFF"},
		{"f16 K, required", f16, []string{req}, "REFUSED F16_MODE_OFF"},
		{"f16-K mode", f16, []string{fullFA}, "LONG_DECODE 512"},
		{"f16-K mode, KQ off", f16, []string{fullFA, kqOff}, "UPSTREAM F16_MODE_OFF"},
		{"f16-K mode, unfit", with(f16, func(s *Shape) { s.D, s.DV = 80, 80 }), []string{fullFA}, "UPSTREAM HEAD_SIZE"},
		{"f16-K mode, unfit, required", with(f16, func(s *Shape) { s.D, s.DV = 80, 80 }), []string{fullFA, req}, "REFUSED HEAD_SIZE"},
		{"a draft's f16 K under the seed's list", f16, []string{fullFA, req, cache}, "UPSTREAM BESIDE_CACHE"},
		{"a draft's q8_0 K under the seed's list", with(f16, func(s *Shape) { s.K = "q8_0" }), []string{fullFA, req, cache}, "UPSTREAM BESIDE_CACHE"},
		{"other K", with(f16, func(s *Shape) { s.K = "q8_0" }), []string{fullFA}, "UPSTREAM OTHER_K"},
		{"other K, required", with(f16, func(s *Shape) { s.K = "q8_0" }), []string{req}, "REFUSED OTHER_K"},
		{"head size", bad(func(s *Shape) { s.D, s.DV = 512, 512 }), nil, "REFUSED HEAD_SIZE"},
		{"MLA", bad(func(s *Shape) { s.DV = 128 }), nil, "REFUSED HEAD_SIZES_DIFFER"},
		{"V type", bad(func(s *Shape) { s.V = "q5_1" }), nil, "REFUSED V_TYPE"},
		{"GQA 17", bad(func(s *Shape) { s.GQA = 17 }), nil, "REFUSED GQA"},
		{"GQA not whole", bad(func(s *Shape) { s.GQA = 0 }), nil, "REFUSED GQA"},
		{"softcap", bad(func(s *Shape) { s.Softcap = true }), nil, "REFUSED SOFTCAP"},
		{"ALiBi", bad(func(s *Shape) { s.MaxBias = true }), nil, "REFUSED MAX_BIAS"},
		{"mask", bad(func(s *Shape) { s.OtherMask = true }), nil, "REFUSED MASK_TYPE"},
		{"alignment", bad(func(s *Shape) { s.Misaligned = true }), nil, "REFUSED MISALIGNED"},
		{"no cells", canonical(1, 0), nil, "REFUSED EMPTY"},
	} {
		d := Route(c.s, kernel(), parse(t, c.env...))
		if got := short(d); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// short is a decision as the table of TestRoute writes it.
func short(d Decision) string {
	switch {
	case d.Reason != "":
		return d.Route + " " + d.Reason
	case d.Variant != "":
		return d.Route + " " + d.Variant
	}
	return fmt.Sprint(d.Route, " ", d.Split)
}
