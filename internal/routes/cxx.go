package routes

import (
	"fmt"
	"strconv"
	"strings"

	"dot4fa/internal/recipe"
)

// Const is one generated constant.
type Const struct{ Name, Value, Doc string }

// Tables is what the templates of packed16-config.h, packed16-routes.h and
// packed16-env.h print: names and ready initialisers, no logic left.
type Tables struct {
	Consts   []Const  // name, value and meaning
	Heads    string   // "X(64) X(128) X(256)"
	VTypes   string   // "X(F16) X(Q8_0) X(Q4_0)"
	FlagIDs  []string // in table order
	Flags    []string // initialisers of packed16_flag
	RouteIDs []string // REFUSED, UPSTREAM, then the table's
	Names    []string // their names, quoted
	Routes   []string // initialisers of packed16_route_row
	Reasons  []string // IDs, NONE first
	Texts    []string // initialisers of packed16_reason_text
	Variants []string // initialisers of packed16_variant_row
	VarIDs   []string // AUTO, then the table's
	AnyHead  string   // "d == 64 || d == 128"
	AnyV     string   // the same over v
}

// CXX returns the tables for the kernels built with k. Templates call it as
// `packed16 .Kernel`.
func CXX(k recipe.Kernel) (*Tables, error) {
	if err := Check(k); err != nil {
		return nil, err
	}
	t := &Tables{Consts: consts(k)}
	var heads, anyHead, vs, anyV []string
	for _, d := range k.HeadSizes {
		heads = append(heads, fmt.Sprintf("X(%d)", d))
		anyHead = append(anyHead, fmt.Sprintf("d == %d", d))
	}
	for _, v := range k.VTypes {
		vs = append(vs, "X("+strings.ToUpper(v)+")")
		anyV = append(anyV, "v == PACKED16_V_"+strings.ToUpper(v))
	}
	t.Heads, t.AnyHead = strings.Join(heads, " "), strings.Join(anyHead, " || ")
	t.VTypes, t.AnyV = strings.Join(vs, " "), strings.Join(anyV, " || ")

	for _, f := range Flags(k) {
		t.FlagIDs = append(t.FlagIDs, f.ID)
		t.Flags = append(t.Flags, f.cxx())
	}
	t.RouteIDs = []string{Refused, Upstream}
	t.Names = []string{quote("refused"), quote("upstream")}
	for _, r := range Table(k) {
		t.RouteIDs = append(t.RouteIDs, r.ID)
		t.Names = append(t.Names, quote(r.Name))
		t.Routes = append(t.Routes, fmt.Sprintf("{ PACKED16_ROUTE_%s, %d, %d, PACKED16_DEPTH_%s, %t, %s }",
			r.ID, r.NQMin, r.NQMax, strings.ToUpper(string(r.Depth)), r.Split, quote(r.Why)))
	}
	t.Reasons = []string{"NONE"}
	t.Texts = []string{`{ "", "" }`}
	for _, r := range Reasons(k) {
		t.Reasons = append(t.Reasons, r.ID)
		t.Texts = append(t.Texts, fmt.Sprintf("{ %s, %s }", quote(r.Text), quote(r.Instead)))
	}
	t.VarIDs = []string{"AUTO"}
	for _, v := range Variants() {
		id := strings.ToUpper(v.Name)
		t.VarIDs = append(t.VarIDs, id)
		t.Variants = append(t.Variants, fmt.Sprintf("{ PACKED16_VARIANT_%s, %t, %s }", id, v.MatrixCores, quote(v.Name)))
	}
	return t, nil
}

func (f Flag) cxx() string {
	def := 0
	if f.Default != "" {
		def, _ = f.value(f.Default)
	}
	allowed := ""
	if f.Kind != "int" {
		allowed = strings.Join(f.Allowed, "|")
	}
	return fmt.Sprintf("{ %s, PACKED16_FLAG_%s, %s, %d, %d, %d, %d, %s, %s }", quote(f.Name), strings.ToUpper(string(f.Status)),
		quote(allowed), f.Min, f.Max, max(f.Step, 1), def, quote(f.AllowedText()), quote(f.Because))
}

func consts(k recipe.Kernel) []Const {
	n := strconv.Itoa
	b := func(v bool) string { return map[bool]string{false: "0", true: "1"}[v] }
	group := map[string]int{"single": 1, "pair": 2, "triad": 3}[k.GQAGroup]
	return []Const{
		{"SCALE_BLOCK", n(Block), "values that share one scale"},
		{"MAX_GQA", n(MaxGQA), "most query heads per KV head"},
		{"MAX_DECODE_NQ", n(k.VerifyMaxNQ), "most query rows of the decode kernels; more are a prefill"},
		{"CHUNK", n(k.Chunk), "cells in one partial result of the decode side"},
		{"SUPER_CHUNK", n(k.SuperChunk), "cells merged at the first level of the fixed merge tree"},
		{"SPLIT_SIZE", n(k.SplitSize), "default cells per workgroup of split-K stage 1"},
		{"SPLITK_THRESHOLD", n(k.SplitKThreshold), "default cells from which decode goes split-K"},
		{"DECODE_BN", n(k.DecodeBN), "cells of the decode kernel's inner tile"},
		{"V_SUB_TILE", n(k.VSubTile), "V rows the decode kernel takes at a time"},
		{"PREFILL_F16_BELOW_64", n(k.PrefillF16Below64), "auto unpacks K and V of head size 64 to f16 for prefill on fewer cells"},
		{"PREFILL_F16_BELOW_128", n(k.PrefillF16Below128), "the same at head size 128"},
		{"PREFILL_F16_BELOW_256", n(k.PrefillF16Below256), "the same at head size 256"},
		{"BM", n(k.BM), "query rows of a dot4 prefill tile"},
		{"BN", n(k.BN), "cells of a dot4 prefill tile"},
		{"K_STAGING_LDS", b(k.KStaging == "lds"), "the dot4 prefill stages K tiles in shared memory"},
		{"GQA_GROUP", n(group), "query heads that share a V tile in the dot4 prefill"},
		{"SCALE_ONCE", b(k.ScaleOnce), "experiment: one scale per K row, wrong numbers"},
		{"K_SCALE_MSE", b(k.KScale == "mse"), "default scale mode: 0 absmax, 1 mse"},
		{"K_ROTATION", b(k.KRotation), "K is rotated before it is packed"},
	}
}

// quote writes s as a C++ string literal; the tables are plain ASCII.
func quote(s string) string { return strconv.QuoteToASCII(s) }
