package rdna3

import (
	"encoding/binary"
	"math/rand/v2"

	"dot4fa/internal/fault"
	"dot4fa/internal/rdna3/code"
)

// Options change what is free to the hardware.
type Options struct {
	Seed        uint64 // order of workgroups and waves, and how long a wave runs before the next; 0: in order, to the barrier
	Approximate uint32 // not 0: results that are promised to 1 ulp only are off by up to that, by this seed
}

// Kernel is a kernel ready to run.
type Kernel struct {
	Code *code.Kernel
	Name string
	code []inst
}

// poison is what registers and shared memory hold at the start: NaN as f32 and as two f16.
const poison = 0xffedffed

// kernargAddr is where the arguments lie.
const kernargAddr = 0x0000_7000_0000_0000

// mostInstructions ends a wave that does not end by itself.
const mostInstructions = 1 << 30

// Load decodes a kernel. An instruction this does not know is an error that names it.
func Load(k *code.Kernel, name string, o Options) (*Kernel, error) {
	d := &decoder{kernel: k, index: map[int]int{}, limit: k.VGPR, approx: o.Approximate}
	switch desc := k.Descriptor; {
	case desc.RoundMode32 != 0 || desc.RoundMode64 != 0:
		return nil, fault.New(fault.VerifyFailed, "rounds in a mode that is not modelled").At("%s", name)
	case desc.DenormMode32 != 0 && desc.DenormMode32 != 3 || desc.DenormMode64 != 3:
		return nil, fault.New(fault.VerifyFailed, "treats subnormal numbers in a mode that is not modelled").At("%s", name)
	case !desc.IEEE || !desc.DX10Clamp:
		return nil, fault.New(fault.VerifyFailed, "runs with IEEE mode or DX10 clamp off, which is not modelled").At("%s", name)
	case desc.DispatchPtr || desc.KernargSGPR < 0:
		return nil, fault.New(fault.VerifyFailed, "asks for a dispatch packet or for no arguments, which is not modelled").At("%s", name)
	default:
		d.flush = desc.DenormMode32 == 0
	}
	for i, l := range k.Code {
		d.index[l.Addr] = i
	}
	out := &Kernel{Code: k, Name: name}
	for _, l := range k.Code {
		in, err := d.decode(l)
		if l.Op == "ds_swizzle_b32" {
			in, err = d.split(l.Op, l.Args).swizzle(l.Words[0] & 0xffff)
		}
		if err != nil {
			return nil, fault.New(fault.VerifyFailed, "%s: %w", trim(l), err).At("%s+%#x", name, l.Addr).
				Hintf("internal/rdna3 needs this instruction")
		}
		out.code = append(out.code, in)
	}
	out.code = append(out.code, inst{class: Branch, run: func(w *wave, in *inst) { w.fail("ran past its last instruction") }})
	return out, nil
}

func trim(l code.Line) string {
	if l.Args == "" {
		return l.Op
	}
	return l.Op + " " + l.Args
}

// Launch is one kernel launch.
type Launch struct {
	Grid, Block [3]int   // workgroups, threads of each
	Shared      int      // bytes of dynamic shared memory, behind the kernel's own
	Args        [][]byte // explicit arguments in order
	Memory      *Memory
}

// group is a workgroup at work.
type group struct {
	id     [3]int
	lds    []byte
	cells  []cell // of lds
	epoch  uint32 // barriers so far, over all workgroups
	memory *Memory
}

// stopped is what a wave panics with.
type stopped struct{ err *fault.Error }

// fail ends the launch: what the wave did, where.
func (w *wave) fail(format string, args ...any) {
	l := w.kernel.Code.Code[min(w.pc, len(w.kernel.Code.Code))-1]
	panic(stopped{fault.New(fault.VerifyFailed, "%s: "+format, append([]any{trim(l)}, args...)...).
		At("%s+%#x, workgroup %v, wave %d", w.kernel.Name, l.Addr, w.group.id, w.index)})
}

// Run executes a launch, workgroup after workgroup.
func (k *Kernel) Run(l Launch, o Options) (counts *Counts, err error) {
	threads := l.Block[0] * l.Block[1] * l.Block[2]
	if threads <= 0 || threads > k.Code.MaxWorkgroup || l.Grid[0] <= 0 || l.Grid[1] <= 0 || l.Grid[2] <= 0 {
		return nil, fault.New(fault.VerifyFailed, "launched with grid %v of blocks %v; at most %d threads", l.Grid, l.Block, k.Code.MaxWorkgroup).At("%s", k.Name)
	}
	memory := l.Memory
	kernarg, err := k.arguments(l)
	if err != nil {
		return nil, err
	}
	full := &Memory{buffers: append([]*Buffer{}, memory.buffers...)}
	if err := full.Add(&Buffer{Name: "the arguments", Addr: kernargAddr, Data: kernarg}); err != nil {
		return nil, err
	}
	counts = &Counts{Executed: make([]uint64, len(k.code))}
	g := &group{lds: make([]byte, k.Code.LDS+l.Shared), memory: full}
	g.cells = make([]cell, (len(g.lds)+3)/4)
	waves := make([]*wave, (threads+lanes-1)/lanes)
	for i := range waves {
		waves[i] = &wave{group: g, index: i, kernel: k, counts: counts, scratch: make([]byte, k.Code.Scratch*lanes)}
	}
	random := rand.New(rand.NewPCG(o.Seed, 1))
	order := make([]int, l.Grid[0]*l.Grid[1]*l.Grid[2])
	for i := range order {
		order[i] = i
	}
	if o.Seed != 0 {
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	defer func() {
		if p := recover(); p != nil {
			s, ok := p.(stopped)
			if !ok {
				panic(p)
			}
			err = s.err
		}
	}()
	for _, n := range order {
		g.id = [3]int{n % l.Grid[0], n / l.Grid[0] % l.Grid[1], n / l.Grid[0] / l.Grid[1]}
		for i := 0; i+4 <= len(g.lds); i += 4 {
			binary.LittleEndian.PutUint32(g.lds[i:], poison)
		}
		g.epoch++
		for _, w := range waves {
			w.start(l, threads)
		}
		schedule(waves, random, o.Seed != 0)
	}
	return counts, nil
}

// schedule runs the waves of a workgroup until all have ended.
func schedule(waves []*wave, random *rand.Rand, shuffled bool) {
	ran := 0
	for {
		busy, waits := 0, 0
		for i := range waves {
			w, n := waves[i], mostInstructions
			if shuffled {
				w, n = waves[random.IntN(len(waves))], 1+random.IntN(400)
			}
			w.run(n)
			ran += n
		}
		for _, w := range waves {
			switch w.state {
			case running:
				busy++
			case waiting:
				waits++
			}
		}
		switch {
		case busy > 0 && ran/len(waves) > mostInstructions:
			for _, w := range waves {
				if w.state == running {
					w.pc++
					w.fail("still runs after %d instructions", ran/len(waves))
				}
			}
		case busy > 0:
		case waits == 0:
			return
		default: // every wave that has not ended is at the barrier
			waves[0].group.epoch++
			for _, w := range waves {
				if w.state == waiting {
					w.state = running
				}
			}
			ran = 0
		}
	}
}

// start puts a wave at the beginning of the kernel.
func (w *wave) start(l Launch, threads int) {
	d := &w.kernel.Code.Descriptor
	for r := range w.kernel.Code.VGPR {
		for i := range w.v[r] {
			w.v[r][i] = poison
		}
	}
	for r := range w.s {
		w.s[r] = poison
	}
	for i := range w.scratch {
		w.scratch[i] = 0xed
	}
	w.pc, w.state, w.scc = 0, running, 1
	w.vm, w.lgkm = w.vm[:0], w.lgkm[:0]
	w.s[null], w.s[execLo+1] = 0, 0
	w.s[d.KernargSGPR], w.s[d.KernargSGPR+1] = uint32(kernargAddr&all), uint32(kernargAddr>>32)
	next := d.UserSGPRs
	for i, on := range d.WorkgroupID {
		if on {
			w.s[next] = uint32(w.group.id[i])
			next++
		}
	}
	first := w.index * lanes
	w.s[execLo] = 0
	for i := range lanes {
		t := first + i
		if t >= threads {
			break
		}
		w.s[execLo] |= 1 << i
		x, y, z := t%l.Block[0], t/l.Block[0]%l.Block[1], t/l.Block[0]/l.Block[1]
		id := uint32(x)
		if d.WorkitemIDs >= 1 {
			id |= uint32(y) << 10
		}
		if d.WorkitemIDs >= 2 {
			id |= uint32(z) << 20
		}
		w.v[0][i] = id
	}
}

// arguments lays out the kernel's arguments as its metadata says, hidden ones included.
func (k *Kernel) arguments(l Launch) ([]byte, error) {
	out := make([]byte, max(k.Code.Kernarg, 1))
	for i := range out {
		out[i] = 0xed
	}
	explicit := 0
	for _, a := range k.Code.Args {
		if a.Offset < 0 || a.Size < 0 || a.Offset+a.Size > len(out) {
			return nil, fault.New(fault.VerifyFailed, "its arguments take more than the %d bytes it declares", len(out)).At("%s", k.Name)
		}
		at := out[a.Offset : a.Offset+a.Size]
		if len(a.Kind) < 7 || a.Kind[:7] != "hidden_" {
			if explicit >= len(l.Args) || len(l.Args[explicit]) != a.Size {
				return nil, fault.New(fault.VerifyFailed, "argument %d has %d bytes in the code object; the launch gives %d arguments", explicit, a.Size, len(l.Args)).
					At("%s", k.Name).Hintf("the kernels and the launch code are from different sources")
			}
			copy(at, l.Args[explicit])
			explicit++
			continue
		}
		for j := range at {
			at[j] = 0
		}
		if n, ok := hidden(a.Kind, l); ok {
			var b [8]byte
			binary.LittleEndian.PutUint64(b[:], uint64(n))
			copy(at, b[:])
		}
	}
	if explicit != len(l.Args) {
		return nil, fault.New(fault.VerifyFailed, "takes %d arguments; the launch gives %d", explicit, len(l.Args)).At("%s", k.Name)
	}
	return out, nil
}

// hidden is the value of a hidden argument; those that are not here are 0.
func hidden(kind string, l Launch) (int, bool) {
	for i, axis := range []string{"x", "y", "z"} {
		switch kind {
		case "hidden_block_count_" + axis:
			return l.Grid[i], true
		case "hidden_group_size_" + axis:
			return l.Block[i], true
		case "hidden_remainder_" + axis, "hidden_global_offset_" + axis:
			return 0, true
		}
	}
	if kind == "hidden_grid_dims" {
		return 3, true
	}
	return 0, false
}
