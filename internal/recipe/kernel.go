package recipe

// Kernel holds the kernel parameters: compile-time constants of the rendered
// device code. kernelKeys says what each means and which values it takes.
type Kernel struct {
	HeadSizes          []int    `json:"head_sizes"`
	VTypes             []string `json:"v_types"`
	KScale             string   `json:"k_scale"`
	KRotation          bool     `json:"k_rotation"`
	Chunk              int      `json:"chunk"`
	SuperChunk         int      `json:"super_chunk"`
	SplitSize          int      `json:"split_size"`
	SplitKThreshold    int      `json:"splitk_threshold"`
	DecodeBN           int      `json:"decode_bn"`
	VSubTile           int      `json:"v_sub_tile"`
	VerifyMaxNQ        int      `json:"verify_max_nq"`
	PrefillVariant     string   `json:"prefill_variant"`
	PrefillF16Below64  int      `json:"prefill_f16_below_64"`
	PrefillF16Below128 int      `json:"prefill_f16_below_128"`
	PrefillF16Below256 int      `json:"prefill_f16_below_256"`
	BM                 int      `json:"bm"`
	BN                 int      `json:"bn"`
	KStaging           string   `json:"k_staging"`
	GQAGroup           string   `json:"gqa_group"`
	ScaleOnce          bool     `json:"scale_once"`
}

// HasHeadSize reports whether kernels for head size d are built.
func (k Kernel) HasHeadSize(d int) bool {
	for _, h := range k.HeadSizes {
		if h == d {
			return true
		}
	}
	return false
}

// PrefillF16Below is the number of cells below which the auto prefill of head size d
// unpacks K and V to f16 for the backend's own kernel, 0 for never.
func (k Kernel) PrefillF16Below(d int) int {
	switch d {
	case 64:
		return k.PrefillF16Below64
	case 128:
		return k.PrefillF16Below128
	case 256:
		return k.PrefillF16Below256
	}
	return 0
}

// HasVType reports whether kernels for V type t (f16, q8_0, q4_0) are built.
func (k Kernel) HasVType(t string) bool {
	for _, v := range k.VTypes {
		if v == t {
			return true
		}
	}
	return false
}

var kernelKeys = []Key{
	{Path: "kernel.head_sizes", Kind: Ints, Default: []int{64, 128, 256}, Allowed: []string{"64", "128", "256"},
		Doc:   "head sizes D that get kernels; any other is refused when a context is created",
		field: func(k *Kernel) any { return &k.HeadSizes }},
	{Path: "kernel.v_types", Kind: Enums, Default: []string{"f16", "q8_0", "q4_0"}, Allowed: []string{"f16", "q8_0", "q4_0"},
		Doc:   "types of the V cache that get kernels; any other is refused when a context is created",
		field: func(k *Kernel) any { return &k.VTypes }},
	{Path: "kernel.k_scale", Kind: Enum, Default: "absmax", Allowed: []string{"absmax", "mse"},
		Doc:   "how a K block's scale is found: largest magnitude / 127, or one least-squares refit after it",
		field: func(k *Kernel) any { return &k.KScale }},
	{Path: "kernel.k_rotation", Kind: Bool, Default: false,
		Doc:   "rotate K (Hadamard) before packing it, as upstream does for its quantised K types",
		field: func(k *Kernel) any { return &k.KRotation }},
	{Path: "kernel.chunk", Kind: Int, Default: 128, Min: 64, Max: 1024, Pow2: true,
		Doc:   "KV cells in one partial result of the decode side; the unit of batch invariance; divides split_size and super_chunk; on cuda at most 256, with head size 64 at most 128",
		field: func(k *Kernel) any { return &k.Chunk }},
	{Path: "kernel.super_chunk", Kind: Int, Default: 1024, Min: 64, Max: 65536, Pow2: true,
		Doc:   "KV cells merged at the first level of the fixed merge tree; at least chunk",
		field: func(k *Kernel) any { return &k.SuperChunk }},
	{Path: "kernel.split_size", Kind: Int, Default: 512, Min: 64, Max: 65536, Pow2: true,
		Doc:   "KV cells one workgroup of split-K stage 1 visits; the default of the run-time override",
		field: func(k *Kernel) any { return &k.SplitSize }},
	{Path: "kernel.splitk_threshold", Kind: Int, Default: 256, Min: 256, Max: 1 << 20,
		Doc:   "KV cells from which one-query decode goes split-K; a multiple of 256; the default of the run-time override",
		field: func(k *Kernel) any { return &k.SplitKThreshold }},
	{Path: "kernel.decode_bn", Kind: Int, Default: 64, Allowed: []string{"32", "64", "128"},
		Doc:   "KV cells of the decode kernel's inner tile; divides chunk",
		field: func(k *Kernel) any { return &k.DecodeBN }},
	{Path: "kernel.v_sub_tile", Kind: Int, Default: 8, Allowed: []string{"4", "8", "16", "32"},
		Doc:   "V rows the decode kernel takes at a time; divides decode_bn",
		field: func(k *Kernel) any { return &k.VSubTile }},
	{Path: "kernel.verify_max_nq", Kind: Int, Default: 8, Min: 1, Max: 8,
		Doc:   "most query rows that still go through the decode kernel; more are a prefill",
		field: func(k *Kernel) any { return &k.VerifyMaxNQ }},
	{Path: "kernel.prefill_variant", Kind: Enum, Default: "auto", Allowed: []string{"auto", "f16", "mma", "blockfa_recthist_v4_single"},
		Doc:   "prefill kernel used when the environment names none; auto is the fastest safe one",
		field: func(k *Kernel) any { return &k.PrefillVariant }},
	{Path: "kernel.prefill_f16_below_64", Kind: Int, Default: 0, Min: 0, Max: 65536,
		Doc:   "KV cells below which the auto prefill unpacks K and V of head size 64 to f16 for the backend's own kernel; 0: never",
		field: func(k *Kernel) any { return &k.PrefillF16Below64 }},
	{Path: "kernel.prefill_f16_below_128", Kind: Int, Default: 0, Min: 0, Max: 65536,
		Doc:   "KV cells below which the auto prefill unpacks K and V of head size 128 to f16 for the backend's own kernel; 0: never",
		field: func(k *Kernel) any { return &k.PrefillF16Below128 }},
	{Path: "kernel.prefill_f16_below_256", Kind: Int, Default: 0, Min: 0, Max: 65536,
		Doc:   "KV cells below which the auto prefill unpacks K and V of head size 256 to f16 for the backend's own kernel; 0: never",
		field: func(k *Kernel) any { return &k.PrefillF16Below256 }},
	{Path: "kernel.bm", Kind: Int, Default: 64, Allowed: []string{"8", "16", "32", "48", "64"},
		Doc:   "query rows of a dot4 prefill tile; eight warps share them, times the heads of gqa_group",
		field: func(k *Kernel) any { return &k.BM }},
	{Path: "kernel.bn", Kind: Int, Default: 64, Allowed: []string{"32", "64"},
		Doc:   "KV cells of a dot4 prefill tile, one or two per lane",
		field: func(k *Kernel) any { return &k.BN }},
	{Path: "kernel.k_staging", Kind: Enum, Default: "lds", Allowed: []string{"none", "lds"},
		Doc:   "where the dot4 prefill keeps a K tile: read through the cache, or staged in LDS",
		field: func(k *Kernel) any { return &k.KStaging }},
	{Path: "kernel.gqa_group", Kind: Enum, Default: "single", Allowed: []string{"single", "pair", "triad"},
		Doc:   "query heads of one KV head that share a V tile in the dot4 prefill; triad not on hip",
		field: func(k *Kernel) any { return &k.GQAGroup }},
	{Path: "kernel.scale_once", Kind: Bool, Default: false,
		Doc:   "apply one scale per K row instead of one per 32 values: an experiment for speed, its results are wrong",
		field: func(k *Kernel) any { return &k.ScaleOnce }},
}
