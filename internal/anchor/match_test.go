package anchor

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFind(t *testing.T) {
	src := "case A :\n case /* x */ A:\n#define M case A:\n#if 0\ncase\\\n A:\n#else\ncase A::b;\n#endif\n\"case A:\" // case A:\ncase\n#if X\nA:\n#endif\nn*(1 + m) 2u*(1+m)"
	f := Parse([]byte(src))
	for anchor, want := range map[string]int{
		"case A:":    4, // plain, commented, in a macro, in #if 0
		"case  A :":  4,
		"case A::b":  1,
		`"case A:"`:  1,
		"$N*(1 + m)": 1,
		"define M":   1,
		"# define M": 1,
		"nothing":    0,
	} {
		p, err := ParsePattern(anchor)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(f.Find(p, f.All())); got != want {
			t.Errorf("%q: %d matches, want %d", anchor, got, want)
		}
	}
	if _, err := ParsePattern(" /* nothing */ "); err == nil {
		t.Error("a pattern without tokens is accepted")
	}
}

func TestFindDoesNotOverlap(t *testing.T) {
	f := Parse([]byte("a a a a a"))
	p, _ := ParsePattern("a a")
	if d := cmp.Diff([]Match{{0, 1}, {2, 3}}, f.Find(p, f.All())); d != "" {
		t.Error(d)
	}
}

func TestFindNothing(t *testing.T) {
	f := Parse([]byte("a b c"))
	if got := f.Find(Pattern{}, f.All()); got != nil {
		t.Errorf("the empty pattern matches %v", got)
	}
	p, _ := ParsePattern("a")
	if got := f.Find(p, Region{2, 1}); got != nil {
		t.Errorf("an empty region holds %v", got)
	}
}

func TestNearest(t *testing.T) {
	f := Parse([]byte("enum op {\n  OP_NONE,\n  OP_ADD,\n  OP_N_COUNT,\n  OTHER = 3,\n};\nint x = OP_COUNTED;\n"))
	p, _ := ParsePattern("OP_COUNT,")
	got := f.Nearest(p, f.All(), 3)
	if len(got) == 0 || len(got) > 3 {
		t.Fatalf("%d candidates", len(got))
	}
	if got[0].Line != 4 || got[0].Text != "OP_N_COUNT," {
		t.Errorf("best candidate is %+v", got[0])
	}
	for i := 1; i < len(got); i++ {
		if got[i].Similarity > got[i-1].Similarity {
			t.Errorf("candidates are not sorted: %+v", got)
		}
	}
	exact, _ := ParsePattern("OTHER = 3")
	if c := f.Nearest(exact, f.All(), 1); len(c) != 1 || c[0].Similarity != 1 || c[0].Text != "OTHER = 3" {
		t.Errorf("an exact match gives %+v", c)
	}
}

func TestNearestScopes(t *testing.T) {
	f := Parse([]byte("int A::get_k(int x) { }\nint A::get_v() { }\nstruct get_k_args { int i; };"))
	s, _ := ParseScope("get_k")
	got := f.NearestScopes(s, 2)
	if len(got) != 2 || got[0].Text != "A::get_k(int x)" {
		t.Errorf("%+v", got)
	}
}
