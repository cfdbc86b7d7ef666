package series

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dot4fa/internal/fault"
)

// files is a pristine tree in memory.
type files map[string]string

func (f files) read(name string) ([]byte, error) {
	if data, ok := f[name]; ok {
		return []byte(data), nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

func mustPlan(t testing.TB, s *Series, tree files, data any) *Plan {
	t.Helper()
	p, err := s.Plan(tree.read, data)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTechniques(t *testing.T) {
	const op = "enum op {\n    A,\n    COUNT,\n};\n"
	for _, c := range []struct{ name, edit, src, want string }{
		{"insert_before", "scope: enum op, anchor: COUNT, do: insert_before, text: 'X,'", op, "enum op {\n    A,\n    X,\n    COUNT,\n};\n"},
		{"insert_after", "scope: enum op, anchor: A, do: insert_after, text: 'X,'", op, "enum op {\n    A,\n    X,\n    COUNT,\n};\n"},
		{"scope_open", "scope: enum op, do: scope_open, text: 'X,'", op, "enum op {\n    X,\n    A,\n    COUNT,\n};\n"},
		{"scope_end", "scope: enum op, do: scope_end, text: 'X,'", op, "enum op {\n    A,\n    COUNT,\n    X,\n};\n"},
		{"scope_end adds a comma", "scope: enum op, do: scope_end, text: 'X,'", "enum op {\n    A\n};\n", "enum op {\n    A,\n    X,\n};\n"},
		{"insert_after adds a comma", "scope: enum op, anchor: A, do: insert_after, text: 'X,'", "enum op {\n    A\n};\n", "enum op {\n    A,\n    X,\n};\n"},
		{"replace", "anchor: 'A, COUNT', do: replace, text: B", op, "enum op {\n    B,\n};\n"},
		{"replace with lines", "anchor: 'f(x)', do: replace, text: \"g(x,\\n  y)\\n\"", "    a = f( x );\n", "    a = g(x,\n      y);\n"},
		{"append", "do: append, text: \"X\\n\\n  Y\\n\"", "a\n", "a\nX\n\n  Y\n"},
		{"append without newline", "do: append, text: X", "a", "a\nX"},
		{"bump", "anchor: 'assert(COUNT ==', do: bump_counter", "assert(COUNT == 99, \"99\");\n", "assert(COUNT == 100, \"99\");\n"},
		{"bump keeps the suffix", "anchor: '$N*(1 + n)', do: bump_counter", "x(9u*(1 + n)*2);\n", "x(10u*(1 + n)*2);\n"},
		{"bump drops separators", "anchor: 'x =', do: bump_counter", "x = 1'999;\n", "x = 2000;\n"},
		{"bump twice", "anchor: 'x ==', count: 2, do: bump_counter", "x == 1; x == 3; x == y;\n", "x == 2; x == 4; x == y;\n"},
		{"count allows none", "anchor: 'x ==', count: 0..1, do: bump_counter", "y\n", "y\n"},
		{"count allows more", "anchor: 'x;', count: '1..', do: insert_after, text: z;", "x;\nx;\nx;\n", "x;\nz;\nx;\nz;\nx;\nz;\n"},
		{"text keeps relative indentation", "anchor: a, do: insert_before, text: \"    if (x) {\\n        y;\\n\\n    }\\n\"", "\ta;\n", "\tif (x) {\n\t    y;\n\n\t}\n\ta;\n"},
		{"directives stay in column 1", "anchor: a, do: insert_before, text: \"#if X\\n    y;\\n#endif\\n\"", "    a;\n", "#if X\n    y;\n#endif\n    a;\n"},
		{"CRLF", "anchor: a, do: insert_before, text: \"x;\\ny;\\n\"", "a;\r\nb;\r\n", "x;\r\ny;\r\na;\r\nb;\r\n"},
		{"template", "anchor: a, do: insert_before, text: 'x = {{ .N }};'", "a;\n", "x = 7;\na;\n"},
		{"template that gives nothing", "anchor: a, do: insert_before, text: '{{ if not .N }}x{{ end }}'", "a;\n", "a;\n"},
		{"anchor is in every branch of a conditional", "anchor: b;, count: 3, do: replace, text: c;", "#if 0\nb;\n#elif X\nb;\n#else\nb;\n#endif\n", "#if 0\nc;\n#elif X\nc;\n#else\nc;\n#endif\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := mustLoad(t, "  - {id: e, file: f.h, why: w, "+c.edit+"}\n")
			p := mustPlan(t, s, files{"f.h": c.src}, map[string]any{"N": 7})
			got := c.src
			if f := p.File("f.h"); f != nil {
				got = string(f.Post)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
			if (c.src == c.want) != (len(p.Files) == 0) {
				t.Errorf("%d files in the plan", len(p.Files))
			}
		})
	}
}

func TestOtherLanguages(t *testing.T) {
	s := mustLoad(t, `
  - {id: a, file: src/CMakeLists.txt, why: w, anchor: b.cpp, do: insert_after, text: new.cpp}
  - {id: b, file: src/CMakeLists.txt, why: w, anchor: PUBLIC, do: insert_before, text: "# if it helps\nSHARED"}
  - {id: c, file: x.py, why: w, anchor: "y = 1", do: insert_after, text: z = 2}
`)
	p := mustPlan(t, s, files{
		"src/CMakeLists.txt": "add_library(x\n    # if don't know\n    PUBLIC\n    a.cpp  b.cpp # b.cpp\n    -Wall \"b.cpp\nb.cpp\" [[ b.cpp ]])\nfoo(https://x)\n",
		"x.py":               "# y = 1 isn't\nif x:\n    y = 1  # y\n    -z\n\"\"\"\ny = 1\n\"\"\"\n",
	}, nil)
	want := files{
		"src/CMakeLists.txt": "add_library(x\n    # if it helps\n    SHARED\n    # if don't know\n    PUBLIC\n    a.cpp  b.cpp # b.cpp\n    new.cpp\n    -Wall \"b.cpp\nb.cpp\" [[ b.cpp ]])\nfoo(https://x)\n",
		"x.py":               "# y = 1 isn't\nif x:\n    y = 1  # y\n    z = 2\n    -z\n\"\"\"\ny = 1\n\"\"\"\n",
	}
	for _, f := range p.Files {
		if d := cmp.Diff(want[f.Path], string(f.Post)); d != "" {
			t.Error(f.Path, d)
		}
	}
}

func TestNewFile(t *testing.T) {
	s := mustLoad(t, "  - {id: n, file: d/n.h, why: w, do: new_file, text: \"int x;\"}\n")
	p := mustPlan(t, s, files{}, nil)
	f := p.File("d/n.h")
	if f == nil || !f.New || string(f.Post) != "int x;\n" || f.Pre != nil {
		t.Errorf("%+v", f)
	}
	r, err := s.Check(files{"d/n.h": "mine"}.read)
	if err != nil || r[0].Status != Ambiguous {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestOrderAtOnePoint(t *testing.T) {
	s := mustLoad(t, `
  - {id: end, file: f, why: w, scope: f, do: scope_end, text: 4;}
  - {id: before, file: f, why: w, anchor: b, do: insert_before, text: 3;}
  - {id: open, file: f, why: w, scope: g, do: scope_open, text: 2;}
  - {id: after, file: f, why: w, anchor: a, do: insert_after, text: 1;}
  - {id: add, file: f, why: w, do: append, text: 5;}
`)
	p := mustPlan(t, s, files{"f": "f() {\n  a;\n  b;\n}\ng() {\n  c;\n}\n"}, nil)
	want := "f() {\n  a;\n  1;\n  3;\n  b;\n  4;\n}\ng() {\n  2;\n  c;\n}\n5;\n"
	if d := cmp.Diff(want, string(p.Files[0].Post)); d != "" {
		t.Error(d)
	}
}

func TestTwoEditsClaimOneAnchor(t *testing.T) {
	const src = "f() {\n  a; b;\n  c(d, e);\n}\nx;\n"
	for _, c := range []struct{ name, first, second string }{
		{"same insertion", "anchor: c, do: insert_before, text: one", "anchor: 'c(', do: insert_before, text: two"},
		{"after two anchors of one line", "anchor: 'c(', do: insert_after, text: one", "anchor: e, do: insert_after, text: two"},
		{"scope ends", "scope: f, do: scope_end, text: one", "scope: f, do: scope_end, text: two"},
		{"appends", "do: append, text: one", "do: append, text: two"},
		{"same replacement", "anchor: d, do: replace, text: one", "anchor: d, do: replace, text: two"},
		{"overlapping replacements", "anchor: 'c(d', do: replace, text: one", "anchor: 'd, e', do: replace, text: two"},
		{"insertion inside a replacement", "anchor: 'a; b; c', do: replace, text: one", "anchor: c, do: insert_before, text: two"},
		{"new file twice", "do: append, text: one", "do: new_file, text: two"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := mustLoad(t, "  - {id: one, file: f, why: w, "+c.first+"}\n  - {id: two, file: f, why: w, "+c.second+"}\n")
			_, err := s.Plan(files{"f": src}.read, nil)
			if fault.Code(err) != fault.EditFails {
				t.Fatalf("error %v", err)
			}
			if c.name != "new file twice" && !strings.Contains(err.Error(), "two edits claim one anchor") {
				t.Errorf("error %v", err)
			}
		})
	}
	s := mustLoad(t, "  - {id: one, file: f, why: w, anchor: a, count: 2, do: insert_after, text: x}\n")
	if _, err := s.Plan(files{"f": "a; a;\n"}.read, nil); err == nil || !strings.Contains(err.Error(), "twice on line 1") {
		t.Errorf("error %v", err)
	}
}

func TestTouchingIsNoConflict(t *testing.T) {
	s := mustLoad(t, `
  - {id: one, file: f, why: w, anchor: a, do: replace, text: A}
  - {id: two, file: f, why: w, anchor: +, do: replace, text: "-"}
  - {id: three, file: f, why: w, anchor: a, do: insert_before, text: x;}
  - {id: four, file: f, why: w, anchor: b, do: insert_after, text: y;}
`)
	p := mustPlan(t, s, files{"f": "a+b;\n"}, nil)
	if got, want := string(p.Files[0].Post), "x;\nA-b;\ny;\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestTextFaults(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"text: |\n      a\n      {{ 1 +", "patches/010-a.yaml:11: the text of edit a is not a template"},
		{"text: |\n      a\n\n      {{ .Nope }}", "patches/010-a.yaml:12: cannot render the text of edit a"},
		{"text: '{{ .Nope }}'", "patches/010-a.yaml:9: cannot render the text of edit a"},
		{"template: t.inc", "templates/t.inc:2: cannot render the text of edit a"},
	} {
		s := mustLoad(t, "  - id: a\n    file: f\n    do: append\n    why: w\n    "+c.text+"\n", "t.inc", "a\n{{ .Nope }}\n")
		_, err := s.Plan(files{"f": ""}.read, map[string]any{})
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("error %v, want %s", err, c.want)
		}
		if fault.Code(err) != fault.Usage {
			t.Errorf("exit code %d", fault.Code(err))
		}
	}
}

func TestReadFails(t *testing.T) {
	s := mustLoad(t, "  - {id: a, file: f, do: append, text: x, why: y}\n")
	broken := errors.New("disk on fire")
	_, err := s.Plan(func(string) ([]byte, error) { return nil, broken }, nil)
	if !errors.Is(err, broken) || fault.Code(err) != fault.Failure {
		t.Errorf("error %v", err)
	}
}

func TestSums(t *testing.T) {
	s := mustLoad(t, "  - {id: a, file: f, do: append, text: '{{ .N }}', why: y}\n  - {id: b, file: f, anchor: z, do: replace, text: x, why: y}\n")
	sums := func(n int) []EditSum { return mustPlan(t, s, files{"f": "z\n"}, map[string]int{"N": n}).Sums() }
	one, again, two := sums(1), sums(1), sums(2)
	if d := cmp.Diff(one, again); d != "" {
		t.Error(d)
	}
	if one[0].SHA256 == two[0].SHA256 || one[1].SHA256 != two[1].SHA256 {
		t.Errorf("%+v\n%+v", one, two)
	}
}

func TestExplain(t *testing.T) {
	s := mustLoad(t, `
  - {id: a, file: f, why: because, anchor: b, do: insert_before, text: "x;\ny;\n"}
  - {id: c, file: f, why: w, anchor: d, do: replace, text: e}
  - {id: g, file: f, why: w, do: append, text: z;}
`)
	p := mustPlan(t, s, files{"f": "a;\nb;\nd;\nh;"}, nil)
	want := []string{"", "a", "a", "", "c", "", "g", ""} // by line
	for i, id := range want {
		got := ""
		for _, o := range p.Explain("f", i+1) {
			got += o.ID
		}
		if got != id {
			t.Errorf("line %d is explained by %q, want %q:\n%s", i+1, got, id, p.Files[0].Post)
		}
		if e := p.File("f").EditAt(i + 1); (e == nil) != (id == "") || e != nil && e.ID != id {
			t.Errorf("line %d: EditAt gives %+v", i+1, e)
		}
	}
	o := p.Explain("f", 2)[0]
	if o.Why != "because" || o.Member != "010-a.yaml" || o.First != 2 || o.Last != 3 || o.Title != "t" {
		t.Errorf("%+v", o)
	}
	if p.Explain("nowhere", 1) != nil {
		t.Error("a file that is not edited is explained")
	}
}
