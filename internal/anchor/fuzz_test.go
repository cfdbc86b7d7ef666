package anchor

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func seeds(f *testing.F) {
	f.Add([]byte(source))
	for _, s := range []string{
		"", "\x00", "\\", "\"", "'", "R\"(", "/*", "//\\", "#", "#if\n#else", "}{)(][", "\xef\xbb\xbf#",
		"#if X\n{\n#else\n{\n#endif\n}", "a::~", "operator", "struct", "template<", "f(){", "enum e{A}",
		"#if 0\n'\n#endif", "#ifdef A\n{\n#endif\n#ifndef A\n{\n#endif\n}", "1'0'", "x = {{{", "\r\n\\\r\n",
	} {
		f.Add([]byte(s))
	}
}

// FuzzParse holds for any bytes: tokens and comments cover everything but blanks,
// in order and without overlap; pairs are mutual; every position is in range;
// points are at ends of tokens and never inside a comment or a literal.
func FuzzParse(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		checkTokens(t, ParseAs("x.py", src))
		checkTokens(t, ParseAs("CMakeLists.txt", src))
		file := Parse(src)
		checkTokens(t, file)
		for i := range file.Len() {
			if p := file.pair[i]; p >= 0 && (p == i || file.pair[p] < 0) {
				t.Fatalf("token %d pairs with %d, which pairs with nothing", i, p)
			}
			if u := file.up[i]; u >= i {
				t.Fatalf("token %d lies in bracket %d", i, u)
			}
			line, col := file.Pos(file.Token(i).Start)
			if line < 1 || col < 1 || col > len(file.LineText(line)) && file.Token(i).Start < len(src) {
				t.Fatalf("token %d at %d:%d", i, line, col)
			}
		}
		for _, d := range file.Defs() {
			if d.Head > d.Open || d.Open >= d.Close || file.pair[d.Open] != d.Close {
				t.Fatalf("bad definition %+v", d)
			}
			if file.Title(d) == "" {
				t.Fatalf("definition without a title %+v", d)
			}
			checkPoint(t, file, file.Opening(d))
			checkPoint(t, file, file.Ending(d))
		}
		for i := 0; i < file.Len(); i += 1 + file.Len()/64 {
			m := Match{i, min(i+1, file.Len()-1)}
			if p, err := file.Before(m); err == nil {
				checkPoint(t, file, p)
			}
			if p, err := file.After(m); err == nil {
				checkPoint(t, file, p)
			}
		}
		checkPoint(t, file, file.End())
		if p, err := ParsePattern("case A: f("); err == nil && file.Len() < 2000 {
			file.Nearest(p, file.All(), 3)
		}
	})
}

func checkTokens(t *testing.T, f *File) {
	t.Helper()
	covered := make([]bool, len(f.src))
	mark := func(start, end int) {
		if start < 0 || end <= start || end > len(f.src) {
			t.Fatalf("bad range %d–%d of %d", start, end, len(f.src))
		}
		for i := start; i < end; i++ {
			if covered[i] {
				t.Fatalf("byte %d is covered twice", i)
			}
			covered[i] = true
		}
	}
	last := 0
	for i := range f.toks {
		mark(f.toks[i].Start, f.toks[i].End)
		if f.toks[i].Start < last {
			t.Fatalf("token %d is out of order", i)
		}
		last = f.toks[i].End
	}
	for _, c := range f.comments {
		mark(c.start, c.end)
	}
	for i, c := range f.src {
		bom := i < 3 && bytes.HasPrefix(f.src, []byte("\xef\xbb\xbf"))
		if !covered[i] && !bom && !strings.ContainsRune(" \t\r\n\f\v\\", rune(c)) {
			t.Fatalf("byte %d (%q) is in no token", i, c)
		}
	}
}

func checkPoint(t *testing.T, f *File, p Point) {
	t.Helper()
	if p.Off < 0 || p.End < p.Off || p.End > len(f.src) {
		t.Fatalf("point %d–%d of %d", p.Off, p.End, len(f.src))
	}
	if s, ok := f.inside(p.Off); ok {
		t.Fatalf("point %d is inside %q", p.Off, f.src[s.start:s.end])
	}
	if len(bytes.TrimLeft(f.src[p.Off:p.End], " \t")) > 0 {
		t.Fatalf("point replaces %q", f.src[p.Off:p.End])
	}
	if p.Off == len(f.src) && !f.closed() {
		return // the file ends inside a comment or after a continuation
	}
	// What is inserted must be a token of its own, the others unchanged.
	out := append(append(append([]byte{}, f.src[:p.Off]...), f.Lines(p, []string{"+"})...), f.src[p.End:]...)
	if got := Parse(out).Len(); got != f.Len()+1 {
		t.Fatalf("inserting one token at %d turns %d tokens into %d: %q", p.Off, f.Len(), got, out)
	}
}

// closed reports whether a line after the last one is code.
func (f *File) closed() bool {
	out := append([]byte{}, f.src...)
	if !bytes.HasSuffix(out, []byte("\n")) {
		out = append(out, '\n')
	}
	return Parse(append(out, '+')).Len() == f.Len()+1
}

// FuzzScope holds for any text: ParseScope answers or fails, and what it accepts
// can be looked for.
func FuzzScope(f *testing.F) {
	for _, s := range []string{"enum e", "A::b(T * x)", "f()", "f(int $)", "switch (x)", "if", "~a", "operator()(", "a<b", "struct"} {
		f.Add(s)
	}
	file := Parse([]byte(source))
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseScope(text)
		if err != nil {
			return
		}
		for _, d := range file.Scopes(s, file.All()) {
			if d.Kind != s.kind && s.kind != "" {
				t.Fatalf("%q finds a %s", text, d.Kind)
			}
		}
		file.NearestScopes(s, 3)
	})
}

// TestUpstreamParses runs the fuzzing property over a real tree.
func TestUpstreamParses(t *testing.T) {
	up := os.Getenv("DOT4FA_UPSTREAM")
	if info, err := os.Stat(filepath.Join(up, "ggml")); up == "" || err != nil || !info.IsDir() {
		t.Skip("upstream tree: DOT4FA_UPSTREAM names no directory with upstream's files (a bare repository has none)")
	}
	n := 0
	for _, dir := range []string{"ggml", "src", "common", "tests", "tools"} {
		err := walkSources(up, dir, func(name string, data []byte) {
			f := Parse(data)
			checkTokens(t, f)
			n++
			if line := f.Unpaired(); line > 0 {
				t.Errorf("%s:%d: brace without a partner", name, line)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d files", n)
}
