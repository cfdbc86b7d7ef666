package code

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// bundle makes an offload bundle as clang-offload-bundler does: entries on page boundaries.
func bundle(entries map[string][]byte) []byte {
	var ids []string
	header := len(bundleMagic) + 8
	for id := range entries {
		ids = append(ids, id)
		header += 24 + len(id)
	}
	page := func(n int) int { return (n + 4095) &^ 4095 }
	out := binary.LittleEndian.AppendUint64([]byte(bundleMagic), uint64(len(ids)))
	at := page(header)
	for _, id := range ids {
		for _, n := range []int{at, len(entries[id]), len(id)} {
			out = binary.LittleEndian.AppendUint64(out, uint64(n))
		}
		out = append(out, id...)
		at = page(at + len(entries[id]))
	}
	for _, id := range ids {
		out = append(append(out, make([]byte, page(len(out))-len(out))...), entries[id]...)
	}
	return append(out, make([]byte, page(len(out))-len(out))...)
}

func TestExtract(t *testing.T) {
	object, _ := assemble(t)
	one := bundle(map[string][]byte{"host-x86_64-unknown-linux-gnu-": nil, "hipv4-amdgcn-amd-amdhsa--gfx1100": object})
	two := bundle(map[string][]byte{"host-x86_64-unknown-linux-gnu-": nil, "hipv4-amdgcn-amd-amdhsa--gfx1201": {1}, "hipv4-amdgcn-amd-amdhsa--gfx1100:sramecc-": object})
	other := bundle(map[string][]byte{"hipv4-amdgcn-amd-amdhsa--gfx1201": {1}, "hipv4-amdgcn-amd-amdhsa--gfx90a": {2}})
	for _, c := range []struct {
		name string
		data []byte
		n    int
		says string
	}{
		{"a code object", object, 1, ""},
		{"a bundle", one, 1, ""},
		{"bundles that were linked together", append(bytes.Clone(one), two...), 2, ""},
		{"a library with bundles", host(t, append(bytes.Clone(one), two...)), 2, ""},
		{"for other GPUs", other, 0, "it has code for gfx1201, gfx90a, not for gfx1100"},
		{"for no GPU", bundle(map[string][]byte{"host-x86_64": {1}}), 0, "its offload bundle has no code for a GPU"},
		{"compressed", []byte("CCOB\x02\x00\x01\x00"), 0, "its offload bundle is compressed"},
		{"a library with compressed bundles", host(t, []byte("CCOB\x02\x00\x01\x00")), 0, "its offload bundle is compressed"},
		{"cut short", one[:5000], 0, "its offload bundle is cut short"},
		{"cut in its table", one[:60], 0, "its offload bundle is cut short"},
		{"a text", []byte("hello"), 0, "neither an ELF file nor an offload bundle"},
		{"a program without GPU code", host(t, nil), 0, "has no code for GPUs"},
	} {
		got, err := Extract(c.data, "gfx1100")
		if len(got) != c.n || c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %d objects, %v; want %d, %q", c.name, len(got), err, c.n, c.says)
		}
		for _, o := range got {
			if !bytes.Equal(o, object) {
				t.Errorf("%s: the object has changed", c.name)
			}
		}
	}
	for n := range one[:200] {
		_, _ = Extract(one[:n], "gfx1100") // no panic
	}
}

// host is an object for this machine with data where HIP puts its GPU code.
func host(t *testing.T, data []byte) []byte {
	t.Helper()
	dir := t.TempDir()
	file, blob := filepath.Join(dir, "host.s"), filepath.Join(dir, "blob")
	text := ".text\n.globl f\nf:\n"
	if data != nil {
		text += fmt.Sprintf(".section %s,\"a\"\n.p2align 12\n.incbin \"%s\"\n", fatbinSection, blob)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(blob, data, 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "clang-19", "-c", file, "-o", file+".o").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	object, err := os.ReadFile(file + ".o")
	if err != nil {
		t.Fatal(err)
	}
	return object
}
