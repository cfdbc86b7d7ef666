package isa

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"dot4fa/internal/fault"
)

//go:embed budgets.yaml
var recordedBudgets []byte

// Budgets are the limits the kernels' machine code is held to.
type Budgets struct {
	// Rules hold for every compiler. All that match a kernel apply.
	Rules []Rule `yaml:"rules"`
	// Recorded are ceilings by compiler major, target and kernel: register counts
	// differ between compilers, so each has its own.
	Recorded map[string]map[string]map[string]Ceiling `yaml:"recorded"`
}

// Rule limits the kernels it matches.
type Rule struct {
	Kernels string             `yaml:"kernels"` // pattern as in path.Match, for the kernel's name
	Targets string             `yaml:"targets"` // the same for the target
	Max     map[string]float64 `yaml:"max"`     // measure: limit
	Min     map[string]float64 `yaml:"min"`
	// Dot4PerPair is "D/4" when the kernel must spend exactly D/4 dot4 instructions on a (query, key)
	// pair, and compute none twice; D is its first template argument.
	Dot4PerPair string `yaml:"dot4_per_pair"`
	// WMMAPerTile is "D/16" when the kernel must spend exactly that many matrix products on bytes, and as many on halves,
	// on 16 x 16 (query, key) pairs: each takes 16 values of k.
	WMMAPerTile string `yaml:"wmma_per_tile"`
	// KLoads is the only width of load that may bring K to dot4: straight from global memory, or for a kernel that
	// stages K in shared memory ("staged_b128"), into and out of it.
	KLoads string `yaml:"k_loads"`
	Hint   string `yaml:"hint"`
}

// Ceiling is what a kernel took when it was last recorded.
type Ceiling struct {
	VGPR int `yaml:"vgpr"`
	SGPR int `yaml:"sgpr"`
	LDS  int `yaml:"lds"`
	Dot4 int `yaml:"dot4"`
}

// LoadBudgets reads the budgets recorded in the repository.
func LoadBudgets() (*Budgets, error) { return parseBudgets(recordedBudgets) }

func parseBudgets(data []byte) (*Budgets, error) {
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	var b Budgets
	if err := d.Decode(&b); err != nil {
		return nil, fault.New(fault.Usage, "%w", err).At("budgets.yaml").
			Hintf("the comment at its head describes it")
	}
	for i, r := range b.Rules {
		for _, limits := range []map[string]float64{r.Max, r.Min} {
			for name := range limits {
				if _, ok := (Kernel{}).measures()[name]; !ok {
					return nil, fault.New(fault.Usage, "rule %d: unknown measure %q", i+1, name).At("budgets.yaml").
						Hintf("one of %s", strings.Join(measureNames(), ", "))
				}
			}
		}
		for _, pattern := range []string{r.Kernels, r.Targets} {
			if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
				return nil, fault.New(fault.Usage, "rule %d: bad pattern %q", i+1, pattern).At("budgets.yaml").
					Hintf("write a name, with * for any part of it")
			}
		}
	}
	return &b, nil
}

// measures are the numbers a rule can limit.
func (k Kernel) measures() map[string]float64 {
	return map[string]float64{
		"vgpr": float64(k.VGPR), "sgpr": float64(k.SGPR), "vgpr_spills": float64(k.VGPRSpills), "sgpr_spills": float64(k.SGPRSpills),
		"scratch_bytes": float64(k.ScratchBytes), "lds_bytes": float64(k.LDSBytes), "occupancy": float64(k.Occupancy),
		"dot4": float64(k.Dot4), "other_per_dot4": k.OtherPerDot4, "per_sum": k.PerSum, "wmma": float64(k.WMMA), "other_per_wmma": k.OtherWMMA,
	}
}

func measureNames() []string {
	var names []string
	for name := range (Kernel{}).measures() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Check returns a fault for every budget that a kernel of the report breaks.
func (b *Budgets) Check(r *Report) []*fault.Error {
	var broken []*fault.Error
	for _, k := range r.Kernels {
		say := func(hint, format string, args ...any) {
			e := fault.New(fault.VerifyFailed, format, args...).At("%s on %s (%s)", k.Name, k.Target, r.Compiler)
			if hint != "" {
				e = e.Hintf("%s", hint)
			}
			broken = append(broken, e)
		}
		for _, rule := range b.Rules {
			if !match(rule.Kernels, k.Name) || !match(rule.Targets, k.Target) {
				continue
			}
			rule.check(k, say)
		}
		was, ok := b.Recorded[strconv.Itoa(r.CompilerMajor)][k.Target][k.Name]
		if !ok {
			continue
		}
		const hint = "if the change is worth it, record the new figure (isa --record) in the same commit"
		for _, c := range []struct {
			name          string
			measured, was int
		}{{"vgpr", k.VGPR, was.VGPR}, {"sgpr", k.SGPR, was.SGPR}, {"lds_bytes", k.LDSBytes, was.LDS}} {
			if c.measured > c.was {
				say(hint, "%s is %d, the recorded budget is %d", c.name, c.measured, c.was)
			}
		}
		if k.Dot4 != was.Dot4 {
			say(hint, "dot4 is %d, recorded is %d", k.Dot4, was.Dot4)
		}
	}
	return broken
}

func (rule Rule) check(k Kernel, say func(hint, format string, args ...any)) {
	measured := k.measures()
	for _, name := range measureNames() {
		if limit, ok := rule.Max[name]; ok && measured[name] > limit {
			say(rule.Hint, "%s is %g, the budget is at most %g", name, measured[name], limit)
		}
		if limit, ok := rule.Min[name]; ok && measured[name] < limit {
			say(rule.Hint, "%s is %g, the budget is at least %g", name, measured[name], limit)
		}
	}
	if rule.Dot4PerPair == "D/4" {
		d := headSize(k.Name)
		if k.Dot4PerPair != float64(d)/4 {
			say(rule.Hint, "dot4_per_pair is %g, the budget is exactly %g", k.Dot4PerPair, float64(d)/4)
		}
		if k.Repeated != 0 {
			say(rule.Hint, "%d dot4 in the hot loop compute a product a second time, the budget is 0", k.Repeated)
		}
	}
	if rule.WMMAPerTile == "D/16" {
		want := float64(headSize(k.Name)) / 16
		if k.WMMAInt != want || k.WMMAFloat != want {
			say(rule.Hint, "wmma for 16 x 16 pairs are %g on bytes and %g on halves, the budget is exactly %g each", k.WMMAInt, k.WMMAFloat, want)
		}
	}
	if rule.KLoads == "" {
		return
	}
	want, space := rule.KLoads, "global_"
	if width, ok := strings.CutPrefix(rule.KLoads, "staged_"); ok {
		want, space = "lds_"+width, "lds_"
		if k.Staged["global_"+width] == 0 {
			say(rule.Hint, "no load global_%s goes to shared memory as it is, the budget asks for it", width)
		}
	}
	for _, feed := range sorted(k.Dot4Feeds) {
		if feed != want && strings.HasPrefix(feed, space) {
			say(rule.Hint, "%d loads %s feed dot4 in the hot loop, the budget allows %s only", k.Dot4Feeds[feed], feed, want)
		}
	}
	if k.Dot4Feeds[want] == 0 {
		say(rule.Hint, "no load %s feeds dot4 in the hot loop, the budget asks for it", want)
	}
}

func match(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

// headSize is the first template argument of a kernel's name, or 0.
func headSize(name string) int {
	_, args, _ := strings.Cut(name, "<")
	n, _ := strconv.Atoi(args[:strings.IndexAny(args+">", ",>")])
	return n
}

// Record returns the budgets as YAML with the report's figures as the new ceilings
// of its compiler major; rules, and ceilings of other majors and targets, stay.
// The comment lines at the top of budgets.yaml are kept.
func (b *Budgets) Record(w io.Writer, r *Report) error {
	major := strconv.Itoa(r.CompilerMajor)
	if b.Recorded == nil {
		b.Recorded = map[string]map[string]map[string]Ceiling{}
	}
	if b.Recorded[major] == nil {
		b.Recorded[major] = map[string]map[string]Ceiling{}
	}
	fresh := map[string]map[string]Ceiling{}
	for _, k := range r.Kernels {
		if fresh[k.Target] == nil {
			fresh[k.Target] = map[string]Ceiling{}
		}
		fresh[k.Target][k.Name] = Ceiling{VGPR: k.VGPR, SGPR: k.SGPR, LDS: k.LDSBytes, Dot4: k.Dot4}
	}
	for target, kernels := range fresh {
		b.Recorded[major][target] = kernels
	}
	head, _, _ := bytes.Cut(recordedBudgets, []byte("\nrecorded:"))
	if _, err := fmt.Fprintf(w, "%s\n\nrecorded:\n", bytes.TrimRight(head, "\n")); err != nil {
		return err
	}
	for _, major := range sorted(b.Recorded) {
		fmt.Fprintf(w, "  %q:\n", major)
		for _, target := range sorted(b.Recorded[major]) {
			fmt.Fprintf(w, "    %s:\n", target)
			for _, name := range sorted(b.Recorded[major][target]) {
				c := b.Recorded[major][target][name]
				if _, err := fmt.Fprintf(w, "      %q: {vgpr: %d, sgpr: %d, lds: %d, dot4: %d}\n", name, c.VGPR, c.SGPR, c.LDS, c.Dot4); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func sorted[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
