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
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"dot4fa/internal/bench"
	"dot4fa/internal/fault"
	"dot4fa/internal/progress"
	"dot4fa/internal/recipe"
	"dot4fa/internal/routes"
	"dot4fa/internal/shell"
	"dot4fa/internal/standin"
	"dot4fa/internal/vram"
)

//go:embed seed.cu
var source []byte

// Seed is what to measure, and with what.
type Seed struct {
	Recipe *recipe.Recipe
	Assets fs.FS  // kernels/ and templates/
	Work   string // the patched tree, for ggml's headers
	NVCC   string // the compiler of a cuda recipe
	Clang  string // that of a hip recipe
	ROCm   string // its installation
	Dir    string // for what is built
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

// variant is a set of kernel parameters of the dot4 prefill.
type variant struct {
	name   string
	change func(*recipe.Kernel)
}

// variants are the tiles and the staging that the seed tried, and some more. The
// first is the recipe's own.
var variants = []variant{
	{"recipe", func(*recipe.Kernel) {}},
	{"bm8", func(k *recipe.Kernel) { k.BM = 8 }},
	{"bm16", func(k *recipe.Kernel) { k.BM = 16 }},
	{"bm32", func(k *recipe.Kernel) { k.BM = 32 }},
	{"bn32", func(k *recipe.Kernel) { k.BN = 32 }},
	{"direct", func(k *recipe.Kernel) { k.KStaging = "none" }},
	{"pair", func(k *recipe.Kernel) { k.BM, k.GQAGroup = 32, "pair" }},
	{"triad", func(k *recipe.Kernel) { k.BM, k.GQAGroup = 16, "triad" }},
}

// kernel is the recipe's with what the program does not need left out.
func (v variant) kernel(k recipe.Kernel) recipe.Kernel {
	k.HeadSizes, k.VTypes = []int{256}, []string{"q4_0"}
	v.change(&k)
	return k
}

// Commands are the compile commands, in the order of the variants.
func (s *Seed) Commands() ([]shell.Command, error) {
	var out []shell.Command
	for _, v := range variants {
		c, err := s.compile(v)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

func (s *Seed) compile(v variant) (shell.Command, error) {
	dir := filepath.Join(s.Dir, v.name)
	include := []string{"-I" + dir}
	for _, sub := range []string{"ggml/src/ggml-cuda", "ggml/src", "ggml/include"} {
		include = append(include, "-I"+filepath.Join(s.Work, filepath.FromSlash(sub)))
	}
	layouts := "-DSEED_LAYOUTS=0"
	if v.name == variants[0].name {
		layouts = "-DSEED_LAYOUTS=1"
	}
	c := shell.Command{Args: []string{"-std=c++17", "-O3", "-DNDEBUG", layouts}}
	switch s.Recipe.Backend {
	case recipe.CUDA:
		if s.NVCC == "" {
			return c, fault.New(fault.Environment, "no CUDA compiler to build the seed's experiments with").Hintf("dot4fa doctor --recipe %s says what is missing", s.Recipe.Name)
		}
		c.Path = s.NVCC
		c.Args = append(c.Args, "-arch=sm_"+strings.TrimSuffix(s.Recipe.GPUTargets[0], "-real"), "-use_fast_math", "-extended-lambda", "-DGGML_USE_CUDA")
	case recipe.HIP:
		if s.Clang == "" {
			return c, fault.New(fault.Environment, "no HIP compiler to build the seed's experiments with").Hintf("dot4fa doctor --recipe %s says what is missing", s.Recipe.Name)
		}
		c.Path = s.Clang
		c.Args = append(c.Args, "-x", "hip", "-DGGML_USE_HIP", "-D__HIP_PLATFORM_AMD__")
		for _, t := range s.Recipe.GPUTargets {
			c.Args = append(c.Args, "--offload-arch="+t)
		}
		if s.ROCm != "" {
			c.Args = append(c.Args, "--rocm-path="+s.ROCm)
		}
	default:
		return c, fault.New(fault.Usage, "the seed's experiments need a GPU; recipe %s is for the CPU", s.Recipe.Name).Hintf("use a recipe with a GPU backend, such as rdna3 or cuda")
	}
	c.Args = append(append(c.Args, include...), filepath.Join(dir, "seed.cu"), "-o", filepath.Join(dir, "seed"))
	if s.Recipe.Backend == recipe.HIP {
		c.Args = append(c.Args, "--hip-link")
	}
	return c, nil
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

// measurements builds the program of every variant, several at once, and then
// runs them one after the other.
func (s *Seed) measurements(ctx context.Context) (device string, list []Measurement, err error) {
	if err := s.build(ctx); err != nil {
		return "", nil, err
	}
	counter := s.Report.Count("seed")
	for i, v := range variants {
		var out, log bytes.Buffer
		c := shell.Command{Path: filepath.Join(s.Dir, v.name, "seed")}
		runErr := c.RunSplit(ctx, &out, &log)
		if ctx.Err() != nil {
			return "", nil, context.Cause(ctx)
		}
		name, some, err := parse(out.Bytes())
		var exit *exec.ExitError
		switch {
		case runErr != nil && !errors.As(runErr, &exit):
			return "", nil, fault.New(fault.Environment, "the program of the experiments did not start: %w", runErr).At("%s", c.Path)
		case err != nil:
			return "", nil, fault.New(fault.Failure, "the experiments with %s ended early: %w %s", v.name, err, strings.TrimSpace(log.String())).At("%s", c.Path)
		case runErr != nil:
			return "", nil, fault.New(fault.VerifyFailed, "the experiments with %s computed wrong numbers%s", v.name, worst(some)).At("%s", c.Path)
		}
		device = name
		list = append(list, some...)
		counter.Step(i+1, len(variants), v.name)
	}
	return device, list, nil
}

// worst names the measurement with the largest error.
func worst(list []Measurement) string {
	if len(list) == 0 {
		return ""
	}
	m := slices.MaxFunc(list, func(a, b Measurement) int {
		switch {
		case a.NMSE != a.NMSE:
			return 1
		case b.NMSE != b.NMSE || a.NMSE < b.NMSE:
			return -1
		}
		return 1
	})
	return fmt.Sprintf(": %s, NMSE %.1e", m.Name, m.NMSE)
}

func (s *Seed) build(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(s.Work, "ggml", "src", "ggml-cuda", "common.cuh")); err != nil {
		return fault.New(fault.Environment, "there is no patched llama.cpp to take headers from").At("%s", s.Work).Hintf("build it first: dot4fa build --recipe %s", s.Recipe.Name)
	}
	errs := make([]error, len(variants))
	slots := make(chan struct{}, max(1, runtime.GOMAXPROCS(0)))
	counter := s.Report.Count("seed build")
	var done int
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i, v := range variants {
		wg.Add(1)
		go func() {
			defer wg.Done()
			slots <- struct{}{}
			defer func() { <-slots }()
			errs[i] = s.buildOne(ctx, v)
			mu.Lock()
			defer mu.Unlock()
			done++
			counter.Step(done, len(variants), v.name)
		}()
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Seed) buildOne(ctx context.Context, v variant) error {
	dir := filepath.Join(s.Dir, v.name)
	r := *s.Recipe
	r.Kernel = v.kernel(r.Kernel)
	if _, err := standin.WriteKernels(dir, &r, s.Assets); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "seed.cu"), source, 0o644); err != nil {
		return fault.New(fault.Environment, "cannot write the experiments: %w", err)
	}
	c, err := s.compile(v)
	if err != nil {
		return err
	}
	var log bytes.Buffer
	if err := c.Run(ctx, &log); err != nil {
		if ctx.Err() != nil {
			return err
		}
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		return fault.New(fault.BuildFailed, "the experiments do not compile (%s): %w\n    %s", v.name, err, strings.Join(lines[:min(len(lines), 8)], "\n    ")).
			Hintf("the command: %s", c)
	}
	return nil
}

// parse reads what the program prints. It ends with "done", or was cut short.
func parse(out []byte) (device string, list []Measurement, err error) {
	sc := bufio.NewScanner(bytes.NewReader(out))
	done := false
	for sc.Scan() {
		f := strings.Split(sc.Text(), "\t")
		switch {
		case f[0] == "done":
			done = true
		case f[0] == "device" && len(f) == 2:
			device = f[1]
		case len(f) == 6:
			m := Measurement{What: f[0], Name: f[1]}
			var errs [4]error
			m.NQ, errs[0] = strconv.Atoi(f[2])
			m.NK, errs[1] = strconv.Atoi(f[3])
			m.US, errs[2] = strconv.ParseFloat(f[4], 64)
			m.NMSE, errs[3] = strconv.ParseFloat(f[5], 64)
			if err := errors.Join(errs[:]...); err != nil || m.US <= 0 {
				return device, list, fmt.Errorf("no measurement: %q", sc.Text())
			}
			list = append(list, m)
		default:
			return device, list, fmt.Errorf("no measurement: %q", sc.Text())
		}
	}
	if !done {
		return device, list, errors.New("its output is cut")
	}
	return device, list, nil
}
