package selfcheck

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"dot4fa/internal/fault"
	"dot4fa/internal/hostrun"
	"dot4fa/internal/isa"
	"dot4fa/internal/rdna3"
	"dot4fa/internal/rdna3/code"
	"dot4fa/internal/recipe"
)

// Targets are the GPUs whose code the emulator runs: one instruction set.
var Targets = []string{"gfx1100", "gfx1101", "gfx1102", "gfx1103"}

// Options are what a self check takes.
type Options struct {
	Clang   *isa.Compiler    // whose llvm-objdump disassembles
	Target  string           // one of Targets
	Objects [][]byte         // the kernels' code objects for it
	Host    *hostrun.Program // the launch code, from CompileHost
	Jobs    int
	Emulate rdna3.Options
	Say     func(format string, args ...any) // progress; nil: none
}

// Route is how the kernels of one route did.
type Route struct {
	Route string  `json:"route"`
	Cases int     `json:"cases"`
	Worst float64 `json:"worst_nmse"` // against float64, from the dequantised Q, K and V; 0 for pack and same bits, which are compared byte by byte
}

// Cost is what a route executes, from a case in which every query sees every cell. Lane-wise instructions are
// counted as waves issue them, times 32 lanes.
type Cost struct {
	Case    string             `json:"case"`
	Kernels map[string]uint64  `json:"kernels"`  // wave instructions by kernel
	PerPair map[string]float64 `json:"per_pair"` // lane instructions by class for each (query, key) pair
	PerKey  map[string]float64 `json:"per_key"`  // wave instructions by class, and bytes, for each key of a KV head
	Instr   uint64             `json:"wave_instructions"`
}

// KernelRun is what one kernel executed in all cases.
type KernelRun struct {
	Name     string  `json:"name"`
	Launches int     `json:"launches"`
	Instr    uint64  `json:"wave_instructions"`
	Rate     float64 `json:"wave_instructions_per_second"`
}

// Result is what a self check found.
type Result struct {
	Target       string      `json:"target"`
	Disassembler string      `json:"disassembler"`
	Routes       []Route     `json:"routes"`
	Costs        []Cost      `json:"costs"`
	Kernels      []KernelRun `json:"kernels"`
	NotRun       []string    `json:"not_run,omitempty"` // kernels that no case launched
	Rate         float64     `json:"wave_instructions_per_second"`
	Seconds      float64     `json:"seconds"`
}

// Worst is the worst NMSE of all routes.
func (r *Result) Worst() float64 {
	worst := 0.0
	for _, x := range r.Routes {
		worst = max(worst, x.Worst)
	}
	return worst
}

// CompileHost compiles the kernels' launch code for this machine, below dir; it needs no code object yet.
func CompileHost(ctx context.Context, r *recipe.Recipe, assets fs.FS, clang *isa.Compiler, dir string, jobs int) (*hostrun.Program, error) {
	return hostrun.CompileKernels(ctx, r, assets, hostrun.KernelOptions{
		Options: hostrun.Options{Compiler: clang.Path, Dir: filepath.Join(dir, "host"), Defines: hostrun.AMD, Jobs: jobs},
		Away:    func(*hostrun.Away) error { return fmt.Errorf("no machine to launch on") },
	})
}

// Run launches every kernel of r on the emulator and judges what they compute. A case that misses its tolerance, an access
// outside of a buffer, an instruction that is not known: each is an error with code VerifyFailed.
func Run(ctx context.Context, r *recipe.Recipe, o Options) (*Result, error) {
	if !slices.Contains(Targets, o.Target) {
		return nil, fault.New(fault.Usage, "%s code cannot be run here", o.Target).
			Hintf("the emulator knows gfx1100 and its siblings; --host runs the kernels' text for any target")
	}
	say := o.Say
	if say == nil {
		say = func(string, ...any) {}
	}
	dump, err := code.FindDisassembler(ctx, o.Clang.Path, o.Clang.Major)
	if err != nil {
		return nil, err
	}
	say("disassembling %d code objects", len(o.Objects))
	objects, err := Open(ctx, dump, o.Objects, o.Target)
	if err != nil {
		return nil, err
	}
	m := NewMachine(objects, o.Emulate)
	start := time.Now()
	out := &Result{Target: o.Target, Disassembler: "LLVM " + dump.Version}
	if err := out.run(ctx, r, m, o.Host, max(1, o.Jobs), say); err != nil {
		return nil, err
	}
	out.Seconds = time.Since(start).Seconds()
	out.sum(m)
	return out, nil
}

func (out *Result) run(ctx context.Context, r *recipe.Recipe, m *Machine, p *hostrun.Program, jobs int, say func(string, ...any)) error {
	list := checks(r)
	worst := make([]float64, len(list))
	costs := make([]*Cost, len(list))
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(jobs)
	for i, c := range list {
		group.Go(func() error {
			say("case %d of %d", i+1, len(list))
			one := m.fork()
			if c.run != nil {
				err := c.run(gctx, p.WithAway(one.Launch))
				m.join(one)
				return blame(err, one)
			}
			outcomes, err := p.WithAway(one.Launch).RunCases(gctx, []hostrun.Case{c.Case}, 1)
			if err == nil {
				err = c.Judge(outcomes[0])
			}
			if err != nil {
				return blame(err, one)
			}
			worst[i] = outcomes[0].NMSE
			if c.cost {
				costs[i] = costOf(c.Case, one)
			}
			m.join(one)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, c := range list {
		at := slices.IndexFunc(out.Routes, func(r Route) bool { return r.Route == c.route })
		if at < 0 {
			at = len(out.Routes)
			out.Routes = append(out.Routes, Route{Route: c.route})
		}
		out.Routes[at].Cases++
		out.Routes[at].Worst = max(out.Routes[at].Worst, worst[i])
		if costs[i] != nil {
			out.Costs = append(out.Costs, *costs[i])
		}
	}
	return nil
}

// blame says which kernels a failed case launched, and how to find out whether the compiler or the text is wrong.
func blame(err error, m *Machine) error {
	var f *fault.Error
	if errors.As(err, &f) && f.Hint == "" {
		names := slices.Sorted(maps.Keys(m.ran))
		f.Hintf("launched: %s; if `dot4fa isa --run --host` passes, the text is right and the compiler is not: try another", strings.Join(names, ", "))
	}
	return err
}

// sum lists what the kernels did.
func (out *Result) sum(m *Machine) {
	var all uint64
	var took time.Duration
	for name := range m.kernels {
		r := m.ran[name]
		if r == nil {
			out.NotRun = append(out.NotRun, name)
			continue
		}
		n := r.Counts.Total()
		all += n
		took += r.Time
		out.Kernels = append(out.Kernels, KernelRun{Name: name, Launches: r.Launches, Instr: n, Rate: float64(n) / r.Time.Seconds()})
	}
	slices.Sort(out.NotRun)
	slices.SortFunc(out.Kernels, func(a, b KernelRun) int { return isa.CompareNames(a.Name, b.Name) })
	if took > 0 {
		out.Rate = float64(all) / took.Seconds()
	}
}

// costOf relates what a case executed to its pairs and keys.
func costOf(c hostrun.Case, m *Machine) *Cost {
	number := func(name string, otherwise int) float64 {
		n, err := strconv.Atoi(c.Field(name))
		if err != nil {
			n = otherwise
		}
		return float64(n)
	}
	keys := number("nk", 256) * number("kv", 1) * number("seq", 1)
	pairs := keys * number("nq", 1) * number("gqa", 6)
	out := &Cost{Case: string(c), Kernels: map[string]uint64{}, PerPair: map[string]float64{}, PerKey: map[string]float64{}}
	for name, r := range m.ran {
		by := r.Counts.ByClass(r.Kernel)
		for class, n := range by {
			out.PerKey[rdna3.Class(class).String()] += float64(n) / keys
			out.PerPair[rdna3.Class(class).String()] += float64(n) * 32 / pairs
		}
		out.PerKey["load bytes"] += float64(r.Counts.LoadBytes) / keys
		out.PerKey["scalar bytes"] += float64(r.Counts.ScalarBytes) / keys
		out.PerKey["store bytes"] += float64(r.Counts.StoreBytes) / keys
		out.PerKey["lds bytes"] += float64(r.Counts.SharedBytes) / keys
		out.Kernels[name] = r.Counts.Total()
		out.Instr += r.Counts.Total()
	}
	return out
}

// check is one case of a self check.
type check struct {
	hostrun.Case
	route string
	cost  bool                                                // its counts are reported
	run   func(ctx context.Context, p *hostrun.Program) error // instead of one attention case
}

// checks are the cases: every kernel of the recipe is launched, every route takes another turn through masks, sinks,
// sequences and edges of nk.
func checks(r *recipe.Recipe) []check {
	var out []check
	n := 0
	for _, d := range r.Kernel.HeadSizes {
		for _, v := range r.Kernel.VTypes {
			add := func(route, format string, args ...any) *check {
				n++
				c := fmt.Sprintf("d=%d v=%s order=%d ", d, v, n) + fmt.Sprintf(format, args...)
				out = append(out, check{Case: hostrun.Case(c), route: route})
				return &out[len(out)-1]
			}
			masks := []string{"causal", "holes", "shuffled", "window", "dead", "bias", "sequences"}
			mask := func() string { return masks[n%len(masks)] }
			for i, gqa := range []int{1, 2, 4, 6, 8} {
				add("short decode", "nk=%d gqa=%d mask=%s sinks=%d", 257+n%60, gqa, mask(), i%2)
			}
			add("long decode", "nk=%d gqa=6 mask=causal cta=2 kv=2", 1025+n%7)
			add("long decode", "nk=%d gqa=8 mask=%s cta=1 sinks=1", 513+n%7, mask())
			add("verify", "nq=4 nk=%d gqa=6 mask=causal cta=2", 300+n%7)
			add("verify", "nq=%d nk=%d gqa=2 mask=%s kv=2 seq=2 k=f16", 2+n%7, 270+n%30, mask())
			add("prefill dot4", "route=prefill nq=33 nk=%d gqa=2 mask=causal", 200+n%60)
			add("prefill dot4", "route=prefill nq=9 nk=%d gqa=6 mask=%s k=f16 sinks=1", 97+n%60, mask())
			for i, warps := range []int{8, 4} { // for a device of one multiprocessor, then of many: shares of the cells, and a merge
				add("prefill mma", "route=mma nq=70 nk=%d gqa=2 mask=%s warps=%d sinks=%d", 150+n%60, mask(), warps, i)
				add("prefill mma", "route=mma nq=9 nk=%d gqa=6 mask=%s warps=%d sms=96 k=%s kv=2", 530+n%60, mask(), warps, []string{"packed", "f16"}[i])
			}
			add("unpack", "route=unpack nq=9 nk=%d gqa=2 mask=%s kv=2 seq=2 sinks=%d", 97+n%60, mask(), n%2)
			if d == slices.Max(r.Kernel.HeadSizes) {
				add("short decode", "nk=512 gqa=6 mask=none pad=0").cost = true
				add("long decode", "nk=4096 gqa=6 mask=none pad=0 cta=4").cost = true
				add("verify", "nq=4 nk=2048 gqa=6 mask=none pad=0 cta=4").cost = true
				add("prefill mma", "route=mma nq=64 nk=256 gqa=2 mask=none pad=0").cost = true
				add("prefill dot4", "route=prefill nq=%d nk=256 gqa=2 mask=none pad=0", r.Kernel.BM).cost = true
			}
		}
	}
	d, v := slices.Max(r.Kernel.HeadSizes), r.Kernel.VTypes[len(r.Kernel.VTypes)-1]
	for _, shape := range []string{"nk=1100 gqa=6 mask=causal", "nk=700 gqa=8 mask=shuffled sinks=1", "nk=520 gqa=8 mask=causal sinks=1 data=2"} {
		out = append(out, check{route: "same bits", run: func(ctx context.Context, p *hostrun.Program) error {
			return sameBits(ctx, p, fmt.Sprintf("d=%d v=%s %s nq=8", d, v, shape))
		}})
	}
	return append(out, packChecks()...)
}

// sameBits checks that a query row's output bits do not depend on the batch it is in, the split or the size of a partial result.
func sameBits(ctx context.Context, p *hostrun.Program, shape string) error {
	var want []string
	for _, plan := range []struct {
		first, rows int
		how         string
	}{{0, 8, "cta=2"}, {0, 1, "cta=0"}, {3, 1, "cta=1"}, {7, 1, "cta=3"}, {2, 3, "cta=0"}, {1, 6, "unit=8"}, {0, 8, "unit=8 cta=8"}} {
		c := hostrun.Case(fmt.Sprintf("%s first=%d rows=%d %s", shape, plan.first, plan.rows, plan.how))
		outcomes, err := p.RunCases(ctx, []hostrun.Case{c}, 1)
		if err == nil {
			err = c.Judge(outcomes[0])
		}
		if err != nil {
			return err
		}
		got := outcomes[0].Rows
		if want == nil {
			want = got
		}
		for i := range plan.rows {
			if got[i] != want[plan.first+i] {
				return fault.New(fault.VerifyFailed, "query row %d has other bits than in the batch of 8", plan.first+i).At("%s", c)
			}
		}
	}
	return nil
}
