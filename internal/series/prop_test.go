package series

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"dot4fa/internal/anchor"
	"dot4fa/internal/fault"
)

// script turns bytes into a series of two members on the file f.c: each four
// bytes are one edit with a technique, an anchor of tokens of src and a text.
func script(src, code []byte) (*Series, error) {
	f := anchor.Parse(src)
	texts := []string{"X;", "X;\nY;", "\n  X;\n\n    Y;\n", "#if X\n  Y\n#endif", "'X', \"Y\"", "/* X */", "{ X }", ""}
	members := [2]strings.Builder{}
	for i := 0; i+4 <= len(code) && i < 32; i += 4 {
		b := &members[i/4%2]
		do := techniques[int(code[i])%7] // all but new_file
		fmt.Fprintf(b, "  - {id: e%d, file: f.c, why: w, do: %s", i, do)
		if Technique(do).wantsAnchor() && f.Len() > 0 {
			first := int(code[i+1]) * f.Len() / 256
			last := min(first+int(code[i+2])%3, f.Len()-1)
			var toks []string
			for k := first; k <= last; k++ {
				toks = append(toks, f.Text(k))
			}
			fmt.Fprintf(b, ", count: '0..', anchor: %s", yamlText(strings.Join(toks, " ")))
		}
		if d := f.Defs(); (do == string(ScopeOpen) || do == string(ScopeEnd)) && len(d) > 0 {
			fmt.Fprintf(b, ", scope: %s", yamlText(f.Title(d[int(code[i+1])%len(d)])))
		}
		if Technique(do).wantsText() {
			text := texts[int(code[i+3])%len(texts)]
			if text == "" {
				text = "{{ `` }}"
			}
			fmt.Fprintf(b, ", text: %s", yamlText(text))
		}
		b.WriteString("}\n")
	}
	fsys := fstest.MapFS{}
	for i := range members {
		if members[i].Len() > 0 {
			fsys[fmt.Sprintf("patches/0%d0-m.yaml", i+1)] = &fstest.MapFile{Data: []byte(head + members[i].String())}
		}
	}
	return Load(fsys)
}

// yamlText is text in double quotes.
func yamlText(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		if r < 0x20 || r > 0x7e || r == '"' || r == '\\' {
			fmt.Fprintf(&b, "\\U%08X", r)
		} else {
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

const cSource = `#include <a.h>
enum op {
    A,
    B,
    COUNT
};
static const char * NAMES[COUNT] = { "a", "b" };
static_assert(COUNT == 3, "3");

// about f
template <typename T>
static int f(int x,
             T y) {
    switch (x) {
        case A: /* a */
        case B: {
            return y;
        } break;
        default:
            break;
    }
#ifdef Z
    if (x) {
#else
    if (y) {
#endif
        g(x,
          y);
    } else
        h();
    return R"(x
)";
}
`

// checkPlan holds for any series and any file: the images and the diffs agree,
// upstream's bytes outside replacements are all there and in order, and a work
// tree goes there and back.
func checkPlan(t testing.TB, s *Series, src []byte) {
	t.Helper()
	tree := files{"f.c": string(src)}
	p, err := s.Plan(tree.read, nil)
	if err != nil {
		if c := fault.Code(err); c != fault.EditFails && c != fault.Usage {
			t.Fatalf("exit code %d: %v", c, err)
		}
		return
	}
	again := mustPlan(t, s, tree, nil)
	if !bytes.Equal(p.Diff(), again.Diff()) {
		t.Fatal("two plans of one series differ")
	}
	checkDiffs(t, p, tree)
	if len(p.Files) == 0 {
		return
	}
	f := p.Files[0]
	at := 0
	for _, sp := range f.splices {
		if sp.start < at || sp.end < sp.start || sp.end > len(src) {
			t.Fatalf("splice %d–%d after %d", sp.start, sp.end, at)
		}
		at = sp.end
	}
	lines := bytes.Count(f.Post, []byte("\n")) + 1
	for n := range lines + 2 {
		for _, o := range p.Explain("f.c", n) {
			if o.First > o.Last || n < o.First || n > o.Last {
				t.Fatalf("line %d is explained by %+v", n, o)
			}
		}
	}
}

func checkTree(t testing.TB, s *Series, src []byte) {
	t.Helper()
	tree := files{"f.c": string(src), "g": "g"}
	p, err := s.Plan(tree.read, nil)
	if err != nil {
		return
	}
	ctx, dir := context.Background(), checkout(t, tree)
	before := snapshot(t, dir)
	for range 2 {
		if _, err := Apply(ctx, dir, p, nil, Options{}); err != nil {
			t.Fatal(err)
		}
		want := Applied
		if len(p.Files) == 0 {
			want = Clean
		}
		if got := state(t, dir, p, nil); got != want {
			t.Fatalf("the tree is %s", got)
		}
	}
	for _, f := range p.Files {
		if data, _ := os.ReadFile(filepath.Join(dir, f.Path)); !bytes.Equal(data, f.Post) {
			t.Fatalf("%s holds %q", f.Path, data)
		}
	}
	for range 2 {
		if _, err := Unapply(ctx, dir, nil, nil, Options{}); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(before, snapshot(t, dir)); d != "" {
			t.Fatal(d)
		}
	}
}

func FuzzPlan(f *testing.F) {
	f.Add([]byte(cSource), []byte("\x00\x40\x01\x00\x01\x60\x02\x01\x02\x01\x00\x02\x03\x00\x00\x03"))
	f.Add([]byte(strings.ReplaceAll(cSource, "\n", "\r\n")), []byte("\x04\x40\x01\x04\x01\x90\x02\x01\x05\x01\x00\x02\x06\x33\x00\x03"))
	f.Add([]byte("a"), []byte("\x05\x00\x00\x00"))
	f.Add([]byte("enum e { A, B };"), []byte("\x02\x00\x00\x00\x03\x00\x00\x01"))
	f.Fuzz(func(t *testing.T, src, code []byte) {
		s, err := script(src, code)
		if err != nil {
			return
		}
		checkPlan(t, s, src)
	})
}

func FuzzTree(f *testing.F) {
	f.Add([]byte(cSource), []byte("\x00\x40\x01\x00\x01\x60\x02\x01\x02\x01\x00\x02\x03\x00\x00\x03"))
	f.Fuzz(func(t *testing.T, src, code []byte) {
		s, err := script(src, code)
		if err != nil {
			return
		}
		checkTree(t, s, src)
	})
}

func TestRandomSeries(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	applied := 0
	for range 3000 {
		code := make([]byte, 4*(1+r.IntN(6)))
		for i := range code {
			code[i] = byte(r.Uint32())
		}
		src := []byte(cSource)
		switch r.IntN(4) {
		case 0:
			src = bytes.ReplaceAll(src, []byte("\n"), []byte("\r\n"))
		case 1:
			src = bytes.TrimSuffix(src, []byte("\n"))
		case 2:
			src = append([]byte("\xef\xbb\xbf"), src...)
		}
		s, err := script(src, code)
		if err != nil {
			t.Fatal(err)
		}
		checkPlan(t, s, src)
		if _, err := s.Plan(files{"f.c": string(src)}.read, nil); err == nil {
			applied++
			if applied%40 == 0 {
				checkTree(t, s, src)
			}
		}
	}
	if applied < 500 {
		t.Errorf("only %d of 3000 series apply: the test says little", applied)
	}
	t.Logf("%d of 3000 series apply", applied)
}

// TestRandomForeignEdits changes a file by hand at a random moment, also in the
// middle of a run, and makes sure that the change survives every run after it.
func TestRandomForeignEdits(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	plan := smallPlan(t)
	names := []string{"inc/a.h", "src/ü b.cpp", "src/last.cpp", "tests/t.cpp", "top.h", "src/new/ä/k.cuh"}
	ctx := context.Background()
	for i := range 100 {
		dir := checkout(t, small)
		name, text := names[r.IntN(len(names))], fmt.Sprint("mine ", i)
		edit := func() { put(t, dir, name, text, 0o644) }
		steps := 1 + r.IntN(30)
		run := func(stepped bool) error {
			o := Options{}
			if stepped {
				o.step = func() error {
					if steps--; steps == 0 {
						edit()
					}
					return nil
				}
			}
			var err error
			if r.IntN(2) == 0 {
				_, err = Apply(ctx, dir, plan, ours, o)
			} else {
				_, err = Unapply(ctx, dir, plan, ours, o)
			}
			return err
		}
		for range r.IntN(3) {
			if err := run(false); err != nil {
				t.Fatal(err)
			}
		}
		_ = run(true)
		if steps > 0 {
			edit()
		}
		// An edit in the instant between the last look at a file and its
		// replacement cannot be seen; then the file is as the run left it.
		if data, _ := os.ReadFile(filepath.Join(dir, name)); string(data) != text {
			continue
		}
		for range 3 {
			if err := run(false); fault.Code(err) != fault.EditFails {
				t.Fatalf("%s: error %v", name, err)
			}
			if data, _ := os.ReadFile(filepath.Join(dir, name)); string(data) != text {
				t.Fatalf("%s now holds %q", name, data)
			}
		}
		if s := state(t, dir, plan, ours); s != Foreign {
			t.Fatalf("the tree is %s", s)
		}
	}
}
