package anchor

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// put inserts the line + at p.
func put(src string, f *File, p Point) string {
	out := src[:p.Off] + string(f.Lines(p, []string{"+"})) + src[p.End:]
	if p.Comma >= 0 {
		out = src[:p.Comma] + "," + out[p.Comma:]
	}
	return out
}

func find(t *testing.T, f *File, anchor string) Match {
	t.Helper()
	p, err := ParsePattern(anchor)
	if err != nil {
		t.Fatal(err)
	}
	ms := f.Find(p, f.All())
	if len(ms) != 1 {
		t.Fatalf("%q matches %d times", anchor, len(ms))
	}
	return ms[0]
}

func TestBefore(t *testing.T) {
	for _, c := range []struct{ name, src, anchor, want string }{
		{"enumerator", "enum e {\n  A,\n  Z\n};", "Z", "enum e {\n  A,\n  +\n  Z\n};"},
		{"middle of a declaration", "int a;\nAPI void *\n  f(int x);", "f(", "int a;\n+\nAPI void *\n  f(int x);"},
		{"template head", "int a;\ntemplate <int D>\nstatic void f() {}", "static void f", "int a;\n+\ntemplate <int D>\nstatic void f() {}"},
		{"argument on its own line", "f(a,\n  b,\n  c);", "b", "f(a,\n  +\n  b,\n  c);"},
		{"argument inside a line", "x;\nf(a, b);", "b", "x;\n+\nf(a, b);"},
		{"case", "switch (x) {\n  case A:\n  case B:\n    y;\n}", "case B:", "switch (x) {\n  case A:\n  +\n  case B:\n    y;\n}"},
		{"after a case label", "switch (x) {\n  case A:\n    y = 1;\n}", "1", "switch (x) {\n  case A:\n    +\n    y = 1;\n}"},
		{"conditional operator is no label", "{\n  x = a ?\n    b :\n    c;\n}", "c", "{\n  +\n  x = a ?\n    b :\n    c;\n}"},
		{"unbraced if", "{\n  if (a)\n    b;\n}", "b", "{\n  +\n  if (a)\n    b;\n}"},
		{"after a block", "{\n  if (a) {\n  }\n  b = c;\n}", "c", "{\n  if (a) {\n  }\n  +\n  b = c;\n}"},
		{"braces in an expression", "{\n  x = T{1} + T{2} +\n    y;\n}", "y", "{\n  +\n  x = T{1} + T{2} +\n    y;\n}"},
		{"comment above stays", "int a;\n\n// about f\n// more\nvoid f();", "f", "int a;\n\n+\n// about f\n// more\nvoid f();"},
		{"block comment above stays", "int a;\n/* about\n\n   f */\nvoid f();", "f", "int a;\n+\n/* about\n\n   f */\nvoid f();"},
		{"comment above a blank line does not", "// about a\n\nvoid f();", "f", "// about a\n\n+\nvoid f();"},
		{"comment of the line before", "int a; // a\nvoid f();", "f", "int a; // a\n+\nvoid f();"},
		{"comment at the start of the line", "int a;\n/* b */ f();", "f", "int a;\n+\n/* b */ f();"},
		{"include", "#include <a>\n#include <b>", "include <b>", "#include <a>\n+\n#include <b>"},
		{"inside a macro", "#define A \\\n  b \\\n  c\nd", "c", "+\n#define A \\\n  b \\\n  c\nd"},
		{"directive between statements", "a;\n#if X\nb;\n#endif", "b", "a;\n#if X\n+\nb;\n#endif"},
		{"directive inside a statement", "a;\nb(1\n#if X\n, 2\n#endif\n);", "2", "a;\n+\nb(1\n#if X\n, 2\n#endif\n);"},
		{"CRLF", "a;\r\n  b;\r\n", "b", "a;\r\n  +\r\n  b;\r\n"},
		{"tabs", "a;\n\tb;\n", "b", "a;\n\t+\n\tb;\n"},
		{"byte order mark", "\xef\xbb\xbfa;\n", "a", "\xef\xbb\xbf+\na;\n"},
		{"initialiser list", "T a = {\n  1,\n  2,\n};", "2", "T a = {\n  1,\n  +\n  2,\n};"},
		{"raw string above", "a(R\"(\n)\");\nb;", "b", "a(R\"(\n)\");\n+\nb;"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := Parse([]byte(c.src))
			p, err := f.Before(find(t, f, c.anchor))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, put(c.src, f, p)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestAfter(t *testing.T) {
	for _, c := range []struct{ name, src, anchor, want string }{
		{"statement", "  a = 1;\n  b;\n", "a", "  a = 1;\n  +\n  b;\n"},
		{"arguments over lines", "f(a,\n  b);\nc;\n", "f", "f(a,\n  b);\n+\nc;\n"},
		{"block", "if (a) {\n  b;\n}\nc;\n", "if (a)", "if (a) {\n  b;\n}\n+\nc;\n"},
		{"block with else", "if (a) {\n  b;\n} else {\n  d;\n}\nc;\n", "if (a)", "if (a) {\n  b;\n} else {\n  d;\n}\n+\nc;\n"},
		{"else on a line of its own", "if (a) {\n  b;\n}\nelse {\n  d;\n}\nc;\n", "if (a)", "if (a) {\n  b;\n}\nelse {\n  d;\n}\n+\nc;\n"},
		{"unbraced if", "if (a)\n  b;\nc;\n", "if (a)", "if (a)\n  b;\n+\nc;\n"},
		{"function", "int f(int x)\n{\n  b;\n}\nc;\n", "int f", "int f(int x)\n{\n  b;\n}\n+\nc;\n"},
		{"declaration over lines", "API void *\n  f(int x);\nc;\n", "API", "API void *\n  f(int x);\n+\nc;\n"},
		{"chained call", "a\n  .b()\n  .c();\nd;\n", "a", "a\n  .b()\n  .c();\n+\nd;\n"},
		{"operator at the end", "a = b +\n  c;\nd;\n", "a", "a = b +\n  c;\n+\nd;\n"},
		{"joined strings", "f = \"a\"\n  \"b\";\nd;\n", "f", "f = \"a\"\n  \"b\";\n+\nd;\n"},
		{"macro without semicolon", "LOCALS(x)\nint b;\n", "LOCALS", "LOCALS(x)\n+\nint b;\n"},
		{"case label", "case A:\n  b;\n", "case A:", "case A:\n+\n  b;\n"},
		{"case with a block", "case A: {\n  b;\n} break;\nc;\n", "case A:", "case A: {\n  b;\n} break;\n+\nc;\n"},
		{"comment behind", "a; // b\nc;\n", "a", "a; // b\n+\nc;\n"},
		{"comment that goes on", "a; /* b\n  c */\nd;\n", "a", "a; /* b\n  c */\n+\nd;\n"},
		{"include", "#include \"a\" // x\n#include \"b\"\n", "\"a\"", "#include \"a\" // x\n+\n#include \"b\"\n"},
		{"macro", "#define A \\\n  b\nc\n", "A", "#define A \\\n  b\n+\nc\n"},
		{"last line without newline", "a;\nb;", "b", "a;\nb;\n+"},
		{"last line without newline, CRLF", "a;\r\nb;", "b", "a;\r\nb;\r\n+"},
		{"last enumerator without comma", "enum e {\n  A,\n  B\n};", "B", "enum e {\n  A,\n  B,\n  +\n};"},
		{"enumerator", "enum e {\n  A,\n  B\n};", "A", "enum e {\n  A,\n  +\n  B\n};"},
		{"last argument", "f(a,\n  b);\nc;\n", "b", "f(a,\n  b);\n  +\nc;\n"},
		{"push of a list", "v.push_back({ a,\n  b });\nc;\n", "push_back", "v.push_back({ a,\n  b });\n+\nc;\n"},
		{"raw string", "a(R\"(\n)\");\nb;\n", "a", "a(R\"(\n)\");\n+\nb;\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := Parse([]byte(c.src))
			p, err := f.After(find(t, f, c.anchor))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, put(c.src, f, p)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestNoPlace(t *testing.T) {
	for _, c := range []struct{ name, src, anchor, want string }{
		{"two statements on a line", "a; b;", "b", "does not begin its line"},
		{"second enumerator of a line", "enum e { A, B };", "B", "does not begin its line"},
		{"else branch without braces", "{\n  if (a) {\n  } else\n    b;\n}", "b", "else branch without braces"},
		{"else branch on its own line", "{\n  if (a)\n    c;\n  else\n    b;\n}", "b", "else branch without braces"},
	} {
		t.Run("before/"+c.name, func(t *testing.T) {
			f := Parse([]byte(c.src))
			_, err := f.Before(find(t, f, c.anchor))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	f := Parse([]byte("a; /* x\n*/ b;\n"))
	if _, err := f.After(find(t, f, "a")); err == nil {
		t.Error("after: a comment joins two lines, and no error")
	}
}

func TestScopeEdges(t *testing.T) {
	for _, c := range []struct{ name, src, scope, open, end string }{
		{"function", "void f() {\n    a;\n}\n", "f", "void f() {\n    +\n    a;\n}\n", "void f() {\n    a;\n    +\n}\n"},
		{"brace on its own line", "void f()\n{\n\ta;\n}\n", "f", "void f()\n{\n\t+\n\ta;\n}\n", "void f()\n{\n\ta;\n\t+\n}\n"},
		{"comment after the brace", "void f() { // x\n  a;\n}\n", "f", "void f() { // x\n  +\n  a;\n}\n", "void f() { // x\n  a;\n  +\n}\n"},
		{"one line", "int f() { return 1; }\n", "f", "int f() {\n    +\n    return 1; }\n", "int f() { return 1;\n    +\n}\n"},
		{"empty", "void f() {}\n", "f", "void f() {\n    +\n}\n", "void f() {\n    +\n}\n"},
		{"empty over lines", "  void f() {\n  }\n", "f", "  void f() {\n      +\n  }\n", "  void f() {\n      +\n  }\n"},
		{"class", "class c {\npublic:\n  int a;\n};\n", "class c", "class c {\n  +\npublic:\n  int a;\n};\n", "class c {\npublic:\n  int a;\n  +\n};\n"},
		{"switch", "f() {\n  switch (x) {\n  case 1: a;\n  }\n}", "switch (x)", "f() {\n  switch (x) {\n  +\n  case 1: a;\n  }\n}", "f() {\n  switch (x) {\n  case 1: a;\n  +\n  }\n}"},
		{"table without last comma", "T t[] = {\n  \"a\"\n};", "t", "T t[] = {\n  +\n  \"a\"\n};", "T t[] = {\n  \"a\",\n  +\n};"},
		{"table with last comma", "T t[] = {\n  \"a\", // x\n};", "t", "T t[] = {\n  +\n  \"a\", // x\n};", "T t[] = {\n  \"a\", // x\n  +\n};"},
		{"table on one line", "T t[] = { 1, 2 };", "t", "T t[] = {\n    +\n    1, 2 };", "T t[] = { 1, 2,\n    +\n};"},
		{"enum on one line with a comment", "enum e { A /* a */ };", "enum e", "enum e {\n    +\n    A /* a */ };", "enum e { A, /* a */ \n    +\n};"},
		{"head in a branch", "#if X\nvoid f(int) {\n#else\nvoid f(long) {\n#endif\n  a;\n}\n", "f", "#if X\nvoid f(int) {\n#else\nvoid f(long) {\n#endif\n  +\n  a;\n}\n", "#if X\nvoid f(int) {\n#else\nvoid f(long) {\n#endif\n  a;\n  +\n}\n"},
		{"end in a branch", "void f() {\n  a;\n#if X\n}\n#else\n  b; }\n#endif\n", "f", "void f() {\n  +\n  a;\n#if X\n}\n#else\n  b; }\n#endif\n", "void f() {\n  a;\n  +\n#if X\n}\n#else\n  b; }\n#endif\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := Parse([]byte(c.src))
			s, err := ParseScope(c.scope)
			if err != nil {
				t.Fatal(err)
			}
			defs := f.Scopes(s, f.All())
			if len(defs) != 1 {
				t.Fatalf("%d scopes", len(defs))
			}
			if d := cmp.Diff(c.open, put(c.src, f, f.Opening(defs[0]))); d != "" {
				t.Error("open:", d)
			}
			if d := cmp.Diff(c.end, put(c.src, f, f.Ending(defs[0]))); d != "" {
				t.Error("end:", d)
			}
		})
	}
}

func TestLines(t *testing.T) {
	f := Parse([]byte("  a;\r\n"))
	p := f.End()
	p.Indent = "  "
	got := string(f.Lines(p, []string{"b", "", "#if X", "    c"}))
	if want := "  b\r\n\r\n#if X\r\n      c\r\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := string(f.Inline(2, []string{"b", "  c"})), "b\r\n    c"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestEnd(t *testing.T) {
	for src, want := range map[string]string{"": "+\n", "a\n": "a\n+\n", "a": "a\n+", "a\r\nb": "a\r\nb\r\n+"} {
		f := Parse([]byte(src))
		if got := put(src, f, f.End()); got != want {
			t.Errorf("%q: %q, want %q", src, got, want)
		}
	}
}
