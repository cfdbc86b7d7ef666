package code

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"dot4fa/internal/fault"
)

const source = `	.amdgcn_target "amdgcn-amd-amdhsa--gfx1100"
	.text
	.globl k
	.p2align 8
	.type k,@function
k:
	s_load_b64 s[4:5], s[0:1], 0x8
	v_mov_b32_e32 v1, 0
	s_waitcnt lgkmcnt(0)
	global_store_b32 v1, v0, s[4:5]
	s_endpgm
.Lend:
	.size k, .Lend-k
	.rodata
	.amdhsa_kernel k
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_user_sgpr_count 13
		.amdhsa_next_free_vgpr 2
		.amdhsa_next_free_sgpr 6
		.amdhsa_wavefront_size32 1
		.amdhsa_system_vgpr_workitem_id 1
		.amdhsa_float_denorm_mode_32 3
	.end_amdhsa_kernel
	.amdgpu_metadata
---
amdhsa.kernels:
  - .args:
      - .address_space: global
        .offset: 0
        .size: 8
        .value_kind: global_buffer
      - .offset: 8
        .size: 8
        .value_kind: by_value
    .group_segment_fixed_size: 0
    .kernarg_segment_align: 8
    .kernarg_segment_size: 16
    .max_flat_workgroup_size: 64
    .name: k
    .private_segment_fixed_size: 0
    .sgpr_count: 6
    .symbol: k.kd
    .vgpr_count: 2
    .wavefront_size: 32
amdhsa.target: amdgcn-amd-amdhsa--gfx1100
amdhsa.version:
  - 1
  - 2
...
	.end_amdgpu_metadata
`

// assemble returns the code object of the source, and the disassembler of clang 19.
func assemble(t *testing.T) ([]byte, *Disassembler) {
	t.Helper()
	clang, err := exec.LookPath("clang-19")
	if err != nil {
		t.Skip("skipped: needs clang-19 with the amdgcn target")
	}
	dump, err := FindDisassembler(t.Context(), clang, 19)
	if err != nil {
		t.Skipf("skipped: needs llvm-objdump: %v", err)
	}
	file := filepath.Join(t.TempDir(), "k.s")
	if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), clang, "-x", "assembler", "--target=amdgcn-amd-amdhsa", "-mcpu=gfx1100", "-c", file, "-o", file+".o").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	data, err := os.ReadFile(file + ".o")
	if err != nil {
		t.Fatal(err)
	}
	return data, dump
}

func TestOpen(t *testing.T) {
	data, dump := assemble(t)
	o, err := dump.Open(t.Context(), data, "gfx1100")
	if err != nil {
		t.Fatal(err)
	}
	if len(o.Kernels) != 1 {
		t.Fatalf("%d kernels", len(o.Kernels))
	}
	k := o.Kernels[0]
	d := k.Descriptor
	if k.Symbol != "k" || k.VGPR != 2 || k.Kernarg != 16 || k.MaxWorkgroup != 64 || len(k.Args) != 2 || k.Args[1] != (Arg{8, 8, "by_value"}) {
		t.Errorf("%+v", k)
	}
	if d.KernargSGPR != 0 || d.UserSGPRs != 13 || !d.Wave32 || d.WorkitemIDs != 1 || d.DenormMode32 != 3 || !d.IEEE || !d.DX10Clamp || d.WorkgroupID != [3]bool{true, false, false} {
		t.Errorf("%+v", d)
	}
	if len(k.Code) != 5 || k.Code[0].Op != "s_load_b64" || k.Code[0].Args != "s[4:5], s[0:1], 0x8" || len(k.Code[0].Words) != 2 || k.Code[1].Addr != 8 || k.Code[4].Op != "s_endpgm" {
		t.Errorf("%+v", k.Code)
	}
}

// A linked code object ends in zeros, which the disassembler leaves out.
func TestGapsOfZeros(t *testing.T) {
	data, dump := assemble(t)
	o, err := Read(data, "gfx1100")
	if err != nil {
		t.Fatal(err)
	}
	text, err := dump.Text(t.Context(), data, "gfx1100")
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Disassembly(append(bytes.TrimRight(text, "\n"), "\n\t\t...\n"...)); err != nil {
		t.Error(err)
	}
	middle := strings.Replace(string(text), "\tv_mov_b32_e32", "\t\t...\n\tv_mov_b32_e32", 1)
	at := strings.Index(middle, "\tv_mov_b32_e32")
	end := at + strings.Index(middle[at:], "\n") + 1
	if err := o.Disassembly([]byte(middle[:at] + middle[end:])); err == nil || !strings.Contains(err.Error(), "is missing") {
		t.Errorf("a gap in a kernel: %v", err)
	}
}

// Files and texts that cannot be used are named, with what to do.
func TestBadCodeObjects(t *testing.T) {
	data, dump := assemble(t)
	text, err := dump.Text(t.Context(), data, "gfx1100")
	if err != nil {
		t.Fatal(err)
	}
	patched := func(at int, b byte) []byte {
		p := bytes.Clone(data)
		p[at] = b
		return p
	}
	changedCode := bytes.Clone(data)
	at := bytes.Index(changedCode, binary.LittleEndian.AppendUint32(nil, 0x7e020280)) // v_mov_b32 v1, 0
	changedCode[at] = 0x81
	for _, c := range []struct {
		name, says string
		object     []byte
		text       string
	}{
		{"empty", "it is not an ELF file", nil, ""},
		{"a text", "it is not an ELF file", []byte("#!/bin/sh\n"), ""},
		{"a bundle", "it is an offload bundle", []byte("__CLANG_OFFLOAD_BUNDLE__"), ""},
		{"for x86", "not for an AMD GPU", patched(18, 62), ""},
		{"for gfx1201", "it is for gfx1201, not for gfx1100", patched(48, 0x4e), ""},
		{"for something new", "it is for another GPU (machine 0xfe), not for gfx1100", patched(48, 0xfe), ""},
		{"cut in the header", "not a usable code object", data[:40], ""},
		{"cut in half", "not a usable code object", data[:len(data)/2], ""},
		{"another file's text", "is not what the code object has there", changedCode, string(text)},
		{"no text", "the disassembly has 0 of the", data, "\n"},
		{"a text cut short", "bytes of k", data, string(text[:bytes.Index(text, []byte("\ts_endpgm"))])},
		{"a line left out", "is missing", data, strings.Replace(string(text), "\tv_mov_b32_e32", "v_mov_b32_e32", 1)},
		{"no words", "no address and words", data, strings.ReplaceAll(string(text), "//", "")},
		{"an operand not understood", "it is older than the compiler", data, strings.Replace(string(text), "v1, 0 ", "v1, v129/*Invalid register, operand has 'VS_32_Lo128' register class*/ ", 1)},
		{"an instruction not understood", "does not know the instruction", data, strings.Replace(string(text), "v_mov_b32_e32 v1, 0 ", ".long 0x7e020280 ", 1)},
	} {
		o, err := Read(c.object, "gfx1100")
		if err == nil {
			err = o.Disassembly([]byte(c.text))
		}
		switch {
		case err == nil || !strings.Contains(err.Error(), c.says):
			t.Errorf("%s: %v, not %q", c.name, err, c.says)
		case fault.Code(err) != fault.VerifyFailed || fault.Hint(err) == "":
			t.Errorf("%s: code %d, hint %q", c.name, fault.Code(err), fault.Hint(err))
		}
	}
}

// Every prefix of a code object is refused or, with the whole of the kernel in it, read; none panics.
func TestTruncatedCodeObjects(t *testing.T) {
	data, _ := assemble(t)
	for n := range data {
		_, _ = Read(data[:n], "gfx1100")
	}
}

func TestDisassemblerOfAnotherVersion(t *testing.T) {
	_, dump := assemble(t)
	if _, err := OpenDisassembler(t.Context(), dump.Path, 22); err == nil || fault.Code(err) != fault.Environment || !strings.Contains(err.Error(), "the compiler of LLVM 22") {
		t.Errorf("%v", err)
	}
	for body, says := range map[string]string{
		"#!/bin/sh\necho GNU objdump 2.40\n":    "does not say that it is LLVM's",
		"#!/bin/sh\nexit 3\n":                   "does not answer --version",
		"#!/bin/sh\necho LLVM version 14.0.6\n": "is of LLVM 14.0.6, the compiler of LLVM 19",
	} {
		path := filepath.Join(t.TempDir(), "llvm-objdump")
		if err := os.WriteFile(path, []byte(body), 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenDisassembler(context.Background(), path, 19); err == nil || !strings.Contains(err.Error(), says) || fault.Hint(err) == "" {
			t.Errorf("%v, not %q", err, says)
		}
	}
}
