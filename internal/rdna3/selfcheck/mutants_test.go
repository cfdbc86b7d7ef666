package selfcheck

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"dot4fa/internal/hostrun"
	"dot4fa/internal/packed16"
	"dot4fa/internal/rdna3"
	"dot4fa/internal/rdna3/code"
)

// with is the machine with one kernel changed.
func (m *Machine) with(name string, change func(k *code.Kernel)) *Machine {
	out := m.fork()
	out.kernels = map[string]*slot{}
	for n, s := range m.kernels {
		out.kernels[n] = s
	}
	k := *m.kernels[name].code
	k.Code = slices.Clone(k.Code)
	change(&k)
	out.kernels[name] = &slot{code: &k}
	return out
}

// caught runs the cases on a machine and returns what is wrong with the first bad one, "" when all are good.
func caught(ctx context.Context, m *Machine, p *hostrun.Program, cases []string) string {
	for _, c := range cases {
		q := p.WithAway(m.Launch)
		var err error
		if c == "pack" {
			err = pack(ctx, q, "f32", packed16.MSE)
		} else {
			var out []hostrun.Outcome
			out, err = q.RunCases(ctx, []hostrun.Case{hostrun.Case(c)}, 1)
			if err == nil {
				err = hostrun.Case(c).Judge(out[0])
			}
		}
		if err != nil {
			return err.Error()
		}
	}
	return ""
}

var (
	decodeCases = []string{"d=64 v=q4_0 nq=4 gqa=2 kv=2 seq=3 mask3=3 nk=1070 mask=holes cta=2 sinks=1", "d=64 v=q4_0 nq=8 gqa=6 kv=2 nk=600 mask=bias cta=1",
		"d=64 v=q4_0 nq=4 gqa=2 nk=300 mask=dead", "d=64 v=q4_0 nq=1 gqa=8 nk=5000 mask=none cta=1 seq=2"}
	prefillCases = []string{"d=64 v=q4_0 route=prefill nq=70 gqa=3 kv=3 seq=2 mask3=2 nk=333 mask=holes sinks=1", "d=64 v=q4_0 route=prefill nq=40 gqa=2 nk=140 mask=dead",
		"d=64 v=q4_0 route=prefill nq=64 gqa=1 nk=96 mask=bias"}
	mmaCases = []string{"d=64 v=q4_0 route=mma nq=70 gqa=3 kv=2 seq=2 mask3=2 nk=333 mask=holes sinks=1", "d=64 v=q4_0 route=mma nq=80 gqa=2 nk=140 mask=dead",
		"d=64 v=q4_0 route=mma nq=256 gqa=1 nk=320 mask=bias sms=96"}
)

// A kernel miscompiled on purpose is caught: one instruction is changed in what the disassembler printed.
func TestMiscompiledKernelsAreCaught(t *testing.T) {
	m, p := build(t, rdna3.Options{Seed: 3})
	const decode, prefill = "packed16_decode<64, packed16_v_q4_0, 8>", "packed16_prefill<64, packed16_v_q4_0, 1>"
	const mma = "packed16_prefill_mma<64, packed16_v_q4_0, 8>"
	replace := func(old, new string) func(l *code.Line) bool {
		return func(l *code.Line) bool {
			text := l.Op + " " + l.Args
			if !strings.Contains(text, old) {
				return false
			}
			l.Op, l.Args, _ = strings.Cut(strings.Replace(text, old, new, 1), " ")
			return true
		}
	}
	dropWait := func(l *code.Line) bool { // an s_waitcnt that waits for something waits for nothing
		drop := l.Op == "s_waitcnt" && strings.Contains(l.Args, "vmcnt(")
		if drop {
			l.Words = []uint32{0xbf89ffff}
		}
		return drop
	}
	for _, c := range []struct {
		name, kernel string
		change       func(l *code.Line) bool // changes the line, if it is one to change
		nth          int                     // which such line, from 1; 0: all
		cases        []string
		says         string
	}{
		{"an unsigned dot product", decode, replace("neg_lo:[1,1,0]", "neg_lo:[1,0,0]"), 1, decodeCases, "NMSE is"},
		{"a missing wait for memory", decode, dropWait, 0, decodeCases, "NMSE is|not finite|load|stores"},
		{"a missing wait for memory in prefill", prefill, dropWait, 0, prefillCases, "NMSE is|not finite|loads|stores"},
		{"a product without its sum", "packed16_merge<64, 1>", replace("v_fmac_f32_e32", "v_mul_f32_e32"), 1, decodeCases, "NMSE is|not finite"},
		{"minimum for maximum", decode, replace("v_max_f32_e32", "v_min_f32_e32"), 0, decodeCases, "NMSE is|not finite"},
		{"no barriers in decode", decode, replace("s_barrier", "s_nop 0"), 0, decodeCases, "a race: lane"},
		{"no barriers in prefill", prefill, replace("s_barrier", "s_nop 0"), 0, prefillCases, "a race: lane"},
		{"a condition turned round", decode, replace("s_cbranch_execz", "s_cbranch_execnz"), 1, decodeCases, "NMSE is|not finite|loads|stores|not zero"},
		{"a clamp of 127 to 126", "packed16_pack_rows<float>", replace("0x42fe0000", "0x42fc0000"), 0, []string{"pack"}, "payload"},
		{"a truncated store", "packed16_pack_rows<float>", replace("global_store_b16", "global_store_b8"), 1, []string{"pack"}, "scale"},
		{"bytes of another sign in a matrix product", mma, replace("neg_lo:[1,1,0]", "neg_lo:[0,1,0]"), 1, mmaCases, "NMSE is"},
		{"a store past the end", decode, replace("global_store_b32", "global_store_b128"), 1, decodeCases, "stores|hold|registers"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if m.kernels[c.kernel] == nil {
				t.Fatalf("no kernel %s", c.kernel)
			}
			changed := 0
			broken := m.with(c.kernel, func(k *code.Kernel) {
				seen := 0
				for i := range k.Code {
					l := k.Code[i]
					if !c.change(&l) {
						continue
					}
					if seen++; c.nth == 0 || seen == c.nth {
						k.Code[i] = l
						changed++
					}
				}
			})
			if changed == 0 {
				t.Fatalf("%s has nothing to change", c.kernel)
			}
			found := caught(t.Context(), broken, p, c.cases)
			if !slices.ContainsFunc(strings.Split(c.says, "|"), func(s string) bool { return found != "" && strings.Contains(found, s) }) {
				t.Errorf("not caught as %q: %q", c.says, found)
			} else {
				t.Logf("caught: %.300s", found)
			}
		})
	}
	t.Run("a bit in the code object", func(t *testing.T) { brokenObject(t, m, p, decode) })
	t.Run("each barrier", func(t *testing.T) {
		for kernel, cases := range map[string][]string{decode: decodeCases, prefill: prefillCases, mma: mmaCases, "packed16_merge<64, 1>": decodeCases} {
			eachBarrier(t, m, p, kernel, cases)
		}
	})
	t.Run("one instruction at random", func(t *testing.T) { randomMutants(t, m, p) })
}

// eachBarrier leaves out one barrier of a kernel after the other.
func eachBarrier(t *testing.T, m *Machine, p *hostrun.Program, kernel string, cases []string) {
	n, missed := 0, 0
	for i, l := range m.kernels[kernel].code.Code {
		if l.Op != "s_barrier" {
			continue
		}
		n++
		found := caught(t.Context(), m.with(kernel, func(k *code.Kernel) { k.Code[i].Op, k.Code[i].Args = "s_nop", "0" }), p, cases)
		if found == "" {
			t.Logf("%s: nothing fails without the barrier at %#x", kernel, l.Addr)
			missed++
		}
	}
	t.Logf("%s: %d of %d barriers missed when left out", kernel, n-missed, n)
	if n == 0 || 2*missed > n {
		t.Errorf("%s: only %d of %d barriers are missed", kernel, n-missed, n)
	}
}

// brokenObject flips one bit of the machine code itself, and disassembles it again.
func brokenObject(t *testing.T, m *Machine, p *hostrun.Program, name string) {
	at := slices.IndexFunc(m.kernels[name].code.Code, func(l code.Line) bool { return l.Op == "v_dot4_i32_iu8" })
	l := m.kernels[name].code.Code[at]
	word := binary.LittleEndian.AppendUint32(nil, l.Words[1])
	pattern := append(binary.LittleEndian.AppendUint32(nil, l.Words[0]), word...)
	for i, data := range compiled.objects {
		if bytes.Count(data, pattern) == 0 {
			continue
		}
		data = bytes.Clone(data)
		for at := bytes.Index(data, pattern); at >= 0; at = bytes.Index(data, pattern) {
			data[at+4] ^= 1 // the register of the first source
		}
		objects, err := Open(t.Context(), compiled.dump, [][]byte{data}, target)
		if err != nil {
			t.Fatal(err)
		}
		broken := NewMachine(objects, m.opts)
		for n, s := range m.kernels {
			if broken.kernels[n] == nil {
				broken.kernels[n] = s
			}
		}
		if found := caught(t.Context(), broken, p, decodeCases); !strings.Contains(found, "NMSE is") && !strings.Contains(found, "not finite") {
			t.Errorf("object %d, %s: %q", i, l.Args, found)
		} else {
			t.Logf("caught: %.200s", found)
		}
		return
	}
	t.Fatal("the instruction is in no code object")
}

var register = regexp.MustCompile(`\bv(\d+)\b`)

// mutate changes one line in a way that matters: another operation, swapped operands, another register or offset.
func mutate(l *code.Line, r *rand.Rand) bool {
	swap := strings.NewReplacer("v_add_", "v_sub_", "v_sub_", "v_add_", "v_max_", "v_min_", "v_min_", "v_max_", "v_and_b32", "v_or_b32", "v_or_b32", "v_and_b32",
		"v_fmac_", "v_mul_", "s_add_i32", "s_sub_i32", "s_add_u32", "s_sub_u32", "v_lshlrev", "v_lshrrev", "s_lshl", "s_lshr", "s_and_b32", "s_or_b32", "v_dual_add_f32", "v_dual_sub_f32",
		"cmp_gt", "cmp_lt", "cmp_lt", "cmp_gt", "cmp_eq", "cmp_ne", "v_exp_f32", "v_rcp_f32", "s_min_", "s_max_", "s_cselect_b32", "s_and_b32")
	switch r.IntN(3) {
	case 0:
		if op := swap.Replace(l.Op); op != l.Op {
			if l.Op == "v_fmac_f32_e32" {
				op = "v_mul_f32_e32"
			}
			l.Op = op
			return true
		}
	case 1: // the last vector register becomes its neighbour
		found := register.FindAllStringSubmatchIndex(l.Args, -1)
		if len(found) > 1 && strings.HasPrefix(l.Op, "v_") && !strings.Contains(l.Op, "dual") {
			last := found[len(found)-1]
			n, _ := strconv.Atoi(l.Args[last[2]:last[3]])
			l.Args = l.Args[:last[2]] + strconv.Itoa(n^1) + l.Args[last[3]:]
			return true
		}
	case 2:
		if before, after, ok := strings.Cut(l.Args, " offset:"); ok && !strings.HasPrefix(after, "swizzle") {
			digits, rest, _ := strings.Cut(after, " ")
			n, err := strconv.Atoi(digits)
			if err == nil {
				l.Args = strings.TrimSpace(before + " offset:" + strconv.Itoa(n^4) + " " + rest)
				return true
			}
		}
	}
	return false
}

// randomMutants breaks instructions that the cases execute, one at a time. Not all of it can matter: guards for values that
// do not occur, corrections of a division, maxima of one value.
func randomMutants(t *testing.T, m *Machine, p *hostrun.Program) {
	type target struct {
		kernel string
		cases  []string
	}
	kernels := []target{
		{"packed16_decode<64, packed16_v_q4_0, 8>", decodeCases}, {"packed16_merge<64, 1>", decodeCases}, {"packed16_quantize_q<64>", decodeCases},
		{"packed16_prefill<64, packed16_v_q4_0, 1>", prefillCases}, {"packed16_prefill_mma<64, packed16_v_q4_0, 8>", mmaCases},
		{"packed16_pack_rows<float>", []string{"pack"}},
	}
	each := 8
	if *full {
		each = 100
	}
	var mu sync.Mutex
	var survivors []string
	tried := 0
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(runtime.NumCPU())
	for _, k := range kernels {
		whole := m.fork()
		if found := caught(t.Context(), whole, p, k.cases); found != "" {
			t.Fatalf("%s before it is broken: %s", k.kernel, found)
		}
		ran := whole.ran[k.kernel].Counts.Executed
		r := rand.New(rand.NewPCG(11, uint64(len(k.kernel))))
		for n := 0; n < each; {
			at := r.IntN(len(ran) - 1)
			line := m.kernels[k.kernel].code.Code[at]
			before := line.Op + " " + line.Args
			if ran[at] == 0 || !mutate(&line, r) {
				continue
			}
			broken := m.with(k.kernel, func(c *code.Kernel) { c.Code[at] = line })
			if _, err := broken.kernel(k.kernel); err != nil {
				continue // not an instruction
			}
			n++
			tried++
			group.Go(func() error {
				if found := caught(ctx, broken, p, k.cases); found == "" {
					mu.Lock()
					defer mu.Unlock()
					survivors = append(survivors, k.kernel+": "+before+" -> "+line.Op+" "+line.Args)
				}
				return nil
			})
		}
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d caught; not caught:\n%s", tried-len(survivors), tried, strings.Join(survivors, "\n"))
	if 10*len(survivors) > 4*tried {
		t.Errorf("only %d of %d are caught", tried-len(survivors), tried)
	}
}
