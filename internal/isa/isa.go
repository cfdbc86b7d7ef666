// Package isa compiles the kernels for AMD GPUs, device side only, and reads from the
// machine code what each one costs: registers, spills, shared memory, waves per SIMD,
// dot4 instructions per (query, key) pair, loads by width. Nothing is run: these are
// properties of the code, not run on AMD hardware.
package isa

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"golang.org/x/sync/errgroup"
)

// Kernel is one kernel as compiled for one target.
type Kernel struct {
	Name         string         `json:"name"`
	Target       string         `json:"target"`
	Dot4         int            `json:"dot4"`          // dot4 instructions in the whole kernel
	Dot4PerPair  float64        `json:"dot4_per_pair"` // see dot4Use; 0 without dot4
	VGPR         int            `json:"vgpr"`
	SGPR         int            `json:"sgpr"`
	VGPRSpills   int            `json:"vgpr_spills"`
	SGPRSpills   int            `json:"sgpr_spills"`
	ScratchBytes int            `json:"scratch_bytes"`  // per lane
	LDSBytes     int            `json:"lds_bytes"`      // static, per workgroup
	Workgroup    int            `json:"workgroup"`      // most threads it may be launched with
	Occupancy    int            `json:"occupancy"`      // waves per SIMD, as the compiler reports it
	Loads        map[string]int `json:"loads"`          // "global_b128": instructions in the whole kernel
	Dot4Feeds    map[string]int `json:"dot4_feeds"`     // the loads whose results are dot4 operands in the hot loop
	Staged       map[string]int `json:"staged"`         // stores to shared memory of what a global load gave, by the load's width
	Hot          map[string]int `json:"hot"`            // instructions of the hot loop by class
	HotPairs     int            `json:"hot_pairs"`      // (query, key) pairs one lane works on in one turn of the hot loop
	Repeated     int            `json:"repeated_dot4"`  // dot4 in the hot loop whose operands another one has too
	OtherPerDot4 float64        `json:"other_per_dot4"` // see otherPerDot4
	PerSum       float64        `json:"per_sum"`        // see perSum; 0 without such a loop
	WMMA         int            `json:"wmma"`           // matrix products in the whole kernel
	WMMAInt      float64        `json:"wmma_int"`       // matrix products on bytes in the hot loop for each 16 x 16 logits
	WMMAFloat    float64        `json:"wmma_float"`     // the same on halves
	OtherWMMA    float64        `json:"other_per_wmma"` // see otherPerWMMA
	Symbol       string         `json:"symbol"`
}

// Report is what Inspect found.
type Report struct {
	Compiler      string   `json:"compiler"` // "clang 19.1.7"
	CompilerMajor int      `json:"compiler_major"`
	Headers       string   `json:"headers"` // "stand-in" or the upstream tree's
	Kernels       []Kernel `json:"kernels"`

	Objects map[string][][]byte `json:"-"` // the code objects by target, one of each unit
}

// Inspect compiles src for each target, jobs units at once, and reads the results.
// Kernels come in the order of targets, then by name, each once.
func Inspect(ctx context.Context, c *Compiler, src Source, targets []string, jobs int) (*Report, error) {
	dir, err := os.MkdirTemp("", "dot4fa-isa")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	found := make([][]Kernel, len(targets)*len(src.Units))
	objects := make([][]byte, len(found))
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(max(1, jobs))
	for i := range found {
		target, unit := targets[i/len(src.Units)], src.Units[i%len(src.Units)]
		group.Go(func() error {
			work := filepath.Join(dir, strconv.Itoa(i))
			if err := os.Mkdir(work, 0o755); err != nil {
				return err
			}
			asm, object, err := c.compile(gctx, src, unit, target, work)
			if err != nil {
				return err
			}
			objects[i] = object
			found[i], err = read(asm, object, target)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	r := &Report{Compiler: "clang " + c.Version, CompilerMajor: c.Major, Headers: "stand-in", Objects: map[string][][]byte{}}
	for t := range targets {
		r.Objects[targets[t]] = objects[t*len(src.Units) : (t+1)*len(src.Units)]
		kernels := slices.Concat(found[t*len(src.Units) : (t+1)*len(src.Units)]...)
		slices.SortStableFunc(kernels, byName)
		r.Kernels = append(r.Kernels, slices.CompactFunc(kernels, func(a, b Kernel) bool { return a.Name == b.Name })...)
	}
	if src.Tree != "" {
		r.Headers = src.Tree
	}
	return r, nil
}

// byName orders kernels by name.
func byName(a, b Kernel) int {
	return CompareNames(a.Name, b.Name)
}

// CompareNames orders kernel names, numbers in them by value.
func CompareNames(a, b string) int {
	return strings.Compare(numeric.ReplaceAllStringFunc(a, pad), numeric.ReplaceAllStringFunc(b, pad))
}

var numeric = regexp.MustCompile(`\d+`)

func pad(digits string) string { return fmt.Sprintf("%06s", digits) }

// read makes kernels of one target's assembly and code object.
func read(asm, object []byte, target string) ([]Kernel, error) {
	meta, err := readMetadata(object)
	if err != nil {
		return nil, err
	}
	functions, err := parseAsm(asm, func(s string) bool { _, ok := meta[s]; return ok })
	if err != nil {
		return nil, err
	}
	if len(functions) != len(meta) {
		return nil, fmt.Errorf("%s: the code object has %d kernels and the assembly %d", target, len(meta), len(functions))
	}
	var out []Kernel
	for _, f := range functions {
		m := meta[f.symbol]
		k := Kernel{
			Name: Demangle(f.symbol), Target: target, Symbol: f.symbol,
			VGPR: m.vgpr, SGPR: m.sgpr, VGPRSpills: m.vgprSpills, SGPRSpills: m.sgprSpills,
			ScratchBytes: m.scratch, LDSBytes: m.lds, Workgroup: m.maxWorkgroup, Occupancy: f.occupancy,
			Loads: map[string]int{}, Hot: map[string]int{},
		}
		if k.Occupancy == 0 {
			return nil, fmt.Errorf("%s: %s: the compiler reports no occupancy", target, k.Name)
		}
		for _, b := range f.blocks {
			for _, in := range b.insts {
				if isDot4(in.op) {
					k.Dot4++
				}
				if class(in.op) == classWMMA {
					k.WMMA++
				}
				if space, bits, ok := loadWidth(in.op); ok {
					k.Loads[fmt.Sprintf("%s_b%d", space, bits)]++
				}
			}
		}
		hot := f.hotLoop()
		for _, b := range hot {
			for _, in := range f.blocks[b].insts {
				k.Hot[class(in.op)]++
			}
		}
		k.Staged = f.staged()
		k.OtherPerDot4, k.PerSum = f.otherPerDot4(hot), f.perSum()
		use := f.dot4s(hot)
		k.Dot4Feeds, k.HotPairs, k.Repeated = use.feeds, use.pairs, use.count-use.words
		if use.pairs > 0 {
			k.Dot4PerPair = float64(use.count) / float64(use.pairs)
			k.WMMAInt = float64(use.wmmaInt) / float64(use.pairs) * 8 // a lane has 8 of 16 x 16
			k.WMMAFloat = float64(use.wmmaFloat) / float64(use.pairs) * 8
			k.OtherWMMA = f.otherPerWMMA(hot)
		}
		out = append(out, k)
	}
	return out, nil
}

// Print writes the report as a table.
func (r *Report) Print(w io.Writer) error {
	fmt.Fprintf(w, "%s, %s headers; properties of the code, not run on AMD hardware\n", r.Compiler, r.Headers)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	target := ""
	for _, k := range r.Kernels {
		if k.Target != target {
			target = k.Target
			fmt.Fprintf(t, "\n%s\tdot4\t/pair\tother/dot4\t/sum\tvgpr\tsgpr\tspills\tscratch\tlds\twaves\tloads\t\n", target)
		}
		fmt.Fprintf(t, "%s\t%d\t%g\t%.2f\t%.2f\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t\n", k.Name, k.Dot4, k.Dot4PerPair, k.OtherPerDot4, k.PerSum,
			k.VGPR, k.SGPR, k.VGPRSpills+k.SGPRSpills, k.ScratchBytes, k.LDSBytes, k.Occupancy, loadsText(k.Loads))
	}
	return t.Flush()
}

func loadsText(loads map[string]int) string {
	var keys []string
	for k := range loads {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for i, k := range keys {
		keys[i] = fmt.Sprintf("%s:%d", k, loads[k])
	}
	return strings.Join(keys, " ")
}
