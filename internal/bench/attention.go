package bench

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"dot4fa/internal/fault"
	"dot4fa/internal/recipe"
	"dot4fa/internal/routes"
	"dot4fa/internal/shell"
	"dot4fa/internal/vram"
)

// timed names a case: a shape on a cache.
type timed struct {
	Shape
	vram.Pair
}

// group is the shapes that one process times: those that share a cache's size.
type group []Shape

func (g group) String() string {
	return fmt.Sprintf("d=%d gqa=%d nk=%d", g[0].D, g[0].GQA, g[0].NK)
}

// env tells the perf cases of the built test-backend-ops what to time.
func (b *Bench) env(g group, caches []vram.Pair) []string {
	var shapes, names []string
	for _, s := range g {
		shapes = append(shapes, fmt.Sprintf("%d,%d,%d,%d,%d", s.D, s.KVHeads, s.GQA, s.NK, s.NQ))
	}
	for _, c := range caches {
		names = append(names, c.String())
	}
	return append(b.timeEnv(b.Least),
		"PACKED16_PERF_SHAPES="+strings.Join(shapes, ";"),
		"PACKED16_PERF_CACHES="+strings.Join(names, ","))
}

// timeEnv asks for the time of a call in a replayed graph: on a GPU the second
// run captures it, and it is long enough that its launch costs little.
func (b *Bench) timeEnv(least time.Duration) []string {
	env := []string{"PACKED16_PERF_MS=" + strconv.FormatInt(least.Milliseconds(), 10)}
	if !b.onCPU() {
		env = append(env, "PACKED16_PERF_WARM=2", "PACKED16_PERF_CALLS=10")
	}
	return env
}

func (b *Bench) onCPU() bool { return b.Backend == recipe.CPU || b.Device == "CPU" }

func groups(shapes []Shape) []group {
	var out []group
	for _, s := range shapes {
		i := slices.IndexFunc(out, func(g group) bool {
			return g[0].D == s.D && g[0].GQA == s.GQA && g[0].KVHeads == s.KVHeads && g[0].NK == s.NK
		})
		if i < 0 {
			out = append(out, group{s})
		} else if !slices.Contains(out[i], s) {
			out[i] = append(out[i], s)
		}
	}
	return out
}

// perfArgs select our attention cases; upstream's own have other parameters.
func (b *Bench) perfArgs() []string {
	return []string{"perf", "-b", b.Device, "-o", "FLASH_ATTN_EXT", "-p", "^K=[^,]+,V=[^,]+,hs=", "--output", "sql"}
}

// attentionCommands are what attention runs in its first repetition.
func (b *Bench) attentionCommands(sel Selection) []shell.Command {
	var cmds []shell.Command
	for _, g := range groups(sel.Shapes) {
		cmds = append(cmds, b.command("test-backend-ops", b.env(g, sel.caches()), b.perfArgs()...))
	}
	return cmds
}

// attention times every shape of sel on packed16 and its baselines. What gave no
// figures is listed in the result, which is not an error as long as
// something did.
func (b *Bench) attention(ctx context.Context, sel Selection, r *Result) error {
	samples := map[timed][]float64{}
	refused := map[timed]bool{}
	failed := map[string]string{}
	var copies []float64

	all := groups(sel.Shapes)
	caches := sel.caches()
	counter := b.Report.Count("bench")
	total, done := b.Repeat*len(all), 0
	for rep := 0; rep < b.Repeat && !b.late(); rep++ {
		gbps, err := b.copySpeed(ctx)
		if err != nil {
			return err
		}
		copies = append(copies, gbps)
		for _, g := range all {
			if b.late() {
				break
			}
			list, err := b.time(ctx, g, caches)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err != nil {
				failed[g.String()] = err.Error()
			}
			for _, t := range list {
				s, p, ok := t.attention()
				switch {
				case !ok || !slices.Contains(g, s):
				case !t.supported:
					refused[timed{s, p}] = true
				default:
					samples[timed{s, p}] = append(samples[timed{s, p}], t.us)
					r.Upstream = t.commit
				}
			}
			done++
			counter.Step(done, total, g.String())
		}
		slices.Reverse(all)
		slices.Reverse(caches)
	}
	r.Memory = Memory{From: "copy"}
	r.Memory.GBps, r.Memory.Spread = Median(copies)
	b.rows(r, sel, samples)
	for _, what := range slices.Sorted(maps.Keys(failed)) {
		r.Failed = append(r.Failed, Failed{what, failed[what]})
	}
	b.listMissing(r, sel, samples, refused)
	if len(r.Rows) == 0 {
		why := "no case of the shapes asked for has a figure"
		if len(r.Failed) > 0 {
			why += ": " + r.Failed[0].What + ": " + r.Failed[0].Why
		}
		return fault.New(fault.Failure, "%s", why).
			Hintf("the program has to be built from this tree: dot4fa build --recipe %s", b.Recipe)
	}
	return nil
}

// time runs one group and checks that every case of it came back.
func (b *Bench) time(ctx context.Context, g group, caches []vram.Pair) ([]timing, error) {
	out, err := b.output(ctx, "test-backend-ops", b.env(g, caches), b.perfArgs()...)
	list, parseErr := parseSQL(out)
	if err != nil {
		return list, err
	}
	if parseErr != nil {
		return list, b.unread(parseErr)
	}
	want, got := len(g)*len(caches), 0
	for _, t := range list {
		if s, p, ok := t.attention(); ok && slices.Contains(g, s) && slices.Contains(caches, p) {
			got++
		}
	}
	if got != want {
		return list, b.unread(fmt.Errorf("it printed %d of %d cases", got, want))
	}
	return list, nil
}

// rows makes the table from the samples.
func (b *Bench) rows(r *Result, sel Selection, samples map[timed][]float64) {
	for _, s := range sel.Shapes {
		for _, v := range sel.V {
			p := vram.Pair{K: "packed16", V: v}
			us, spread := Median(samples[timed{s, p}])
			if us == 0 {
				continue
			}
			floor := 0.0
			if n, err := s.bytes(p); err == nil && r.Memory.GBps > 0 {
				floor = n / r.Memory.GBps / 1000
			}
			for _, base := range baselines(v) {
				baseUS, baseSpread := Median(samples[timed{s, base}])
				if baseUS == 0 {
					continue
				}
				r.Rows = append(r.Rows, Row{NK: s.NK, NQ: s.NQ, D: s.D, GQA: s.GQA, KVHeads: s.KVHeads, V: v, US: us, Spread: spread,
					Repeat: len(samples[timed{s, p}]), Route: b.route(s, v), Baseline: base.String(), BaseUS: baseUS, BaseSpr: baseSpread, FloorUS: floor})
			}
		}
	}
}

// listMissing records the cases asked for that have no figure.
func (b *Bench) listMissing(r *Result, sel Selection, samples map[timed][]float64, refused map[timed]bool) {
	lost := map[string][]string{}
	for _, s := range sel.Shapes {
		for _, c := range sel.caches() {
			t := timed{s, c}
			why := "printed no time"
			if refused[t] {
				why = "refused by " + b.Device
			} else if b.late() {
				why = notReached
			}
			if len(samples[t]) == 0 {
				lost[why] = append(lost[why], s.String()+" "+c.String())
			}
		}
	}
	for _, why := range slices.Sorted(maps.Keys(lost)) {
		list := lost[why]
		what := strings.Join(list[:min(3, len(list))], "; ")
		if len(list) > 3 {
			what += fmt.Sprintf("; and %d more", len(list)-3)
		}
		r.Failed = append(r.Failed, Failed{what, why})
	}
}

// route names the kernels that a packed16 call of this shape takes.
func (b *Bench) route(s Shape, v string) string {
	if b.onCPU() {
		return "cpu"
	}
	env, err := routes.ParseEnv(b.Kernel, b.lookup)
	if err != nil {
		return "?"
	}
	d := routes.Route(routes.Shape{K: "packed16", V: v, NQ: s.NQ, NK: s.NK, D: s.D, DV: s.D, GQA: s.GQA, MatrixCores: true}, b.Kernel, env)
	name := strings.ToLower(strings.ReplaceAll(d.Route, "_", " "))
	if d.Variant != "" {
		name += ", " + d.Variant
	}
	return name
}
