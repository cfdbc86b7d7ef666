package code

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"math"
)

// Metadata returns what the metadata note of a code object says of each kernel, the
// values of "amdhsa.kernels": strings, bool, int64, uint64, float64, []any, map[string]any.
func Metadata(object []byte) ([]map[string]any, error) {
	file, err := elf.NewFile(bytes.NewReader(object))
	if err != nil {
		return nil, err
	}
	for _, s := range file.Sections {
		if s.Type != elf.SHT_NOTE {
			continue
		}
		data, err := s.Data()
		if err != nil {
			return nil, fmt.Errorf("section %s: %w", s.Name, err)
		}
		if desc := note(data, "AMDGPU", noteMetadata); desc != nil {
			return kernelsOf(desc)
		}
	}
	return nil, fmt.Errorf("no AMDGPU metadata note")
}

// note returns the descriptor of the first note with that owner and type, or nil.
func note(data []byte, owner string, kind uint32) []byte {
	pad := func(n uint32) int { return int(n+3) &^ 3 }
	for len(data) >= 12 {
		nameLen, descLen, t := binary.LittleEndian.Uint32(data), binary.LittleEndian.Uint32(data[4:]), binary.LittleEndian.Uint32(data[8:])
		data = data[12:]
		if nameLen > uint32(len(data)) || descLen > uint32(len(data)) || pad(nameLen)+int(descLen) > len(data) {
			return nil
		}
		name := bytes.TrimRight(data[:nameLen], "\x00")
		desc := data[pad(nameLen) : pad(nameLen)+int(descLen)]
		if string(name) == owner && t == kind {
			return desc
		}
		data = data[min(len(data), pad(nameLen)+pad(descLen)):]
	}
	return nil
}

func kernelsOf(desc []byte) ([]map[string]any, error) {
	root, rest, err := unpack(desc, 0)
	if err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	if len(rest) != 0 {
		return nil, fmt.Errorf("metadata: %d bytes after its end", len(rest))
	}
	top, _ := root.(map[string]any)
	list, ok := top["amdhsa.kernels"].([]any)
	if !ok {
		return nil, fmt.Errorf("metadata names no kernels")
	}
	var out []map[string]any
	for _, entry := range list {
		k, _ := entry.(map[string]any)
		out = append(out, k)
	}
	return out, nil
}

// Number returns the integer at key of a metadata map, and whether there is one.
func Number(m map[string]any, key string) (int, bool) {
	switch v := m[key].(type) {
	case int64:
		return int(v), true
	case uint64:
		return int(v), true
	}
	return 0, false
}

// unpack reads one MessagePack value: map[string]any, []any, string, []byte, int64, uint64, float64, bool or nil.
func unpack(b []byte, depth int) (any, []byte, error) {
	if len(b) == 0 || depth > 32 {
		return nil, nil, fmt.Errorf("MessagePack value cut short or nested too deep")
	}
	tag := b[0]
	b = b[1:]
	take := func(n uint64) ([]byte, error) {
		if n > uint64(len(b)) {
			return nil, fmt.Errorf("MessagePack value cut short")
		}
		v := b[:n]
		b = b[n:]
		return v, nil
	}
	unsigned := func(n uint64) (uint64, error) {
		raw, err := take(n)
		var v uint64
		for _, c := range raw {
			v = v<<8 | uint64(c)
		}
		return v, err
	}
	text := func(n uint64) (any, []byte, error) {
		raw, err := take(n)
		return string(raw), b, err
	}
	list := func(n uint64) (any, []byte, error) {
		out := []any{}
		for ; n > 0; n-- {
			v, rest, err := unpack(b, depth+1)
			if err != nil {
				return nil, nil, err
			}
			out, b = append(out, v), rest
		}
		return out, b, nil
	}
	table := func(n uint64) (any, []byte, error) {
		out := map[string]any{}
		for ; n > 0; n-- {
			key, rest, err := unpack(b, depth+1)
			if err != nil {
				return nil, nil, err
			}
			v, rest, err := unpack(rest, depth+1)
			if err != nil {
				return nil, nil, err
			}
			out[fmt.Sprint(key)], b = v, rest
		}
		return out, b, nil
	}
	sized := func(n uint64, read func(uint64) (any, []byte, error)) (any, []byte, error) {
		length, err := unsigned(n)
		if err != nil {
			return nil, nil, err
		}
		return read(length)
	}
	switch {
	case tag <= 0x7f:
		return uint64(tag), b, nil
	case tag <= 0x8f:
		return table(uint64(tag & 0xf))
	case tag <= 0x9f:
		return list(uint64(tag & 0xf))
	case tag <= 0xbf:
		return text(uint64(tag & 0x1f))
	case tag >= 0xe0:
		return int64(int8(tag)), b, nil
	}
	switch tag {
	case 0xc0:
		return nil, b, nil
	case 0xc2, 0xc3:
		return tag == 0xc3, b, nil
	case 0xc4, 0xc5, 0xc6:
		return sized(1<<(tag-0xc4), func(n uint64) (any, []byte, error) { raw, err := take(n); return raw, b, err })
	case 0xca:
		v, err := unsigned(4)
		return float64(math.Float32frombits(uint32(v))), b, err
	case 0xcb:
		v, err := unsigned(8)
		return math.Float64frombits(v), b, err
	case 0xcc, 0xcd, 0xce, 0xcf:
		v, err := unsigned(1 << (tag - 0xcc))
		return v, b, err
	case 0xd0, 0xd1, 0xd2, 0xd3:
		n := uint64(1) << (tag - 0xd0)
		v, err := unsigned(n)
		shift := 64 - 8*n
		return int64(v<<shift) >> shift, b, err
	case 0xd9, 0xda, 0xdb:
		return sized(1<<(tag-0xd9), text)
	case 0xdc, 0xdd:
		return sized(2<<(tag-0xdc), list)
	case 0xde, 0xdf:
		return sized(2<<(tag-0xde), table)
	}
	return nil, nil, fmt.Errorf("MessagePack tag %#x is not used in code objects", tag)
}
