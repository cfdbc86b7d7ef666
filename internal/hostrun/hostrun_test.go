package hostrun

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var samples [2]*Program // plain, traced

// compileSamples builds testdata/samples.cpp once, or skips by name without a compiler.
func compileSamples(t *testing.T, traced bool) *Program {
	t.Helper()
	cxx := findCompiler(t)
	at := &samples[0]
	if traced {
		at = &samples[1]
	}
	if *at == nil {
		p, err := Compile(t.Context(), Options{
			Compiler: cxx,
			Dir:      filepath.Join(scratch, fmt.Sprintf("samples-%v", traced)),
			Name:     "samples",
			Sources:  []string{filepath.Join("testdata", "samples.cpp")},
			Traced:   traced,
		})
		if err != nil {
			t.Fatal(err)
		}
		*at = p
	}
	return *at
}

var scratch string // for programs that several tests share

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "hostrun")
	if err != nil {
		panic(err)
	}
	scratch = dir
	status := m.Run()
	os.RemoveAll(dir)
	os.Exit(status)
}

// Right kernels give right results under every order of threads.
func TestRightKernelsRun(t *testing.T) {
	for _, traced := range []bool{false, true} {
		p := compileSamples(t, traced)
		for _, name := range []string{"right", "narrow_shuffle", "reverse_right", "twice_right", "collect_right", "arithmetic"} {
			for seed := 1; seed <= 8; seed++ {
				for _, preempt := range []string{"0", "3"} {
					r, err := p.Run(t.Context(), nil, name, fmt.Sprint(seed), preempt)
					if err != nil {
						t.Fatal(err)
					}
					if r.Status != 0 {
						t.Errorf("%s, traced %v, seed %d, preempt %s: status %d\n%s%s", name, traced, seed, preempt, r.Status, r.Stdout, r.Stderr)
					}
				}
			}
		}
	}
}

// Each kind of broken kernel is found, by the means that should find it, under any seed.
func TestBrokenKernelsAreFound(t *testing.T) {
	plain, traced := compileSamples(t, false), compileSamples(t, true)
	for _, c := range []struct {
		name   string
		plain  int // status without tracing; -1: only sure when traced
		traced int
		says   string
	}{
		{"missing_barrier", -1, Diverged, "hostrun: "},
		{"uninitialised", 1, Diverged, "uninitialised: thread 0 reads smem + 12 bytes (samples.cpp:"},
		{"twice_reuse_race", -1, Diverged, "race on smem"},
		{"collect_atomic_race", -1, Diverged, "hostrun: "},
		{"reverse_warp_race", -1, Diverged, "hostrun: "},
		{"diverged_shuffle", Diverged, Diverged, "diverged: no thread can go on"},
		{"diverged_barrier", Diverged, Diverged, "different barriers"},
		{"early_return", Diverged, Diverged, "returned"},
		{"partial_mask", Diverged, Diverged, "mask 0000ffff"},
		{"past_the_array", Memory, Memory, "out of bounds for type 'float[4]'"},
		{"past_the_buffer", Memory, Memory, "heap-buffer-overflow"},
		{"reverse_past_the_struct", Memory, Memory, "use-after-poison"},
		{"reverse_misaligned", Memory, Memory, "requires 16 byte alignment"},
	} {
		for seed := 1; seed <= 3; seed++ {
			r, err := traced.Run(t.Context(), nil, c.name, fmt.Sprint(seed))
			if err != nil {
				t.Fatal(err)
			}
			if r.Status != c.traced || !strings.Contains(r.Stderr, c.says) {
				t.Errorf("%s, traced, seed %d: status %d, want %d and %q in\n%s", c.name, seed, r.Status, c.traced, c.says, r.Stderr)
			}
			if c.plain < 0 {
				continue
			}
			r, err = plain.Run(t.Context(), nil, c.name, fmt.Sprint(seed))
			if err != nil {
				t.Fatal(err)
			}
			if r.Status != c.plain {
				t.Errorf("%s, seed %d: status %d, want %d\n%s", c.name, seed, r.Status, c.plain, r.Stderr)
			}
		}
	}
}

// Without tracing a missing barrier is still found by the random order and the poison in nearly every run.
func TestRandomOrderExposesMissingBarrier(t *testing.T) {
	p := compileSamples(t, false)
	for _, name := range []string{"missing_barrier", "reverse_warp_race", "twice_reuse_race"} {
		wrong := 0
		for seed := 1; seed <= 20; seed++ {
			r, err := p.Run(t.Context(), nil, name, fmt.Sprint(seed))
			if err != nil {
				t.Fatal(err)
			}
			if r.Status != 0 {
				wrong++
			}
		}
		if wrong < 15 {
			t.Errorf("%s: wrong under %d of 20 seeds only", name, wrong)
		}
	}
}
