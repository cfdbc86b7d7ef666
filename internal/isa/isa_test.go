package isa

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"dot4fa/internal/machine"
)

// compiler returns the compiler, or skips the test by name when there is none.
func compiler(t *testing.T) *Compiler {
	t.Helper()
	c, err := FindCompiler(t.Context(), machine.Host(), "")
	if err != nil {
		t.Skipf("skipped: needs clang 19 or newer with the amdgcn target: %v", err)
	}
	return c
}

func TestSampleKernels(t *testing.T) {
	c := compiler(t)
	src := Source{Units: []string{filepath.Join("testdata", "sample.hip")}}
	r, err := Inspect(t.Context(), c, src, []string{"gfx1100", "gfx1201"}, 2)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Kernels) != 10 {
		t.Fatalf("%d kernels, want 10", len(r.Kernels))
	}
	at := map[string]Kernel{}
	for _, k := range r.Kernels {
		at[k.Target+" "+k.Name] = k
	}
	for _, target := range []string{"gfx1100", "gfx1201"} {
		clean := at[target+" sample_rows<256, 0>"]
		if clean.Dot4PerPair != 64 || clean.Dot4 < 64 || clean.LDSBytes != 16 || clean.ScratchBytes != 0 || clean.Workgroup != 128 {
			t.Errorf("clean: %+v", clean)
		}
		if clean.VGPR == 0 || clean.SGPR == 0 || clean.Occupancy == 0 || clean.Loads["global_b128"] < 16 {
			t.Errorf("clean: %+v", clean)
		}
		if k := at[target+" sample_rows<64, 0>"]; k.Dot4PerPair != 16 || k.Repeated != 0 || k.Dot4Feeds["global_b32"] != 0 || k.Dot4Feeds["global_b128"] == 0 {
			t.Errorf("clean, D=64: %+v", k)
		}
		if k := at[target+" sample_rows<64, 1>"]; k.Dot4Feeds["global_b32"] == 0 || k.Dot4Feeds["global_b128"] != 0 {
			t.Errorf("narrow loads not seen: %+v", k)
		}
		if k := at[target+" sample_rows<64, 2>"]; k.Dot4PerPair != 32 || k.Repeated == 0 {
			t.Errorf("repeated products not seen: %+v", k)
		}
		if k := at[target+" sample_rows<64, 3>"]; k.ScratchBytes == 0 {
			t.Errorf("scratch not seen: %+v", k)
		}
	}

	// Budgets find the broken ones and say so.
	b, err := parseBudgets([]byte(`
rules:
  - {kernels: "*", targets: "*", max: {scratch_bytes: 0, vgpr_spills: 0}, hint: keep less}
  - {kernels: "sample_rows*", targets: gfx1100, dot4_per_pair: D/4, k_loads: global_b128, hint: load int4}
`))
	if err != nil {
		t.Fatal(err)
	}
	var text []string
	for _, e := range b.Check(r) {
		text = append(text, fmt.Sprintf("%v | %s", e, e.Hint))
	}
	all := strings.Join(text, "\n")
	for _, want := range []string{
		"sample_rows<64, 3> on gfx1100",
		"the budget is at most 0 | keep less",
		"sample_rows<64, 2> on gfx1100 (" + r.Compiler + "): dot4_per_pair is 32, the budget is exactly 16",
		"feed dot4 in the hot loop, the budget allows global_b128 only | load int4",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no fault says %q in:\n%s", want, all)
		}
	}
	if strings.Contains(all, "sample_rows<64, 0>") || strings.Contains(all, "sample_rows<256, 0>") {
		t.Errorf("a clean kernel breaks a budget:\n%s", all)
	}

	// A recorded ceiling one register lower than the measure is broken.
	k := at["gfx1100 sample_rows<256, 0>"]
	was := Ceiling{VGPR: k.VGPR - 1, SGPR: k.SGPR, LDS: k.LDSBytes, Dot4: k.Dot4}
	b = &Budgets{Recorded: map[string]map[string]map[string]Ceiling{fmt.Sprint(r.CompilerMajor): {"gfx1100": {k.Name: was}}}}
	if got := b.Check(r); len(got) != 1 || !strings.Contains(got[0].Error(), fmt.Sprintf("vgpr is %d, the recorded budget is %d", k.VGPR, k.VGPR-1)) {
		t.Errorf("recorded ceiling: %v", got)
	}

	// What Record writes is read back, and then nothing is broken.
	var out strings.Builder
	if err := b.Record(&out, r); err != nil {
		t.Fatal(err)
	}
	again, err := parseBudgets([]byte(out.String()))
	if err != nil {
		t.Fatalf("%v in\n%s", err, out.String())
	}
	again.Rules = nil
	if got := again.Check(r); len(got) != 0 {
		t.Errorf("after recording: %v", got)
	}
}

// K that goes through shared memory is held to the width of its loads on the way in and out.
func TestStagedLoads(t *testing.T) {
	rule := Rule{KLoads: "staged_b128"}
	for name, c := range map[string]struct {
		k    Kernel
		says string
	}{
		"wide":        {Kernel{Dot4Feeds: map[string]int{"lds_b128": 4, "scalar_b256": 2}, Staged: map[string]int{"global_b128": 2, "global_b32": 1}}, ""},
		"narrow in":   {Kernel{Dot4Feeds: map[string]int{"lds_b128": 4}, Staged: map[string]int{"global_b32": 8}}, "no load global_b128 goes to shared memory"},
		"narrow out":  {Kernel{Dot4Feeds: map[string]int{"lds_b128": 4, "lds_b32": 1}, Staged: map[string]int{"global_b128": 2}}, "1 loads lds_b32 feed dot4"},
		"none at all": {Kernel{Staged: map[string]int{"global_b128": 2}}, "no load lds_b128 feeds dot4"},
	} {
		got := ""
		rule.check(c.k, func(_, format string, args ...any) { got += fmt.Sprintf(format, args...) + "\n" })
		if c.says == "" && got != "" || !strings.Contains(got, c.says) {
			t.Errorf("%s: %q, want %q", name, got, c.says)
		}
	}
}

func TestBrokenSourceSaysWhatTheCompilerSaid(t *testing.T) {
	c := compiler(t)
	_, err := Inspect(t.Context(), c, Source{Units: []string{filepath.Join("testdata", "missing.hip")}}, []string{"gfx1100"}, 1)
	if err == nil || !strings.Contains(err.Error(), "missing.hip") {
		t.Errorf("error %v", err)
	}
}

func TestBudgetFileIsValid(t *testing.T) {
	if _, err := LoadBudgets(); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{
		"rules: [{kernels: '*', targets: '*', max: {vgprs: 3}}]",
		"rules: [{kernels: '[', targets: '*'}]",
		"rules: [{kernels: '*', targets: '*', most: {vgpr: 3}}]",
	} {
		if _, err := parseBudgets([]byte(bad)); err == nil {
			t.Errorf("accepted %s", bad)
		}
	}
}

func TestDemangle(t *testing.T) {
	for symbol, want := range map[string]string{
		"_ZL15packed16_decodeILi256E15packed16_v_q4_0Li6EEvPKiPKf": "packed16_decode<256, packed16_v_q4_0, 6>",
		"_Z3fooILb1ELin3EfEvv":                     "foo<true, -3, float>",
		"_Z11sample_rowsILi64EL11sample_kind2EEvv": "sample_rows<64, 2>",
		"_ZN1a1bEv":       "a::b",
		"plain":           "plain",
		"_Z9overlong_Ev1": "overlong_",
		"_Z99cut":         "_Z99cut",
	} {
		if got := Demangle(symbol); got != want {
			t.Errorf("Demangle(%s) = %s, want %s", symbol, got, want)
		}
	}
}
