// Package code reads compiled gfx1100 kernels: the code object's ELF file, with the
// kernels' descriptors and metadata, and its disassembly as llvm-objdump prints it.
package code

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"dot4fa/internal/fault"
)

// Arg is one kernel argument as the metadata describes it.
type Arg struct {
	Offset, Size int
	Kind         string // .value_kind: by_value, global_buffer, hidden_block_count_x, ...
}

// Kernel is one kernel of a code object.
type Kernel struct {
	Symbol       string
	VGPR, SGPR   int
	LDS, Scratch int // bytes of a workgroup, bytes of a lane
	Kernarg      int // bytes
	MaxWorkgroup int // threads
	Args         []Arg
	Descriptor   Descriptor
	Code         []Line // its instructions in order of address; filled by Object.Disassembly
	text         []byte
	section      string
}

// Descriptor is what the 64 bytes of a kernel descriptor say of a kernel's start.
type Descriptor struct {
	RoundMode32, RoundMode64   int // 0 nearest even, 1 up, 2 down, 3 toward zero
	DenormMode32, DenormMode64 int // bit 0: inputs are kept, bit 1: results are kept
	DX10Clamp, IEEE            bool
	UserSGPRs                  int
	KernargSGPR                int  // first of the two SGPRs with the address of the arguments; -1: none
	DispatchPtr                bool // the kernel asks for its dispatch packet
	WorkgroupID                [3]bool
	WorkitemIDs                int // 0: x in v0, 1: and y, 2: and z, ten bits each
	Wave32                     bool
}

// Object is a code object for one target.
type Object struct {
	Target  string // "gfx1100"
	Kernels []*Kernel
}

const (
	noteMetadata = 32   // NT_AMDGPU_METADATA
	machAMDGPU   = 224  // EM_AMDGPU
	machMask     = 0xff // EF_AMDGPU_MACH
)

// machines are the EF_AMDGPU_MACH values worth a name in a message.
var machines = map[uint32]string{
	0x41: "gfx1100", 0x46: "gfx1101", 0x47: "gfx1102", 0x44: "gfx1103", 0x43: "gfx1150", 0x4a: "gfx1151",
	0x48: "gfx1200", 0x4e: "gfx1201", 0x36: "gfx1030", 0x3f: "gfx90a", 0x4c: "gfx942", 0x30: "gfx908", 0x2f: "gfx906",
}

// Read reads a code object for the given target: an ELF file as clang writes it for amdgcn-amd-amdhsa, linked or not.
func Read(data []byte, target string) (*Object, error) {
	bad := func(format string, args ...any) error {
		return fault.New(fault.VerifyFailed, "not a usable code object: "+format, args...).
			Hintf("give what clang writes with --offload-arch=%s --offload-device-only, uncompressed and unbundled", target)
	}
	if !bytes.HasPrefix(data, []byte(elf.ELFMAG)) {
		if bytes.HasPrefix(data, []byte("__CLANG_OFFLOAD_BUNDLE__")) || bytes.HasPrefix(data, []byte("CCOB")) {
			return nil, bad("it is an offload bundle, not an ELF file")
		}
		return nil, bad("it is not an ELF file")
	}
	file, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return nil, bad("%w", err)
	}
	if uint16(file.Machine) != machAMDGPU || file.Class != elf.ELFCLASS64 {
		return nil, bad("it is for %v, not for an AMD GPU", file.Machine)
	}
	const flagsAt = 48 // e_flags of ELF64
	mach := binary.LittleEndian.Uint32(data[flagsAt:]) & machMask
	if machines[mach] != target {
		name := machines[mach]
		if name == "" {
			name = fmt.Sprintf("another GPU (machine %#x)", mach)
		}
		return nil, bad("it is for %s, not for %s", name, target)
	}
	meta, err := Metadata(data)
	if err != nil {
		return nil, bad("%w", err)
	}
	symbols, err := file.Symbols()
	if err != nil {
		if symbols, err = file.DynamicSymbols(); err != nil {
			return nil, bad("no symbols: %w", err)
		}
	}
	at := map[string]elf.Symbol{}
	for _, s := range symbols {
		at[s.Name] = s
	}
	o := &Object{Target: target}
	for _, m := range meta {
		k, err := kernelOf(m)
		if err != nil {
			return nil, bad("%w", err)
		}
		var section string
		if k.text, section, err = symbolBytes(file, at, k.Symbol); err != nil {
			return nil, bad("kernel %s: %w", k.Symbol, err)
		}
		k.section = section
		descriptor, _, err := symbolBytes(file, at, k.Symbol+".kd")
		if err != nil {
			return nil, bad("kernel %s: %w", k.Symbol, err)
		}
		if len(descriptor) != 64 {
			return nil, bad("kernel %s: its descriptor has %d bytes, not 64", k.Symbol, len(descriptor))
		}
		k.Descriptor = describe(descriptor)
		if !k.Descriptor.Wave32 {
			return nil, bad("kernel %s: it is compiled for waves of 64", k.Symbol)
		}
		o.Kernels = append(o.Kernels, k)
	}
	slices.SortFunc(o.Kernels, func(a, b *Kernel) int { return strings.Compare(a.Symbol, b.Symbol) })
	return o, nil
}

func kernelOf(m map[string]any) (*Kernel, error) {
	k := &Kernel{}
	k.Symbol, _ = m[".name"].(string)
	var missing error
	number := func(from map[string]any, key string) int {
		n, ok := Number(from, key)
		if !ok {
			missing = fmt.Errorf("kernel %s: no number %s in its metadata", k.Symbol, key)
		}
		return n
	}
	k.VGPR, k.SGPR = number(m, ".vgpr_count"), number(m, ".sgpr_count")
	k.LDS, k.Scratch = number(m, ".group_segment_fixed_size"), number(m, ".private_segment_fixed_size")
	k.Kernarg, k.MaxWorkgroup = number(m, ".kernarg_segment_size"), number(m, ".max_flat_workgroup_size")
	args, _ := m[".args"].([]any)
	for _, a := range args {
		arg, _ := a.(map[string]any)
		kind, _ := arg[".value_kind"].(string)
		k.Args = append(k.Args, Arg{Offset: number(arg, ".offset"), Size: number(arg, ".size"), Kind: kind})
	}
	return k, missing
}

func symbolBytes(file *elf.File, at map[string]elf.Symbol, name string) ([]byte, string, error) {
	s, ok := at[name]
	if !ok {
		return nil, "", fmt.Errorf("no symbol %s", name)
	}
	if int(s.Section) <= 0 || int(s.Section) >= len(file.Sections) {
		return nil, "", fmt.Errorf("symbol %s is in no section", name)
	}
	section := file.Sections[s.Section]
	body, err := section.Data()
	if err != nil {
		return nil, "", fmt.Errorf("section %s: %w", section.Name, err)
	}
	from := s.Value
	if file.Type != elf.ET_REL {
		from -= section.Addr
	}
	if from > uint64(len(body)) || s.Size > uint64(len(body))-from {
		return nil, "", fmt.Errorf("symbol %s is cut short", name)
	}
	return body[from : from+s.Size], section.Name, nil
}

func describe(d []byte) Descriptor {
	rsrc1, rsrc2 := binary.LittleEndian.Uint32(d[48:]), binary.LittleEndian.Uint32(d[52:])
	properties := binary.LittleEndian.Uint16(d[56:])
	bit := func(n int) bool { return properties>>n&1 != 0 }
	out := Descriptor{
		RoundMode32: int(rsrc1 >> 12 & 3), RoundMode64: int(rsrc1 >> 14 & 3),
		DenormMode32: int(rsrc1 >> 16 & 3), DenormMode64: int(rsrc1 >> 18 & 3),
		DX10Clamp: rsrc1>>21&1 != 0, IEEE: rsrc1>>23&1 != 0,
		UserSGPRs: int(rsrc2 >> 1 & 31), KernargSGPR: -1, WorkitemIDs: int(rsrc2 >> 11 & 3),
		WorkgroupID: [3]bool{rsrc2>>7&1 != 0, rsrc2>>8&1 != 0, rsrc2>>9&1 != 0},
		Wave32:      bit(10), DispatchPtr: bit(1),
	}
	next := 0
	for i, width := range []int{4, 2, 2} { // private segment buffer, dispatch packet, queue
		if bit(i) {
			next += width
		}
	}
	if bit(3) {
		out.KernargSGPR = next
	}
	return out
}
