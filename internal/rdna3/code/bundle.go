package code

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"slices"
	"strings"

	"dot4fa/internal/fault"
)

const (
	bundleMagic     = "__CLANG_OFFLOAD_BUNDLE__"
	compressedMagic = "CCOB"
	fatbinSection   = ".hip_fatbin"
)

// ErrNone is in the error for a host's file that carries no code for GPUs at all.
var ErrNone = errors.New("has no code for GPUs")

// Extract returns the code objects for target in a file: the file itself when it is one, else those of the offload bundles
// that it is or, as a host object, a library or a program, carries. Without any, it says why.
func Extract(data []byte, target string) ([][]byte, error) {
	bad := func(format string, args ...any) *fault.Error {
		return fault.New(fault.VerifyFailed, format, args...).
			Hintf("give what clang writes with --offload-arch=%s --offload-device-only -c, or a library built for %s", target, target)
	}
	switch {
	case bytes.HasPrefix(data, []byte(bundleMagic)), bytes.HasPrefix(data, []byte(compressedMagic)):
	case bytes.HasPrefix(data, []byte(elf.ELFMAG)):
		file, err := elf.NewFile(bytes.NewReader(data))
		if err != nil {
			return nil, bad("not a usable code object: %w", err)
		}
		if uint16(file.Machine) == machAMDGPU {
			return [][]byte{data}, nil
		}
		section := file.Section(fatbinSection)
		if section == nil {
			return nil, bad("not a usable code object: it is for %v, and %w", file.Machine, ErrNone)
		}
		if data, err = section.Data(); err != nil {
			return nil, bad("section %s: %w", fatbinSection, err)
		}
	default:
		return nil, bad("not a usable code object: it is neither an ELF file nor an offload bundle")
	}
	var out [][]byte
	var others []string
	for len(data) > 0 { // linked together, bundles follow each other on page boundaries
		plain, packed := bytes.Index(data, []byte(bundleMagic)), bytes.Index(data, []byte(compressedMagic))
		if packed >= 0 && (plain < 0 || packed < plain) && packed < 4096 {
			return nil, bad("its offload bundle is compressed").
				Hintf("build with --no-offload-compress, or unpack it with clang-offload-bundler --unbundle")
		}
		if plain < 0 {
			break
		}
		data = data[plain:]
		entries, size, err := unbundle(data)
		if err != nil {
			return nil, bad("its offload bundle is cut short")
		}
		for id, object := range entries {
			switch arch, ok := gpuOf(id); {
			case ok && arch == target:
				out = append(out, object)
			case ok:
				others = append(others, arch)
			}
		}
		data = data[size:]
	}
	if len(out) == 0 {
		slices.Sort(others)
		others = slices.Compact(others)
		if len(others) == 0 {
			return nil, bad("its offload bundle has no code for a GPU")
		}
		return nil, bad("it has code for %s, not for %s", strings.Join(others, ", "), target)
	}
	return out, nil
}

// gpuOf is the GPU of a bundle's entry: "hipv4-amdgcn-amd-amdhsa--gfx1100" or the same with ":xnack-".
func gpuOf(id string) (string, bool) {
	at := strings.LastIndex(id, "gfx")
	if at < 0 {
		return "", false
	}
	arch, _, _ := strings.Cut(id[at:], ":")
	return arch, true
}

// unbundle reads one offload bundle at the start of data: its entries by name, and how far it goes.
func unbundle(data []byte) (entries map[string][]byte, size int, err error) {
	cut := errors.New("cut short")
	at := len(bundleMagic)
	number := func() uint64 {
		if at+8 > len(data) {
			err = cut
			return 0
		}
		at += 8
		return binary.LittleEndian.Uint64(data[at-8:])
	}
	entries, size = map[string][]byte{}, at
	for n := number(); n > 0 && err == nil; n-- {
		offset, length, name := number(), number(), number()
		if err != nil || name > uint64(len(data)-at) || offset > uint64(len(data)) || length > uint64(len(data))-offset {
			return nil, 0, cut
		}
		entries[string(data[at:at+int(name)])] = data[offset : offset+length]
		at += int(name)
		size = max(size, at, int(offset+length))
	}
	return entries, size, err
}
