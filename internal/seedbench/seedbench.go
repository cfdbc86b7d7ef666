// Package seedbench repeats the experiments of the document this project began
// with, on the GPU that is there: logits by layout of K, what was tried around
// the loop of dot4 instructions, tile shapes, mask classes, split sizes and
// thresholds. Its tables have the document's columns, and its figures beside
// those measured.
//
// The part that is no attention call of the built tree is a program of its own,
// seed.cu, built here once for each set of kernel parameters.
package seedbench

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"time"

	"dot4fa/internal/bench"
	"dot4fa/internal/progress"
	"dot4fa/internal/recipe"
	"dot4fa/internal/routes"
	"dot4fa/internal/toolchain"
	"dot4fa/internal/vram"
)

// Seed is what to measure, and with what.
type Seed struct {
	Recipe *recipe.Recipe
	Assets fs.FS          // kernels/ and templates/
	Work   string         // the patched tree, for ggml's headers
	NVCC   string         // the compiler of a cuda recipe
	ROCm   toolchain.ROCm // with that of a hip recipe
	Dir    string         // for what is built
	Bench  *bench.Bench
	Model  string // for the figures of whole models; empty leaves them out
	Report *progress.Reporter
}

// Measurement is one line of the program.
type Measurement struct {
	What string  `json:"what"` // kq, tile, mask, stage
	Name string  `json:"name"`
	NQ   int     `json:"nq"`
	NK   int     `json:"nk"`
	US   float64 `json:"us"`
	NMSE float64 `json:"nmse"` // of the rows that were checked, against float64
}

// Run does all experiments: those of the program, and decode by split with the
// built tree.
func (s *Seed) Run(ctx context.Context) (*Result, error) {
	if _, err := s.Commands(); err != nil { // before anything is looked for on a GPU
		return nil, err
	}
	programs := []string{"test-backend-ops"}
	if s.Model != "" {
		programs = append(programs, "llama-bench")
	}
	name, err := s.Bench.Start(ctx, programs...)
	if err != nil {
		return nil, err
	}
	r := &Result{Device: name, Commit: s.Bench.Commit, Recipe: s.Recipe.Name, When: time.Now().UTC().Truncate(time.Second), Threshold: s.Recipe.Kernel.SplitKThreshold}
	ran, list, err := s.measurements(ctx)
	if err != nil {
		return nil, err
	}
	if ran != name {
		s.Report.Say("dot4fa: note: the experiments ran on %s, the tree is measured on %s", ran, name)
	}
	r.Measurements = list
	if r.Packing, err = s.Bench.Packing(ctx, 512); err != nil {
		return nil, err
	}
	if err := s.decode(ctx, r); err != nil {
		return nil, err
	}
	return r, s.tokens(ctx, r)
}

// tokens are the seed's figures of a whole model: prefill by length of the
// prompt, and each of its configurations at 15,000 cells.
func (s *Seed) tokens(ctx context.Context, r *Result) error {
	if s.Model == "" {
		return nil
	}
	packed := vram.Pair{K: "packed16", V: "q4_0"}
	var runs []bench.ModelRun
	for _, p := range seedPrefill {
		runs = append(runs, bench.ModelRun{File: s.Model, Caches: []vram.Pair{packed}, Depths: []int{0}, Prompt: p.tokens})
	}
	decode := bench.ModelRun{File: s.Model, Depths: []int{seedContext}, Gen: 64}
	prompt := bench.ModelRun{File: s.Model, Depths: []int{0}, Prompt: seedContext}
	for _, c := range seedConfigs {
		decode.Caches = append(decode.Caches, c.Pair)
		prompt.Caches = append(prompt.Caches, c.Pair)
	}
	for _, m := range append(runs, prompt, decode) {
		list, model, err := s.Bench.Tokens(ctx, m)
		if err != nil {
			return err
		}
		r.Tokens, r.Model = append(r.Tokens, list...), model
	}
	return nil
}

// depths and splits of decode; a split is a multiple of the recipe's chunk.
var (
	depths = []int{256, 512, 1024, 2048, 3328, 16384}
	splits = []int{0, 128, 256, 512, 1024} // 0: one workgroup
)

// decode times one row at every depth with every split, interleaved.
func (s *Seed) decode(ctx context.Context, r *Result) error {
	name := map[string]string{}
	for _, f := range routes.Flags(s.Recipe.Kernel) {
		name[f.ID] = f.Name
	}
	var shapes []bench.Shape
	for _, nk := range depths {
		shapes = append(shapes, bench.Shape{D: 256, KVHeads: 4, GQA: 6, NK: nk, NQ: 1})
	}
	type at struct{ nk, cells int }
	samples := map[at][]float64{}
	counter := s.Report.Count("seed decode")
	order := slices.Clone(splits)
	for rep := range s.Bench.Repeat {
		for i, cells := range order {
			if cells%s.Recipe.Kernel.Chunk != 0 {
				continue
			}
			env := []string{name["DECODE_SPLITK"] + "=0"}
			if cells > 0 {
				env = []string{name["DECODE_SPLITK"] + "=1", name["DECODE_SPLITK_THRESHOLD"] + "=0", name["DECODE_SPLITK_SIZE"] + "=" + strconv.Itoa(cells)}
			}
			times, err := s.Bench.Packed(ctx, shapes, "q4_0", env...)
			if err != nil {
				return err
			}
			for shape, us := range times {
				samples[at{shape.NK, cells}] = append(samples[at{shape.NK, cells}], us)
			}
			counter.Step(rep*len(order)+i+1, s.Bench.Repeat*len(order), fmt.Sprintf("splits of %d", cells))
		}
		slices.Reverse(order)
	}
	for _, nk := range depths {
		for _, cells := range splits {
			if us, spread := bench.Median(samples[at{nk, cells}]); us > 0 {
				r.Decode = append(r.Decode, Split{nk, cells, us, spread})
			}
		}
	}
	return nil
}
