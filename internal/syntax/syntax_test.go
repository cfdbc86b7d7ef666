package syntax

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"dot4fa/internal/fixture"
	"dot4fa/internal/isa"
	"dot4fa/internal/machine"
	"dot4fa/internal/recipe"
	"dot4fa/internal/render"
	"dot4fa/internal/series"
	"dot4fa/internal/upstream/gitobj"
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

// files is a small commit of upstream's.
func files(header string) map[string]string {
	return map[string]string{
		"src/a.cpp":   "#include \"api.h\"\nint f() {\n    return 0;\n}\n",
		"src/b.cpp":   "this is not touched, so it is not compiled\n",
		"src/c.cpp":   "#include \"api.h\"\nint user() { return older(1, 2); }\n",
		"src/api.h":   header,
		"docs/x.md":   "x",
		"src/inner.h": "int limit();\n",
	}
}

// tree is such a commit with two edits and one added unit.
func tree(t *testing.T, files map[string]string) Tree {
	t.Helper()
	s, err := series.Load(fstest.MapFS{"patches/010-a.yaml": {Data: []byte(`title: t
why: w
remove_when: r
edits:
  - {id: a, file: src/a.cpp, scope: f, do: scope_open, text: "int x = limit(); (void) x;", why: w}
  - {id: d, file: src/api.h, anchor: int b, do: replace, text: "int b, int c = 0", why: w, probe: {file: src/api.h, has: older}}
`)}})
	if err != nil {
		t.Fatal(err)
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
	tr := Tree{Read: read, Plan: plan, Added: []series.Rendered{{Path: "src/ours.c", Data: []byte("#include \"inner.h\"\nint g(void) { return limit(); }\n")}}}
	for name, text := range files {
		tr.Files = append(tr.Files, File{name, gitobj.Hash(gitobj.Blob, []byte(text))})
	}
	return tr
}

func check(t *testing.T, c *Checker, tr Tree) map[string]Unit {
	t.Helper()
	units, err := c.Check(t.Context(), tr)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]Unit{}
	for i, u := range units {
		if i > 0 && units[i-1].File >= u.File {
			t.Errorf("%s comes after %s", u.File, units[i-1].File)
		}
		out[u.File] = u
	}
	return out
}

func checker(t *testing.T, tools Tools, cache string) *Checker {
	t.Helper()
	c, err := New(tools, cache, 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

const good = "#include \"inner.h\"\nint older(int a, int b);\n"

func TestUnits(t *testing.T) {
	tools := tools(t)
	for _, c := range []struct {
		header string
		want   Status
		says   string
	}{
		{good, OK, ""},
		{"#include \"inner.h\"\n", OK, ""}, // d is skipped, so src/c.cpp is nobody's business
		{"int other();\n", Failed, "src/a.cpp:3:"},
	} {
		units := check(t, checker(t, tools, ""), tree(t, files(c.header)))
		users := strings.Count(c.header, "older")
		if len(units) != 2+users {
			t.Errorf("with %q the units are %v", c.header, units)
		}
		if u := units["src/a.cpp"]; u.Status != c.want || !strings.Contains(u.Detail, c.says) || strings.Join(u.Edits, " ") != "a" {
			t.Errorf("with %q the edited unit is %+v", c.header, u)
		}
		if u := units["src/ours.c"]; u.Status != OK || u.Edits != nil {
			t.Errorf("the added unit is %+v", u)
		}
		if u := units["src/c.cpp"]; users > 0 && (u.Status != OK || strings.Join(u.Uses, " ") != "older") {
			t.Errorf("the unit that uses a changed declaration is %+v", u)
		}
		var list []Unit
		for _, u := range units {
			list = append(list, u)
		}
		if bad := len(Bad(list)); (bad == 1) != (c.want == Failed) {
			t.Errorf("%d bad units", bad)
		}
	}
}

// TestUsers: a unit that the series does not edit fails by what it changed in a header.
func TestUsers(t *testing.T) {
	in := files(good)
	in["src/c.cpp"] = "#include \"api.h\"\nint (*user)(int, int) = older;\n"
	u := check(t, checker(t, tools(t), ""), tree(t, in))["src/c.cpp"]
	if u.Status != Failed || !strings.Contains(u.Detail, "src/c.cpp:2:") {
		t.Errorf("%+v", u)
	}
}

// TestUpstreamFails: what does not compile without the series either is not held against it.
func TestUpstreamFails(t *testing.T) {
	in := files(good)
	in["src/c.cpp"] = "#include <no/such/sdk.h>\nint user() { return older(1, 2); }\n"
	in["src/a.cpp"] = "#include \"api.h\"\nint f() {\n    return 0;\n}\n#include <no/such/sdk.h>\n"
	units := check(t, checker(t, tools(t), ""), tree(t, in))
	for _, name := range []string{"src/a.cpp", "src/c.cpp"} {
		if u := units[name]; u.Status != NotChecked || !strings.Contains(u.Detail, "no/such/sdk.h") {
			t.Errorf("%+v", u)
		}
	}
}

// TestVerdictsAreKept: what was compiled is not compiled again, in another
// process neither, and a change in a header far away is noticed.
func TestVerdictsAreKept(t *testing.T) {
	cache := t.TempDir()
	tools := tools(t)
	cached := func(c *Checker, in map[string]string) string {
		t.Helper()
		var names []string
		for name, u := range check(t, c, tree(t, in)) {
			if u.Cached {
				names = append(names, path.Base(name))
			}
		}
		slices.Sort(names)
		return strings.Join(names, " ")
	}
	c := checker(t, tools, cache)
	if got := cached(c, files(good)); got != "" {
		t.Errorf("the first time %s came from the cache", got)
	}
	if got := cached(c, files(good)); got != "a.cpp c.cpp ours.c" {
		t.Errorf("the second time it was %q", got)
	}
	c = checker(t, tools, cache)
	more := files(good)
	more["src/new.h"], more["docs/x.md"] = "", "y"
	if got := cached(c, more); got != "a.cpp c.cpp ours.c" {
		t.Errorf("with a header nobody reads it was %q", got)
	}
	more["src/inner.h"] = "int limit(int);\n"
	units := check(t, c, tree(t, more))
	if u := units["src/a.cpp"]; u.Cached || u.Status != Failed {
		t.Errorf("after its header changed: %+v", u)
	}
	if got := cached(c, files(good)); got != "a.cpp c.cpp ours.c" {
		t.Errorf("back again it was %q", got)
	}
	if got := cached(c, more); got != "a.cpp c.cpp ours.c" {
		t.Errorf("failures are kept too, it was %q", got)
	}
	shadow := files(good)
	shadow["include/inner.h"] = "int limit();\n" // src/ours.c finds its own first, but that is for the compiler to say
	if got := cached(c, shadow); got != "" {
		t.Errorf("with another header of the name %q came from the cache", got)
	}
	list, err := filepath.Glob(filepath.Join(cache, "*.json"))
	if err != nil || len(list) != 3 {
		t.Fatalf("%v %v", list, err)
	}
	for _, f := range list {
		if err := os.WriteFile(f, []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := cached(checker(t, tools, cache), files(good)); got != "" {
		t.Errorf("from a damaged cache came %q", got)
	}
}

// TestDeviceUnits: kernels of the rdna3 recipe compile for gfx1100, and a fault in one is seen.
func TestDeviceUnits(t *testing.T) {
	device, err := isa.FindCompiler(t.Context(), machine.Host(), "")
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
	upstreams := map[string]string{"ggml/src/ggml.h": ""}
	in := func(spoil bool, tools Tools) map[string]Unit {
		tr := Tree{Plan: &series.Plan{}}
		for name, text := range upstreams {
			tr.Files = append(tr.Files, File{name, gitobj.Hash(gitobj.Blob, []byte(text))})
		}
		tr.Read = func(name string) ([]byte, error) { return []byte(upstreams[name]), nil }
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
		byName := map[string]Unit{}
		for name, u := range check(t, checker(t, tools, ""), tr) {
			byName[strings.TrimPrefix(name, "ggml/src/ggml-cuda/")] = u
		}
		return byName
	}
	if u := in(false, tools)["packed16-v-f16.cu"]; u.Status != OK || !u.Device {
		t.Errorf("packed16-v-f16.cu is %+v", u)
	}
	bad := in(true, tools)
	if u := bad["packed16-v-f16.cu"]; u.Status != Failed || !strings.Contains(u.Detail, "nothing_of_that_name") {
		t.Errorf("with a fault, packed16-v-f16.cu is %+v", u)
	}
	if u := bad["packed16-fattn.cu"]; u.Status != NotChecked || u.Detail == "" {
		t.Errorf("packed16-fattn.cu, which needs upstream's own headers, is %+v", u)
	}
}

// TestNoKernels: a recipe without kernels edits device units and does not build them.
func TestNoKernels(t *testing.T) {
	in := files(good)
	in["src/a.cu"] = in["src/a.cpp"]
	tr := tree(t, in)
	tr.Plan.Files = append(tr.Plan.Files, series.FilePlan{Path: "src/a.cu", Pre: []byte(in["src/a.cu"]), Post: []byte("#include \"packed16-none.cuh\"\n")})
	if u := check(t, checker(t, tools(t), ""), tr)["src/a.cu"]; u.Status != NotChecked || !strings.Contains(u.Detail, "no kernels") {
		t.Errorf("%+v", u)
	}
}

func TestCancelled(t *testing.T) {
	c := checker(t, tools(t), "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Check(ctx, tree(t, files(good))); err == nil {
		t.Error("no error from a cancelled check")
	}
}

func TestHasWord(t *testing.T) {
	for text, want := range map[string]bool{"older(1)": true, "x.older": true, "colder older_ older2": false, "folder\nolder": true, "": false} {
		if hasWord([]byte(text), "older") != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

func TestDeclared(t *testing.T) {
	src := "struct s {\n    int a();\n    int b(int x,\n          int (*f)(int),\n          int il) const;\n};\n"
	if got := declared([]byte(src), 5); got != "b" {
		t.Errorf("the function is %q", got)
	}
}
