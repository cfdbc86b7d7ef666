package routes

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"dot4fa/internal/page"
	"dot4fa/internal/recipe"
)

// Canonical is the call of the shape the kernels are tuned for: packed16 K,
// q4_0 V, head size 256, six query heads per KV head, aligned, f16 mask, on a
// device with matrix cores, as every GPU of the recipes has.
func Canonical(nq, nk int) Shape {
	return Shape{K: "packed16", V: "q4_0", NQ: nq, NK: nk, D: 256, DV: 256, GQA: 6, MatrixCores: true}
}

// PrintTable writes the table of routes in force under env, the prefill
// kernels and what is refused.
func PrintTable(w io.Writer, k recipe.Kernel, env Env, asJSON bool) error {
	if asJSON {
		type refusal struct {
			Text    string `json:"text"`
			Instead string `json:"instead"`
		}
		refusals := []refusal{}
		for _, r := range Reasons(k) {
			refusals = append(refusals, refusal{r.Text, r.Instead})
		}
		return writeJSON(w, map[string]any{
			"routes": Table(k), "variants": Variants(), "reasons": refusals, "line": Line(k, env, true),
			"splitk": env.on(flagSplitK), "splitk_threshold": env.value[flagThreshold], "split_size": env.value[flagSplitSize],
		})
	}
	rows := [][]string{{"ROUTE", "NQ", "NK", "SPLIT-K", "KERNEL"}}
	for _, r := range Table(k) {
		rows = append(rows, []string{r.Name, r.nq(), r.depth(env), r.splits(k, env), r.Kernel})
	}
	if err := page.Columns(w, rows); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nprefill kernels, auto takes the first that the device runs:")
	for _, v := range Variants() {
		on := ""
		switch {
		case v.MatrixCores:
			on = " (sm_80 and newer, RDNA3, RDNA4)"
		case v.Name == VariantF16 && shortPrefills(k) == "":
			on = " (only where asked for)"
		case v.Name == VariantF16:
			on = fmt.Sprintf(" (%s, or where asked for)", shortPrefills(k))
		}
		fmt.Fprintf(w, "  %s%s: %s\n", v.Name, on, v.Doc)
	}
	fmt.Fprintln(w, "\nA packed16 K takes no route, and the context is not created, when")
	for _, r := range Reasons(k) {
		if r.ID != "OTHER_K" && r.ID != "F16_MODE_OFF" && r.ID != "BESIDE_CACHE" {
			fmt.Fprintf(w, "  %s: %s\n", r.Text, r.Instead)
		}
	}
	_, err := fmt.Fprintln(w, "An f16 K takes these routes in f16-K mode only and upstream's kernels otherwise.")
	return err
}

// PrintRoute writes the route that s takes under env, and why; and what a
// device without matrix cores does where that differs.
func PrintRoute(w io.Writer, s Shape, k recipe.Kernel, env Env, asJSON bool) error {
	d := Route(s, k, env)
	plain := s
	plain.MatrixCores = false
	other := Route(plain, k, env)
	if !asJSON {
		if _, err := fmt.Fprintln(w, d.Why(k)); err != nil || other == d {
			return err
		}
		_, err := fmt.Fprintf(w, "without matrix cores: %s\n", other.Why(k))
		return err
	}
	name, why, _ := strings.Cut(d.Why(k), ": ")
	return writeJSON(w, map[string]any{
		"k": s.K, "v": s.V, "nq": s.NQ, "nk": s.NK, "d": s.D, "gqa": s.GQA,
		"route": name, "why": why, "variant": d.Variant, "variant_without_matrix_cores": other.Variant, "split": d.Split, "refused": d.Route == Refused,
	})
}

// depth writes which KV depths the row takes under env.
func (r Row) depth(env Env) string {
	from := strconv.Itoa(env.value[flagThreshold])
	switch {
	case r.Depth == AnyDepth || r.Depth == Short && !env.on(flagSplitK):
		return "any"
	case r.Depth == Short:
		return "< " + from
	case !env.on(flagSplitK):
		return "none"
	}
	return ">= " + from
}

// splits writes how the row's cells are split under env.
func (r Row) splits(k recipe.Kernel, env Env) string {
	if !r.Split || !env.on(flagSplitK) {
		return "no"
	}
	s := "by " + splitText(k, env.value[flagSplitSize], env.set[flagSplitSize])
	if r.Depth == AnyDepth {
		s += " from nk " + strconv.Itoa(env.value[flagThreshold])
	}
	return s
}

// SeedWarning is said wherever the seed's list is printed.
const SeedWarning = "the seed document's list: it turns an unsafe shortcut on and nothing in it is needed, -ctk packed16 is enough"

// EnvOptions say what PrintEnv prints.
type EnvOptions struct {
	Format string // "shell", "json" or "systemd"
	Seed   bool   // the seed's list and not the recipe's environment
}

// PrintEnv writes the environment that the recipe's programs need, which is
// nothing unless the recipe says so, or the seed document's list. Remarks are
// comments in out where the format has them; for JSON they go to warn.
func PrintEnv(out, warn io.Writer, r *recipe.Recipe, o EnvOptions) error {
	f, err := formatter(o.Format)
	if err != nil {
		return err
	}
	vars, remarks := map[string]string{}, []string{}
	if o.Seed {
		remarks = append(remarks, SeedWarning)
		for _, flag := range Flags(r.Kernel) {
			if _, ok := flag.value(flag.Seed); ok {
				vars[flag.Name] = flag.Seed
			} else if flag.Seed != "" {
				remarks = append(remarks, fmt.Sprintf("%s=%s is left out, this recipe takes %s", flag.Name, flag.Seed, flag.AllowedText()))
			}
		}
	} else {
		lookup := func(n string) (string, bool) { v, ok := r.Env[n]; return v, ok }
		if _, err := ParseEnv(r.Kernel, lookup); err != nil {
			return err
		}
		vars = r.Env
		if len(vars) == 0 {
			remarks = append(remarks, "nothing is needed: with -ctk packed16 the routes are on")
		}
	}
	return f(out, warn, order(r.Kernel, vars), remarks)
}

// PrintExplain writes what every flag does.
func PrintExplain(w io.Writer, k recipe.Kernel, asJSON bool) error {
	if asJSON {
		return writeJSON(w, Flags(k))
	}
	for i, f := range Flags(k) {
		if i > 0 {
			fmt.Fprintln(w)
		}
		def, seed := f.Default, f.Seed
		if def == "" {
			def = "unset"
		}
		if seed == "" {
			seed = "not in it"
		}
		fmt.Fprintf(w, "%s\n  %s\n  values: %s\n  default: %s; seed's list: %s\n", f.Name, f.Effect, f.AllowedText(), def, seed)
		switch f.Status {
		case Accepted:
			fmt.Fprintf(w, "  accepted, does nothing: %s\n", f.Because)
		case Unsafe:
			fmt.Fprintf(w, "  unsafe, ignored without %s=1: %s\n", Flags(k)[1].Name, f.Because)
		}
	}
	_, err := fmt.Fprintln(w, "\nNone is needed. A value that is not listed ends the load of the backend with a message.")
	return err
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// Line is the start-up line's list of the routes in force.
func Line(k recipe.Kernel, env Env, matrixCores bool) string {
	split, from := env.on(flagSplitK), strconv.Itoa(env.value[flagThreshold])
	var parts []string
	for _, r := range Table(k) {
		if r.Depth == Long && !split || r.NQMax > 0 && r.NQMax < r.NQMin {
			continue
		}
		s := r.Name + " nq " + r.nq()
		switch {
		case split && r.Depth == Short:
			s += " nk < " + from
		case split && r.Depth == Long:
			s += " nk >= " + from
		}
		if r.Split && split {
			s += " splits of " + splitText(k, env.value[flagSplitSize], env.set[flagSplitSize])
			if r.Depth == AnyDepth {
				s += " from nk " + from
			}
		}
		if r.ID == "PREFILL" {
			unpacks := env.unpacks()
			v := variantFor(env.value[flagVariant], matrixCores, unpacks, false)
			if v == "" {
				v = "refused"
			}
			s += " " + v
			if short := shortPrefills(k); short != "" && unpacks && env.value[flagVariant] == 0 {
				s += ", f16 " + short
			}
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, " | ")
}

// splitText writes how many cells a split has.
func splitText(k recipe.Kernel, split int, asked bool) string {
	if asked {
		return strconv.Itoa(split)
	}
	return fmt.Sprintf("%d to %d", k.Chunk, k.SuperChunk)
}

// nq writes the row's range of query rows.
func (r Row) nq() string {
	switch {
	case r.NQMax == 0:
		return strconv.Itoa(r.NQMin) + "+"
	case r.NQMax > r.NQMin:
		return fmt.Sprintf("%d..%d", r.NQMin, r.NQMax)
	}
	return strconv.Itoa(r.NQMin)
}

// Why puts a decision in one line, the same one that llama.cpp logs.
func (d Decision) Why(k recipe.Kernel) string {
	for _, r := range Reasons(k) {
		if r.ID == d.Reason {
			return strings.ToLower(d.Route) + ": " + r.Text + "; " + r.Instead
		}
	}
	text := ""
	for _, r := range Table(k) {
		if r.ID == d.Route {
			text = r.Name + ": " + r.Why
		}
	}
	if d.Variant != "" {
		text += ", " + d.Variant
	}
	if d.Split > 0 {
		text += ", splits of " + splitText(k, d.Split, d.Asked) + " cells"
	}
	return text
}

// shortPrefills says below how many cells auto unpacks, "" for never.
func shortPrefills(k recipe.Kernel) string {
	var s []string
	for _, d := range k.HeadSizes {
		if n := k.PrefillF16Below(d); n > 0 {
			s = append(s, fmt.Sprintf("nk < %d at D=%d", n, d))
		}
	}
	return strings.Join(s, ", ")
}
