package series

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"dot4fa/internal/fault"
)

const head = "title: t\nwhy: w\nremove_when: r\nedits:\n"

// load reads a series of one member, with the given text after its head.
func load(t testing.TB, edits string, templates ...string) (*Series, error) {
	t.Helper()
	fsys := fstest.MapFS{"patches/010-a.yaml": {Data: []byte(head + edits)}}
	for i := 0; i+1 < len(templates); i += 2 {
		fsys["templates/"+templates[i]] = &fstest.MapFile{Data: []byte(templates[i+1])}
	}
	return Load(fsys)
}

func mustLoad(t testing.TB, edits string, templates ...string) *Series {
	t.Helper()
	s, err := load(t, edits, templates...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestLoad(t *testing.T) {
	s, err := Load(fstest.MapFS{
		"patches/README.md": {Data: []byte("not a member")},
		"patches/020-b.yaml": {Data: []byte(`
title: second
why: w
remove_when: r
edits:
  - id: b.1
    file: src/x.cpp
    scope: ["A::f(int x, long y)", "switch (x)"]
    anchor: "case B:"
    count: 1..2
    do: insert_after
    template: b.inc
    why: y
    probe: {file: src/y.h, lacks: Q}
    since: 0123456789abcdef
`)},
		"patches/010-a.yaml": {Data: []byte(head + "  - {id: a, file: f, do: append, text: x, why: y}\n")},
		"templates/b.inc":    {Data: []byte("text of b\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Members) != 2 || s.Members[0].File != "010-a.yaml" || s.Members[1].Title != "second" {
		t.Fatalf("members: %+v", s.Members)
	}
	e := s.Edits()[1]
	if e.ID != "b.1" || e.Member != 1 || e.Text != "text of b\n" || e.Count != (Count{1, 2}) || len(e.Probes) != 1 || e.Probes[0].Lacks != "Q" {
		t.Errorf("%+v", e)
	}
	if want := "patches/020-b.yaml:6:5"; e.Where != want {
		t.Errorf("where is %s, want %s", e.Where, want)
	}
	if want := "A::f(int x, long y) ▸ switch (x) ▸ case B:"; e.Place() != want {
		t.Errorf("place is %s, want %s", e.Place(), want)
	}
}

func TestLoadRefuses(t *testing.T) {
	const e = "  - {id: a, file: f, do: append, text: x, why: y"
	for _, c := range []struct {
		name, edits string
		want        string // of the error
		hint        string // within the hint
	}{
		{"unknown key", e + ", anchr: z}\n", `patches/010-a.yaml:5:51: unknown key "anchr" in edit`, "did you mean anchor? allowed: anchor, count, do"},
		{"far from any key", e + ", qqqqqq: z}\n", `patches/010-a.yaml:5:51: unknown key "qqqqqq" in edit`, "allowed: anchor"},
		{"key twice", e + ", id: b}\n", `patches/010-a.yaml:5:51: key "id" is given twice`, "keep one"},
		{"missing key", "  - {id: a, file: f, do: append, text: x}\n", `patches/010-a.yaml:5:5: edit needs "why"`, "README"},
		{"number for text", "  - {id: 7, file: f, do: append, text: x, why: y}\n", `patches/010-a.yaml:5:10: id must be text, not the number 7`, "quotes"},
		{"list for text", "  - {id: a, file: [f], do: append, text: x, why: y}\n", `patches/010-a.yaml:5:19: file must be text, not a list`, ""},
		{"empty text", "  - {id: a, file: f, do: append, text: x, why: ''}\n", `patches/010-a.yaml:5:48: why is empty`, ""},
		{"bad id", "  - {id: a b, file: f, do: append, text: x, why: y}\n", `patches/010-a.yaml:5:10: "a b" is not an id`, "letters"},
		{"technique", "  - {id: a, file: f, do: insert_befor, anchor: a, text: x, why: y}\n", `patches/010-a.yaml:5:26: unknown technique "insert_befor"`, "did you mean insert_before? allowed: insert_before, insert_after"},
		{"edits no list", "  a: b\n", `patches/010-a.yaml:5:3: edits must be a list, not a mapping`, ""},
		{"edit no mapping", "  - a\n", `patches/010-a.yaml:5:5: edit must be a mapping, not text`, ""},
		{"alias", "  - &x {id: a, file: f, do: append, text: x, why: y}\n  - *x\n", `patches/010-a.yaml:6:5: aliases are not used in the series`, "write the value out"},
		{"alias of a value", "  - {id: &x a, file: *x, do: append, text: x, why: y}\n", `patches/010-a.yaml:5:22: aliases are not used in the series`, ""},
		{"anchor missing", "  - {id: a, file: f, do: replace, text: x, why: y}\n", `patches/010-a.yaml:5:5: replace needs "anchor"`, ""},
		{"anchor not wanted", e + ", anchor: z}\n", `patches/010-a.yaml:5:59: append takes no "anchor"`, "remove"},
		{"scope missing", "  - {id: a, file: f, do: scope_end, text: x, why: y}\n", `patches/010-a.yaml:5:5: scope_end needs "scope"`, ""},
		{"scope not wanted", e + ", scope: z}\n", `patches/010-a.yaml:5:58: append takes no "scope"`, ""},
		{"count not wanted", "  - {id: a, file: f, do: scope_end, scope: f, count: 2, text: x, why: y}\n", `patches/010-a.yaml:5:54: scope_end takes no "count"`, ""},
		{"text not wanted", "  - {id: a, file: f, do: bump_counter, anchor: z, text: x, why: y}\n", `patches/010-a.yaml:5:57: bump_counter takes no "text"`, ""},
		{"text missing", "  - {id: a, file: f, do: append, why: y}\n", `patches/010-a.yaml:5:5: append needs "text"`, ""},
		{"text and template", e + ", template: b}\n", `patches/010-a.yaml:5:61: edit a has both text and template`, ""},
		{"no such template", "  - {id: a, file: f, do: append, template: b, why: y}\n", "patches/010-a.yaml:5:44: cannot read templates/b: open templates/b: file does not exist", ""},
		{"template outside", "  - {id: a, file: f, do: append, template: ../b, why: y}\n", `patches/010-a.yaml:5:44: path "../b" must be relative`, ""},
		{"scope syntax", "  - {id: a, file: f, do: scope_end, scope: 'f(', text: x, why: y}\n", `patches/010-a.yaml:5:44: scope "f(": expected ( … ) after f`, "a scope is enum X"},
		{"empty scope list", "  - {id: a, file: f, do: scope_end, scope: [], text: x, why: y}\n", `patches/010-a.yaml:5:44: scope is an empty list`, ""},
		{"anchor of a comment", "  - {id: a, file: f, do: replace, anchor: '// z', text: x, why: y}\n", `patches/010-a.yaml:5:43: anchor "// z" has no tokens`, "comments"},
		{"count", "  - {id: a, file: f, do: replace, anchor: z, count: two, text: x, why: y}\n", `patches/010-a.yaml:5:53: "two" is not a count`, "0..1"},
		{"count backwards", "  - {id: a, file: f, do: replace, anchor: z, count: 2..1, text: x, why: y}\n", `patches/010-a.yaml:5:53: "2..1" is not a count`, ""},
		{"count zero", "  - {id: a, file: f, do: replace, anchor: z, count: 0, text: x, why: y}\n", `patches/010-a.yaml:5:53: "0" is not a count`, ""},
		{"absolute path", "  - {id: a, file: /etc/passwd, do: append, text: x, why: y}\n", `patches/010-a.yaml:5:19: path "/etc/passwd" must be relative`, "root of the upstream tree"},
		{"path leaves the tree", "  - {id: a, file: a/../../b, do: append, text: x, why: y}\n", `patches/010-a.yaml:5:19: path "a/../../b" must be relative`, ""},
		{"path with backslash", "  - {id: a, file: 'a\\..\\b', do: append, text: x, why: y}\n", `patches/010-a.yaml:5:19: path "a\\..\\b": use /`, ""},
		{"path with drive", "  - {id: a, file: 'C:/b', do: append, text: x, why: y}\n", `patches/010-a.yaml:5:19: path "C:/b": use /`, ""},
		{"path into .git", "  - {id: a, file: .Git/hooks/x, do: append, text: x, why: y}\n", `lies in .Git, which is not source`, ""},
		{"path into the records", "  - {id: a, file: .dot4fa/pre/x, do: append, text: x, why: y}\n", `lies in .dot4fa, which is not source`, ""},
		{"probe without question", e + ", probe: {file: f}}\n", `patches/010-a.yaml:5:58: probe needs has or lacks, and not both`, ""},
		{"probe with both", e + ", probe: {file: f, has: a, lacks: b}}\n", `patches/010-a.yaml:5:58: probe needs has or lacks, and not both`, ""},
		{"probe of nothing", e + ", probe: []}\n", `patches/010-a.yaml:5:58: probe is an empty list`, ""},
		{"probe key", e + ", probe: {file: f, hsa: a}}\n", `patches/010-a.yaml:5:68: unknown key "hsa" in probe`, "did you mean has?"},
		{"commit", e + ", since: HEAD}\n", `patches/010-a.yaml:5:58: "HEAD" is not a commit`, "hash"},
		{"id twice", e + "}\n" + e + "}\n", `patches/010-a.yaml:6:5: edit id "a" is used twice`, "patches/010-a.yaml:5:5"},
		{"second document", e + "}\n---\nb: c\n", `patches/010-a.yaml:6:1: the file holds a second document`, ""},
		{"syntax", "  - {id: a\n", `patches/010-a.yaml:4:1: did not find`, "README"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := load(t, c.edits)
			if err == nil {
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q, want %q", err, c.want)
			}
			if !strings.Contains(fault.Hint(err), c.hint) {
				t.Errorf("hint %q, want %q", fault.Hint(err), c.hint)
			}
			if fault.Code(err) != fault.Usage {
				t.Errorf("exit code %d", fault.Code(err))
			}
		})
	}
}

func TestLoadRefusesFiles(t *testing.T) {
	member := &fstest.MapFile{Data: []byte(head + "  - {id: a, file: f, do: append, text: x, why: y}\n")}
	for name, c := range map[string]struct {
		fsys fstest.MapFS
		want string
	}{
		"no folder":   {fstest.MapFS{}, "cannot read the series"},
		"no members":  {fstest.MapFS{"patches/README.md": {}}, "the series has no members"},
		"bad name":    {fstest.MapFS{"patches/10-a.yaml": member}, "patches/10-a.yaml: the name is not that of a member"},
		"bad suffix":  {fstest.MapFS{"patches/010-a.yml": member}, "patches/010-a.yml: the name is not that of a member"},
		"empty":       {fstest.MapFS{"patches/010-a.yaml": {}}, "patches/010-a.yaml:1:1: the file is empty"},
		"only a note": {fstest.MapFS{"patches/010-a.yaml": {Data: []byte("# note\n")}}, "the file is empty"},
		"not text":    {fstest.MapFS{"patches/010-a.yaml": {Data: []byte("\xff\xfe\x00")}}, "patches/010-a.yaml:"},
		"unreadable":  {fstest.MapFS{"patches/010-a.yaml/x": member}, "cannot read the series"},
	} {
		_, err := Load(c.fsys)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
		var f *fault.Error
		if !errors.As(err, &f) {
			t.Errorf("%s: error is a %T", name, err)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add("  - {id: a, file: f, do: append, text: x, why: y}\n")
	f.Add("  - {id: a, file: f, scope: [enum e, f(x)], anchor: z, count: 0..1, do: replace, text: x, why: y}\n")
	f.Add("  - &a [*a]\n")
	f.Fuzz(func(t *testing.T, edits string) {
		if _, err := load(t, edits); err != nil {
			var e *fault.Error
			if !errors.As(err, &e) || e.Where == "" {
				t.Fatalf("error without a place: %v", err)
			}
		}
	})
}
