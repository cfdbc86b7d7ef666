package gguf

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dot4fa/internal/fault"
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
	b.put(uint32(3), uint64(1), uint64(4),
		"general.architecture", uint32(8), "llama",
		"llama.block_count", uint32(4), uint32(2),
		"llama.attention.head_count_kv", uint32(9), uint32(5), uint64(2), int32(1), int32(0),
		"llama.rope.freq_base", uint32(6), float32(10000),
		"token_embd.weight", uint32(2), uint64(64), uint64(3), uint32(8), uint64(0))
	return b.Bytes()
}

func TestRead(t *testing.T) {
	h, err := Read(bytes.NewReader(sample()))
	if err != nil {
		t.Fatal(err)
	}
	if arch, _ := h.String("general.architecture"); arch != "llama" || len(h.Tensors) != 1 {
		t.Errorf("arch %q, %d tensors", arch, len(h.Tensors))
	}
	if n, ok := h.Tensors[0].Bytes(); !ok || n != 2*3*34 {
		t.Errorf("64 x 3 values of q8_0 are %d bytes, %v", n, ok)
	}
	if h.Data%32 != 0 || h.Data < int64(len(sample())) {
		t.Errorf("data begin at %d, after a header of %d", h.Data, len(sample()))
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

// A file whose header is whole and whose data are not.
func TestCutData(t *testing.T) {
	head := sample()
	h, err := Read(bytes.NewReader(head))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "m.gguf")
	whole := append(head, make([]byte, int(h.Data)-len(head)+2*3*34)...)
	for n, want := range map[int]string{len(whole): "", len(whole) - 1: "token_embd.weight"} {
		if err := os.WriteFile(file, whole[:n], 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := Open(file)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || fault.Hint(err) == "") {
			t.Errorf("%d of %d bytes: %v", n, len(whole), err)
		}
	}
	if _, err := Open(t.TempDir()); err == nil || fault.Code(err) != fault.Usage {
		t.Errorf("a directory: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(sample())
	f.Fuzz(func(t *testing.T, data []byte) { Read(bytes.NewReader(data)) })
}
