package gguf

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
)

type builder struct{ bytes.Buffer }

func (b *builder) put(values ...any) *builder {
	for _, v := range values {
		if s, ok := v.(string); ok {
			b.put(uint64(len(s)))
			b.WriteString(s)
			continue
		}
		binary.Write(&b.Buffer, binary.LittleEndian, v)
	}
	return b
}

func sample() []byte {
	b := &builder{}
	b.WriteString("GGUF")
	b.put(uint32(3), uint64(7), uint64(4),
		"general.architecture", uint32(8), "llama",
		"llama.block_count", uint32(4), uint32(2),
		"llama.attention.head_count_kv", uint32(9), uint32(5), uint64(2), int32(1), int32(0),
		"llama.rope.freq_base", uint32(6), float32(10000))
	return b.Bytes()
}

func TestRead(t *testing.T) {
	h, err := Read(bytes.NewReader(sample()))
	if err != nil {
		t.Fatal(err)
	}
	if arch, _ := h.String("general.architecture"); arch != "llama" || h.Tensors != 7 {
		t.Errorf("arch %q, %d tensors", arch, h.Tensors)
	}
	heads, ok := h.IntsPerLayer("llama.attention.head_count_kv", 2)
	if !ok || heads[0] != 1 || heads[1] != 0 {
		t.Errorf("heads %v %v", heads, ok)
	}
	if base, ok := h.Float("llama.rope.freq_base"); !ok || base != 10000 {
		t.Errorf("freq_base %v %v", base, ok)
	}
}

// Every prefix of a valid header is refused as cut short, and no byte change
// panics.
func TestDamage(t *testing.T) {
	whole := sample()
	for n := range whole {
		_, err := Read(bytes.NewReader(whole[:n]))
		if err == nil || !strings.Contains(err.Error(), "ends after") {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
	for i := range whole {
		damaged := bytes.Clone(whole)
		damaged[i] ^= 0xff
		Read(bytes.NewReader(damaged))
	}
}

func FuzzRead(f *testing.F) {
	f.Add(sample())
	f.Fuzz(func(t *testing.T, data []byte) { Read(bytes.NewReader(data)) })
}
