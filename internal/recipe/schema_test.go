package recipe

import (
	"encoding/json"
	"strings"
	"testing"

	"dot4fa/internal/fault"
)

// TestKernelTable: every parameter has a field of its own, a default that its
// own check accepts, and a line of documentation.
func TestKernelTable(t *testing.T) {
	var k Kernel
	seen := map[any]string{}
	for _, p := range kernelKeys {
		ptr := p.field(&k)
		if other, dup := seen[ptr]; dup {
			t.Errorf("%s and %s share a field", p.Path, other)
		}
		seen[ptr] = p.Path
		if p.Doc == "" || p.Default == nil {
			t.Errorf("%s has no doc or no default", p.Path)
		}
		text := ok + "kernel: {" + p.Name() + ": " + p.DefaultText() + "}\n"
		if _, err := load(map[string]string{"x": text}, "x"); err != nil {
			t.Errorf("the default of %s is refused: %v", p.Path, err)
		}
	}
	var fields map[string]any
	data, _ := json.Marshal(k)
	if err := json.Unmarshal(data, &fields); err != nil {
		t.Fatal(err)
	}
	if len(fields) != len(seen) {
		t.Errorf("Kernel has %d fields, the table %d", len(fields), len(seen))
	}
	for _, p := range kernelKeys {
		if _, ok := fields[p.Name()]; !ok {
			t.Errorf("no field is called %s", p.Name())
		}
	}
}

func TestSchema(t *testing.T) {
	data, err := JSONSchema()
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Properties map[string]struct {
			Type       any
			Properties map[string]any
		}
	}
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := WriteSchema(&text); err != nil {
		t.Fatal(err)
	}
	for _, k := range Keys() {
		group, _, nested := strings.Cut(k.Path, ".")
		p, ok := s.Properties[group]
		if nested {
			_, ok = p.Properties[k.Name()]
		}
		if !ok {
			t.Errorf("the JSON schema lacks %s", k.Path)
		}
		if !strings.Contains(text.String(), "\n"+k.Path+" ") {
			t.Errorf("the text lacks %s", k.Path)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(ok))
	f.Add([]byte("name: &a [*a]\n"))
	f.Add([]byte("a: {<<: x}\n? [b]\n: c\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := decode("f.yaml", data)
		if err == nil {
			for p, it := range l.items {
				if it.pos.Line < 1 || it.pos.Col < 1 {
					t.Errorf("%s has no place: %v", p, it.pos)
				}
			}
			return
		}
		if fault.Code(err) != fault.Usage || fault.Hint(err) == "" {
			t.Errorf("error %v has code %d and hint %q", err, fault.Code(err), fault.Hint(err))
		}
	})
}
