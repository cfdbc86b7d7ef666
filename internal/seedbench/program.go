package seedbench

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"dot4fa/internal/fault"
	"dot4fa/internal/recipe"
	"dot4fa/internal/shell"
	"dot4fa/internal/standin"
)

//go:embed seed.cu
var source []byte

// variant is a set of kernel parameters of the dot4 prefill.
type variant struct {
	name   string
	change func(*recipe.Kernel)
}

// variants are the tiles and the staging that the seed tried, and some more. The
// first is the recipe's own.
var variants = []variant{
	{name: "recipe", change: func(*recipe.Kernel) {}},
	{name: "bm8", change: func(k *recipe.Kernel) { k.BM = 8 }},
	{name: "bm16", change: func(k *recipe.Kernel) { k.BM = 16 }},
	{name: "bm32", change: func(k *recipe.Kernel) { k.BM = 32 }},
	{name: "bn32", change: func(k *recipe.Kernel) { k.BN = 32 }},
	{name: "direct", change: func(k *recipe.Kernel) { k.KStaging = "none" }},
	{name: "pair", change: func(k *recipe.Kernel) { k.BM, k.GQAGroup = 32, "pair" }},
	{name: "triad", change: func(k *recipe.Kernel) { k.BM, k.GQAGroup = 16, "triad" }},
}

// variants are those that the recipe's backend can compile.
func (s *Seed) variants() []variant {
	return slices.DeleteFunc(slices.Clone(variants), func(v variant) bool {
		return v.kernel(s.Recipe.Kernel).Clash(s.Recipe.Backend) != nil
	})
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
	for _, v := range s.variants() {
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
		if !s.ROCm.Clang.Found() {
			return c, fault.New(fault.Environment, "no HIP compiler to build the seed's experiments with").Hintf("dot4fa doctor --recipe %s says what is missing", s.Recipe.Name)
		}
		c.Path = s.ROCm.Clang.Path
		c.Args = append(c.Args, "-x", "hip", "-DGGML_USE_HIP", "-D__HIP_PLATFORM_AMD__")
		for _, t := range s.Recipe.GPUTargets {
			c.Args = append(c.Args, "--offload-arch="+t)
		}
		c.Args = append(c.Args, s.ROCm.Flags()...)
	default:
		return c, fault.New(fault.Usage, "the seed's experiments need a GPU; recipe %s is for the CPU", s.Recipe.Name).Hintf("use a recipe with a GPU backend, such as rdna3 or cuda")
	}
	c.Args = append(append(c.Args, include...), filepath.Join(dir, "seed.cu"), "-o", filepath.Join(dir, "seed"))
	if s.Recipe.Backend == recipe.HIP {
		// its libraries need not be where the loader looks
		c.Args = append(c.Args, "--hip-link", "-Wl,-rpath,"+filepath.Join(s.ROCm.Root, "lib"))
	}
	return c, nil
}

// measurements builds the program of every variant, several at once, and then
// runs them one after the other.
func (s *Seed) measurements(ctx context.Context) (device string, list []Measurement, err error) {
	if err := s.build(ctx); err != nil {
		return "", nil, err
	}
	all := s.variants()
	counter := s.Report.Count("seed")
	for i, v := range all {
		var out, log bytes.Buffer
		c := shell.Command{Path: filepath.Join(s.Dir, v.name, "seed")}
		runErr := c.RunSplit(ctx, &out, &log)
		if ctx.Err() != nil {
			return "", nil, context.Cause(ctx)
		}
		name, some, err := parse(out.Bytes())
		switch {
		case runErr != nil && !shell.Ran(runErr):
			return "", nil, fault.New(fault.Environment, "the program of the experiments did not start: %w", runErr).At("%s", c.Path).
				Hintf("dot4fa doctor --recipe %s says what of this machine it lacks", s.Recipe.Name)
		case err != nil:
			return "", nil, fault.New(fault.Failure, "the experiments with %s ended early: %w%s", v.name, err, said(log.String())).At("%s", c.Path).
				Hintf("run that program by itself: the line it stops after is the experiment")
		case runErr != nil:
			return "", nil, fault.New(fault.VerifyFailed, "the experiments with %s computed wrong numbers%s", v.name, worst(some)).At("%s", c.Path).
				Hintf("the last column of what that program prints is the error; its figures of speed mean nothing")
		}
		device = name
		list = append(list, some...)
		counter.Step(i+1, len(all), v.name)
	}
	return device, list, nil
}

// said is what a program wrote to stderr, as the end of a message.
func said(log string) string {
	if log = strings.TrimSpace(log); log == "" {
		return ""
	}
	return ": " + log
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
	all := s.variants()
	errs := make([]error, len(all))
	slots := make(chan struct{}, max(1, runtime.GOMAXPROCS(0)))
	counter := s.Report.Count("seed build")
	var done int
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i, v := range all {
		wg.Add(1)
		go func() {
			defer wg.Done()
			slots <- struct{}{}
			defer func() { <-slots }()
			errs[i] = s.buildOne(ctx, v)
			mu.Lock()
			defer mu.Unlock()
			done++
			counter.Step(done, len(all), v.name)
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
		return fault.New(fault.Environment, "cannot write the experiments: %w", err).Hintf("is there space, and may %s be written?", dir)
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
