package syntax

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/fstest"

	"dot4fa/internal/fixture"
	"dot4fa/internal/isa"
	"dot4fa/internal/recipe"
	"dot4fa/internal/render"
	"dot4fa/internal/series"
)

func tools(t *testing.T) Tools {
	t.Helper()
	for _, c := range []string{"cc", "c++"} {
		if _, err := exec.LookPath(c); err != nil {
			t.Skipf("no %s", c)
		}
	}
	return Tools{CC: "cc", CXX: "c++"}
}

// tree is a small commit with one edit and one added unit.
func tree(t *testing.T, header string) Tree {
	t.Helper()
	s, err := series.Load(fstest.MapFS{"patches/010-a.yaml": {Data: []byte(`title: t
why: w
remove_when: r
edits:
  - {id: a, file: src/a.cpp, scope: f, do: scope_open, text: "int x = limit();", why: w}
`)}})
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"src/a.cpp":   "#include \"api.h\"\nint f() {\n    return x;\n}\n",
		"src/b.cpp":   "this is not touched, so it is not compiled\n",
		"src/api.h":   header,
		"docs/x.md":   "x",
		"src/inner.h": "int limit();\n",
	}
	read := func(name string) ([]byte, error) {
		if text, ok := files[name]; ok {
			return []byte(text), nil
		}
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
	}
	plan, err := s.Plan(read, nil)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for name := range files {
		paths = append(paths, name)
	}
	return Tree{Paths: paths, Read: read, Plan: plan, Added: []series.Rendered{{Path: "src/ours.c", Data: []byte("#include \"inner.h\"\nint g(void) { return limit(); }\n")}}}
}

func TestUnits(t *testing.T) {
	tools := tools(t)
	for _, c := range []struct {
		header string
		want   Status
		says   string
	}{
		{"#include \"inner.h\"\n", OK, ""},
		{"int other();\n", Failed, "src/a.cpp:3:"},
	} {
		units, err := Check(t.Context(), tree(t, c.header), tools, 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(units) != 2 || units[0].File != "src/a.cpp" || units[1].File != "src/ours.c" {
			t.Fatalf("units are %v", units)
		}
		if units[0].Status != c.want || !strings.Contains(units[0].Detail, c.says) || strings.Join(units[0].Edits, " ") != "a" {
			t.Errorf("with %q the edited unit is %+v", c.header, units[0])
		}
		if units[1].Status != OK || units[1].Edits != nil {
			t.Errorf("the added unit is %+v", units[1])
		}
		if bad := len(Bad(units)); (bad == 1) != (c.want == Failed) {
			t.Errorf("%d bad units", bad)
		}
	}
}

// TestDeviceUnits: kernels of the rdna3 recipe compile for gfx1100, and a fault in one is seen.
func TestDeviceUnits(t *testing.T) {
	device, err := isa.FindCompiler(t.Context(), "")
	if err != nil {
		t.Skip(err)
	}
	tools := tools(t)
	tools.Device = device
	assets := os.DirFS(fixture.Root(t))
	r, err := recipe.Load(assets, "rdna3")
	if err != nil {
		t.Fatal(err)
	}
	files, err := render.Render(r, assets)
	if err != nil {
		t.Fatal(err)
	}
	check := func(spoil bool) map[string]Unit {
		tr := Tree{Plan: &series.Plan{}}
		for _, f := range files {
			if !strings.HasPrefix(f.Path, "ggml/src/ggml-cuda/") {
				continue
			}
			data := f.Data
			if spoil && strings.HasSuffix(f.Path, "packed16-v-f16.cu") {
				data = append(append([]byte{}, data...), "int wrong = nothing_of_that_name;\n"...)
			}
			tr.Added = append(tr.Added, series.Rendered{Path: f.Path, Data: data})
		}
		units, err := Check(t.Context(), tr, tools, 1)
		if err != nil {
			t.Fatal(err)
		}
		byName := map[string]Unit{}
		for _, u := range units {
			byName[strings.TrimPrefix(u.File, "ggml/src/ggml-cuda/")] = u
		}
		return byName
	}
	if u := check(false)["packed16-v-f16.cu"]; u.Status != OK || !u.Device {
		t.Errorf("packed16-v-f16.cu is %+v", u)
	}
	bad := check(true)
	if u := bad["packed16-v-f16.cu"]; u.Status != Failed || !strings.Contains(u.Detail, "nothing_of_that_name") {
		t.Errorf("with a fault, packed16-v-f16.cu is %+v", u)
	}
	if u := bad["packed16-fattn.cu"]; device.ROCm == "" && (u.Status != NotChecked || u.Detail == "") {
		t.Errorf("packed16-fattn.cu, which needs upstream's own headers, is %+v", u)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Check(ctx, tree(t, ""), tools(t), 1); err == nil {
		t.Error("no error from a cancelled check")
	}
}
