// Package selfcheck runs the kernels' compiled gfx1100 code in the emulator of
// internal/rdna3, launched by the kernels' own host code (hostrun's harness), and
// compares every route with float64.
package selfcheck

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"dot4fa/internal/fault"
	"dot4fa/internal/hostrun"
	"dot4fa/internal/isa"
	"dot4fa/internal/rdna3"
	"dot4fa/internal/rdna3/code"
)

// Machine holds the kernels of some code objects and runs launches of them. Its methods may be called
// from several goroutines.
type Machine struct {
	opts    rdna3.Options
	kernels map[string]*slot
	mu      sync.Mutex
	ran     map[string]*Ran
}

type slot struct {
	code *code.Kernel
	once sync.Once
	k    *rdna3.Kernel
	err  error
}

// Ran is what a kernel did so far.
type Ran struct {
	Kernel   *rdna3.Kernel
	Launches int
	Counts   rdna3.Counts
	Time     time.Duration // of a processor
}

// NewMachine returns a machine for the kernels of objects. A kernel that several objects have is taken once.
func NewMachine(objects []*code.Object, o rdna3.Options) *Machine {
	m := &Machine{opts: o, kernels: map[string]*slot{}, ran: map[string]*Ran{}}
	for _, obj := range objects {
		for _, k := range obj.Kernels {
			if name := kernelName(k.Symbol); m.kernels[name] == nil {
				m.kernels[name] = &slot{code: k}
			}
		}
	}
	return m
}

// Open disassembles code objects for target and reads them.
func Open(ctx context.Context, d *code.Disassembler, objects [][]byte, target string) ([]*code.Object, error) {
	var out []*code.Object
	for _, data := range objects {
		o, err := d.Open(ctx, data, target)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

// Ours returns the code objects that have kernels of this project.
func Ours(objects [][]byte) ([][]byte, error) {
	var out [][]byte
	for _, data := range objects {
		kernels, err := code.Metadata(data)
		if err != nil {
			return nil, fault.New(fault.VerifyFailed, "not a usable code object: %w", err).
				Hintf("give what the compiler wrote, uncut")
		}
		if slices.ContainsFunc(kernels, func(k map[string]any) bool {
			name, _ := k[".name"].(string)
			return strings.HasPrefix(kernelName(name), "packed16_")
		}) {
			out = append(out, data)
		}
	}
	return out, nil
}

// kernelName is what the host and the device call a kernel: "packed16_decode<256, packed16_v_q4_0, 6>".
func kernelName(symbol string) string {
	if at := strings.Index(symbol, "_Z"); at > 0 { // inside of the host's type named after the kernel
		symbol = symbol[at:]
	}
	return strings.ReplaceAll(isa.Demangle(symbol), "__half", "half")
}

func (m *Machine) kernel(name string) (*rdna3.Kernel, error) {
	s := m.kernels[name]
	if s == nil {
		return nil, fault.New(fault.VerifyFailed, "no kernel %s in the code objects", name).
			Hintf("the kernels and the launch code are from different sources")
	}
	s.once.Do(func() { s.k, s.err = rdna3.Load(s.code, name, m.opts) })
	return s.k, s.err
}

// Launch runs one launch of a host program.
func (m *Machine) Launch(a *hostrun.Away) error {
	name := kernelName(a.Symbol)
	k, err := m.kernel(name)
	if err != nil {
		return err
	}
	memory := &rdna3.Memory{}
	buffers := make([]*rdna3.Buffer, len(a.Buffers))
	for i, b := range a.Buffers {
		buffers[i] = &rdna3.Buffer{Name: "a buffer", Addr: b.Addr, Data: b.Data}
		if err := memory.Add(buffers[i]); err != nil {
			return err
		}
	}
	runtime.LockOSThread() // for its clock
	defer runtime.UnlockOSThread()
	start := clock()
	counts, err := k.Run(rdna3.Launch{Grid: a.Grid, Block: a.Block, Shared: a.Shared, Args: a.Args, Memory: memory}, m.opts)
	if err != nil {
		return err
	}
	took := max(clock()-start, 1)
	for i, b := range buffers {
		a.Buffers[i].Changed = b.Written
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.ran[name]
	if r == nil {
		r = &Ran{Kernel: k}
		m.ran[name] = r
	}
	r.Launches++
	r.Counts.Add(counts)
	r.Time += took
	return nil
}

// fork is the same machine with counts of its own.
func (m *Machine) fork() *Machine {
	return &Machine{opts: m.opts, kernels: m.kernels, ran: map[string]*Ran{}}
}

// join adds the counts of a fork.
func (m *Machine) join(o *Machine) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, r := range o.ran {
		if m.ran[name] == nil {
			m.ran[name] = &Ran{Kernel: r.Kernel}
		}
		mine := m.ran[name]
		mine.Launches += r.Launches
		mine.Counts.Add(&r.Counts)
		mine.Time += r.Time
	}
}

// Ran returns what each kernel did, by name.
func (m *Machine) Ran() map[string]*Ran { return m.ran }
