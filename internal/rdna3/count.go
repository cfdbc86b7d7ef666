package rdna3

import "strings"

// Class is a kind of instruction for counting.
type Class uint8

const (
	Dot4   Class = iota // int8 dot products
	WMMA                // matrix products
	Trans               // exp, log, rcp, sqrt
	VALU                // every other vector instruction
	SALU                // scalar, without branches and waits
	LDS                 // shared memory and lane permutes through it
	VMem                // global, flat, scratch
	SMem                // scalar loads
	Branch              // and the end
	Wait                // barriers, waits, hints
	Classes
)

var classNames = [Classes]string{"dot4", "wmma", "trans", "valu", "salu", "lds", "vmem", "smem", "branch", "wait"}

func (c Class) String() string { return classNames[c] }

func classOf(op string) Class {
	has := func(prefixes ...string) bool {
		for _, p := range prefixes {
			if strings.HasPrefix(op, p) {
				return true
			}
		}
		return false
	}
	switch {
	case has("v_dot4_", "v_dot8_"):
		return Dot4
	case has("v_wmma_"):
		return WMMA
	case has("v_exp_", "v_log_", "v_rcp_", "v_rsq_", "v_sqrt_", "v_sin_", "v_cos_"):
		return Trans
	case has("v_"):
		return VALU
	case has("ds_"):
		return LDS
	case has("global_", "flat_", "scratch_"):
		return VMem
	case has("s_load_"):
		return SMem
	case has("s_branch", "s_cbranch", "s_endpgm"):
		return Branch
	case has("s_barrier", "s_wait", "s_nop", "s_delay", "s_clause", "s_sleep", "s_set_inst", "s_sendmsg", "s_code_end", "buffer_gl"):
		return Wait
	}
	return SALU
}

// Counts are what a kernel executed, over all waves.
type Counts struct {
	Executed    []uint64 // by instruction
	LoadBytes   uint64   // of lanes that ran, from global memory
	StoreBytes  uint64
	ScalarBytes uint64
	SharedBytes uint64
}

func (c *Counts) load(m *access, lanes int) {
	if m.space != private {
		c.LoadBytes += uint64(m.size * lanes)
	}
}

func (c *Counts) store(m *access, lanes int) {
	if m.space != private {
		c.StoreBytes += uint64(m.size * lanes)
	}
}

// Add adds the counts of another run of the same kernel.
func (c *Counts) Add(o *Counts) {
	if c.Executed == nil {
		c.Executed = make([]uint64, len(o.Executed))
	}
	for i, n := range o.Executed {
		c.Executed[i] += n
	}
	c.LoadBytes += o.LoadBytes
	c.StoreBytes += o.StoreBytes
	c.ScalarBytes += o.ScalarBytes
	c.SharedBytes += o.SharedBytes
}

// Total is the number of instructions, each wave's counted.
func (c *Counts) Total() uint64 {
	var n uint64
	for _, x := range c.Executed {
		n += x
	}
	return n
}

// ByClass sums up the instructions that kernel k executed.
func (c *Counts) ByClass(k *Kernel) [Classes]uint64 {
	var out [Classes]uint64
	for i, n := range c.Executed {
		out[k.code[i].class] += n
	}
	return out
}
