package routes

import (
	"fmt"
	"strconv"
	"strings"

	"dot4fa/internal/fault"
	"dot4fa/internal/recipe"
)

// MaxGQA is the most query heads one KV head may serve.
const MaxGQA = 16

// Block is how many values share one scale.
const Block = 32

// Shape is what Route judges: one FLASH_ATTN_EXT call.
type Shape struct {
	K           string // "packed16", "f16" or another ggml type's name
	V           string // ggml type's name of V
	NQ, NK      int    // query rows and KV cells
	D, DV       int    // head sizes of K and V
	GQA         int    // query heads per KV head; 0 when not a whole number
	MaxBias     bool   // ALiBi
	Softcap     bool   // logit softcap
	OtherMask   bool   // a mask that is not f16, or not the same for all heads
	SharedMask  bool   // several sequences have one slice of the mask
	Misaligned  bool   // a head's K payload or V row does not begin on 16 bytes
	MatrixCores bool   // the device runs the matrix-tile prefill
}

// The prefill kernels by name.
const (
	VariantAuto = "auto"
	VariantDot4 = "blockfa_recthist_v4_single"
	VariantMMA  = "mma"
	VariantF16  = "f16"
)

// Variant is one prefill kernel.
type Variant struct {
	Name        string `json:"name"`
	MatrixCores bool   `json:"matrix_cores"` // runs only on a device that has them
	Doc         string `json:"doc"`
}

// Variants lists the prefill kernels that exist: auto takes the first one that
// the device runs, f16 only below the cells of kernel.prefill_f16_below_*.
func Variants() []Variant {
	return []Variant{
		{VariantF16, false, "K and V unpacked to f16 for the backend's own kernel; for a packed16 K"},
		{VariantMMA, true, "int8 QK and f16 PV on matrix instructions, masks by exact tile class, shares of the cells where columns are few"},
		{VariantDot4, false, "int8 dot products on the vector units, masks by exact tile class, one launch"},
	}
}

func variantNames() []string {
	names := []string{VariantAuto}
	for _, v := range Variants() {
		names = append(names, v.Name)
	}
	return names
}

// Row is one row of the table of routes. A call takes the first row whose
// ranges hold it.
type Row struct {
	ID     string `json:"-"`      // PACKED16_ROUTE_<ID> in the generated headers
	Name   string `json:"route"`  //
	NQMin  int    `json:"nq_min"` // query rows, inclusive
	NQMax  int    `json:"nq_max"` // 0: no upper end
	Depth  Depth  `json:"nk"`     // which KV depths
	Split  bool   `json:"split"`  // split-K from the threshold on
	Kernel string `json:"kernel"` // what runs
	Why    string `json:"why"`    // the reason given for taking it
}

// Depth is a range of KV cells relative to the split-K threshold.
type Depth string

// The depths.
const (
	AnyDepth Depth = "any"
	Short    Depth = "short" // nk < threshold, or split-K is off
	Long     Depth = "long"  // nk >= threshold and split-K is on
)

// IDs of the outcomes that are no row of the table.
const (
	Refused  = "REFUSED"  // the context is not created
	Upstream = "UPSTREAM" // not ours: upstream's own kernels
)

// Table returns the routes of kernels built with k, in the order they are tried.
func Table(k recipe.Kernel) []Row {
	tile := fmt.Sprintf("inner tile of %d cells, V by %d", k.DecodeBN, k.VSubTile)
	return []Row{
		{ID: "PREFILL", Name: "prefill", NQMin: k.VerifyMaxNQ + 1, Depth: AnyDepth,
			Kernel: "prefill, the variant of " + dot4Prefix + "KQ_VARIANT",
			Why:    fmt.Sprintf("more than %d query rows", k.VerifyMaxNQ)},
		{ID: "VERIFY", Name: "verify", NQMin: 2, NQMax: k.VerifyMaxNQ, Depth: AnyDepth, Split: true,
			Kernel: "decode widened to nq columns that share one K/V stream, " + tile,
			Why:    fmt.Sprintf("2 to %d query rows share one K/V stream", k.VerifyMaxNQ)},
		{ID: "SHORT_DECODE", Name: "short decode", NQMin: 1, NQMax: 1, Depth: Short,
			Kernel: "decode, one workgroup per KV head, " + tile,
			Why:    "one query row, fewer cells than the split-K threshold or split-K off"},
		{ID: "LONG_DECODE", Name: "long decode", NQMin: 1, NQMax: 1, Depth: Long, Split: true,
			Kernel: "split-K: stage 1 over splits, stage 2 merges by online softmax, " + tile,
			Why:    "one query row, at least as many cells as the split-K threshold"},
	}
}

// Reason is why a call takes no row of the table.
type Reason struct {
	ID      string // PACKED16_REASON_<ID> in the generated headers
	Text    string // one line
	Instead string // what to use instead
}

// Reasons returns every reason for kernels built with k.
func Reasons(k recipe.Kernel) []Reason {
	const q8 = "use -ctk q8_0"
	return []Reason{
		{"OTHER_K", "K is neither packed16 nor f16", "use -ctk packed16"},
		{"F16_MODE_OFF", "K is f16 and f16-K mode is off", "use -ctk packed16, or " + dot4Prefix + "KQ_FULL_FA=1"},
		{"BESIDE_CACHE", "K is not packed16, and the environment asked for packed16 in another context", "use -ctk packed16, or --spec-draft-type-k packed16 for a draft"},
		{"KQ_OFF", dot4Prefix + "KQ=0 turns off the only kernels that read a packed16 K", "unset it, or use -ctk f16"},
		{"EMPTY", "no query rows or no KV cells", q8},
		{"HEAD_SIZE", "the head size is not one of " + joinInts(k.HeadSizes), q8},
		{"HEAD_SIZES_DIFFER", "K and V have different head sizes", q8},
		{"V_TYPE", "the V type is not one of " + strings.Join(k.VTypes, ", "), "use -ctv with one of them"},
		{"GQA", "the query heads per KV head are not a whole number from 1 to " + strconv.Itoa(MaxGQA), q8},
		{"SOFTCAP", "logit softcap is not implemented", q8},
		{"MAX_BIAS", "ALiBi (max_bias) is not implemented", q8},
		{"MASK_TYPE", "the mask is not f16, or not the same for all heads", q8},
		{"MISALIGNED", "a row of a head does not begin on 16 bytes", q8},
		{"VARIANT_DEVICE", "the prefill variant asked for needs matrix cores and the device has none, or unpacks K where it may not", "use " + dot4Prefix + "KQ_VARIANT=auto"},
	}
}

// Decision is where a call goes and why.
type Decision struct {
	Route   string // a Row's ID, Refused or Upstream
	Reason  string // a Reason's ID; "" when a row was taken
	Variant string // prefill: the kernel
	Split   int    // cells per split; 0 when one workgroup takes them all
	Asked   bool   // Split is the environment's; otherwise the device's size decides, from chunk to super_chunk
}

// Route says which route a call takes with kernels built with k under env.
//
// A packed16 K has no other kernels, so what does not fit is Refused. An f16 K
// that does not fit goes to upstream's kernels, unless env requires a route of
// ours.
func Route(s Shape, k recipe.Kernel, env Env) Decision {
	required := env.set[flagRequire]
	switch {
	case s.K == "packed16":
		required = true
		if !env.on(flagKQ) {
			return Decision{Route: Refused, Reason: "KQ_OFF"}
		}
	case env.on(flagCache):
		return Decision{Route: Upstream, Reason: "BESIDE_CACHE"}
	case s.K != "f16":
		return away("OTHER_K", required)
	case !env.on(flagKQ) || !env.on(flagFullFA):
		return away("F16_MODE_OFF", required)
	}
	if r := unfit(s, k); r != "" {
		return away(r, required)
	}
	long := env.on(flagSplitK) && s.NK >= env.value[flagThreshold]
	for _, row := range Table(k) {
		if s.NQ < row.NQMin || row.NQMax > 0 && s.NQ > row.NQMax || row.Depth == Short && long || row.Depth == Long && !long {
			continue
		}
		d := Decision{Route: row.ID}
		if row.Split && long {
			d.Split, d.Asked = env.value[flagSplitSize], env.set[flagSplitSize]
		}
		if row.ID != "PREFILL" {
			return d
		}
		unpacks := s.K == "packed16" && !s.SharedMask && env.unpacks() // that kernel looks for a slice of the mask for each sequence
		if d.Variant = variantFor(env.value[flagVariant], s.MatrixCores, unpacks, s.NK < k.PrefillF16Below(s.D)); d.Variant == "" {
			return away("VARIANT_DEVICE", required)
		}
		return d
	}
	return away("EMPTY", required)
}

// unfit returns the ID of the first reason why no kernel takes s, or "".
func unfit(s Shape, k recipe.Kernel) string {
	switch {
	case s.NQ < 1 || s.NK < 1:
		return "EMPTY"
	case !k.HasHeadSize(s.D):
		return "HEAD_SIZE"
	case s.D != s.DV:
		return "HEAD_SIZES_DIFFER"
	case !k.HasVType(s.V):
		return "V_TYPE"
	case s.GQA < 1 || s.GQA > MaxGQA:
		return "GQA"
	case s.Softcap:
		return "SOFTCAP"
	case s.MaxBias:
		return "MAX_BIAS"
	case s.OtherMask:
		return "MASK_TYPE"
	case s.Misaligned:
		return "MISALIGNED"
	}
	return ""
}

func away(reason string, required bool) Decision {
	if required {
		return Decision{Route: Refused, Reason: reason}
	}
	return Decision{Route: Upstream, Reason: reason}
}

// unpacks reports whether env lets a packed16 K be unpacked for upstream's
// kernel: not where an f16 K would come back here, nor where a route of ours is
// required.
func (e Env) unpacks() bool { return !e.on(flagFullFA) && !e.set[flagRequire] }

// variantFor resolves the index i in variantNames; 0 is auto. unpacks: K is
// packed16 and may be unpacked; short: fewer cells than auto unpacks.
func variantFor(i int, matrixCores, unpacks, short bool) string {
	for j, v := range Variants() {
		fits := matrixCores || !v.MatrixCores
		if v.Name == VariantF16 {
			fits = unpacks && (i != 0 || short)
		}
		if fits && (i == 0 || i == j+1) {
			return v.Name
		}
	}
	return ""
}

// Check refuses kernel parameters that the routes cannot honour.
func Check(k recipe.Kernel) error {
	for _, n := range variantNames() {
		if n == k.PrefillVariant {
			return nil
		}
	}
	return fault.New(fault.Usage, "kernel.prefill_variant: there is no %s kernel", k.PrefillVariant).
		Hintf("use one of %s", strings.Join(variantNames(), ", "))
}

func joinInts(ns []int) string {
	s := make([]string, len(ns))
	for i, n := range ns {
		s[i] = strconv.Itoa(n)
	}
	return strings.Join(s, ", ")
}
