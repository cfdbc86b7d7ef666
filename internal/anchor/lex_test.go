package anchor

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func texts(f *File) []string {
	var all []string
	for i := range f.Len() {
		all = append(all, f.Text(i))
	}
	return all
}

func TestTokens(t *testing.T) {
	for _, c := range []struct {
		name, src, want string // want: tokens separated by a blank, ␣ for a blank inside one
	}{
		{"blanks and comments", "a /* b */ c // d\ne", "a c e"},
		{"comment in a string", `x = "/* no */ // no";`, `x = "/*␣no␣*/␣//␣no" ;`},
		{"string in a comment", "a /* \" */ b", "a b"},
		{"continued line comment", "a // b \\\nc\nd", "a d"},
		{"continued with blanks after the backslash", "a // b \\  \r\nc\nd", "a d"},
		{"comment never closed", "a /* b", "a"},
		{"slash star slash", "a /*/ b */ c", "a c"},
		{"identifier over two lines", "ab\\\ncd", "abcd"},
		{"escapes", `"a\"b" 'c\'d' "\\" e`, `"a\"b" 'c\'d' "\\" e`},
		{"string over two lines", "\"a\\\nb\" c", "\"a\\\nb\" c"},
		{"string never closed", "\"abc\nd", "\"abc d"},
		{"string never closed, CRLF", "\"abc\r\nd", "\"abc d"},
		{"lone backslash before the newline of a string", "'\\", "'\\"},
		{"digit separators", "1'000'000u + 0x1'f", "1'000'000u + 0x1'f"},
		{"exponents", "1e-5f 0x1p+3 0xe-1 .5e+1", "1e-5f 0x1p+3 0xe - 1 .5e+1"},
		{"character after a number", "case 1:'a'", "case 1 : 'a'"},
		{"prefixes", `u8"a" L'b' U"c" u'd' x"e"`, `u8"a" L'b' U"c" u'd' x "e"`},
		{"raw string", `R"(a "b" // c)" d`, `R"(a␣"b"␣//␣c)" d`},
		{"raw string with a delimiter", `u8R"x(a)" )x" d`, `u8R"x(a)"␣)x" d`},
		{"raw string with quotes in its delimiter", `R"""(a" )" )""" d`, `R"""(a"␣)"␣)""" d`},
		{"raw string never closed", "R\"(abc\nd", "R\"(abc d"},
		{"raw string with a bad delimiter", `R"a b(c)a b" d`, `R"a␣b(c)a␣b" d`},
		{"operators", "a->b::c+=d<<e>>f<=g...;", "a -> b :: c += d < < e > > f <= g ... ;"},
		{"launch", "k<<<g, b>>>(x)", "k < < < g , b > > > ( x )"},
		{"directive", "#define A(x) #x ## y\nb", "# define A ( x ) # x ## y b"},
		{"non-ASCII identifier", "größe = 1", "größe = 1"},
		{"byte order mark", "\xef\xbb\xbfa", "a"},
		{"NUL and other bytes", "a\x00@`b", "a \x00 @ ` b"},
		{"empty", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := strings.Split(c.want, " ")
			for i := range want {
				want[i] = strings.ReplaceAll(want[i], "␣", " ")
			}
			if c.want == "" {
				want = nil
			}
			if d := cmp.Diff(want, texts(Parse([]byte(c.src)))); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestDirectives(t *testing.T) {
	src := "a\n#define B \\\n  c /* d\n e */ f\ng # h\n  # pragma i // j\nk"
	f := Parse([]byte(src))
	var got []string
	for i := range f.Len() {
		if f.Token(i).Dir != 0 {
			got = append(got, f.Text(i))
		}
	}
	want := []string{"#", "define", "B", "c", "f", "#", "pragma", "i"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// pairs lists the bracket pairs of src as "open-close" by token text order.
func TestBrackets(t *testing.T) {
	for _, c := range []struct {
		name, src string
		open      string // marker after which the bracket stands
		close     string // marker before which its partner stands
	}{
		{"plain", "A { b ( c [ d ] ) } Z", "A", "Z"},
		{"first branch decides", "A {\n#if X\nif (a) {\n#else\nif (b) {\n#endif\n} } Z", "A", "Z"},
		{"closers in branches", "A { {\n#if X\n}\n#else\n}\n#endif\n} Z", "A", "Z"},
		{"if 0 does not decide", "A {\n#if 0\n{ { (\n#endif\n} Z", "A", "Z"},
		{"else of if 0 decides", "A {\n#if 0\n{ {\n#else\n{ }\n#endif\n} Z", "A", "Z"},
		{"elif", "A {\n#if X\n{\n#elif Y\n{ {\n#else\n{ { {\n#endif\n} } Z", "A", "Z"},
		{"nested conditionals", "A {\n#if X\n#if Y\n{\n#else\n{ {\n#endif\n#else\n{\n#endif\n} } Z", "A", "Z"},
		{"opened and closed under one condition", "A {\n#ifdef X\nextern {\n#endif\nb\n#ifdef X\n}\n#endif\n} Z", "A", "Z"},
		{"complementary conditions", "A {\n#ifdef X\nif (a) {\n#endif\n#ifndef X\nif (b) {\n#endif\n} } Z", "A", "Z"},
		{"complementary conditions, negated", "A {\n#if X == 1\n{\n#endif\nb\n#if !(X == 1)\n{\n#endif\n} } Z", "A", "Z"},
		{"complement without brackets", "A {\n#ifdef X\n{\n#endif\n#ifndef X\nb\n#endif\n#ifdef X\n}\n#endif\n} Z", "A", "Z"},
		{"condition over branches", "A { if (a &&\n#ifdef X\nb) {\n#else\nc) {\n#endif\n} } Z", "A", "Z"},
		{"stray closers", "A { ) ] } Z", "A", "Z"},
		{"brackets left open", "A { ( [ } Z", "A", "Z"},
		{"macro bodies", "A {\n#define M {\n} Z", "A", "Z"},
		{"braces in literals", `A { "}" '}' R"(})" } Z`, "A", "Z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := Parse([]byte(c.src))
			open, end := -1, -1
			for i := range f.Len() {
				if f.is(i, c.open) {
					open = i + 1
				}
				if f.is(i, c.close) {
					end = i - 1
				}
			}
			if f.pair[open] != end {
				t.Errorf("partner of token %d is %d, want %d", open, f.pair[open], end)
			}
		})
	}
}

func TestAlternativesShareAPartner(t *testing.T) {
	for _, src := range []string{
		"#if X\nvoid a(int) {\n#else\nvoid b(long) {\n#endif\n c; }",
		"if (a &&\n#ifdef X\nb) {\n#else\nc) {\n#endif\n}",
		"#ifdef X\nif (a) {\n#endif\n#ifndef X\nif (b) {\n#endif\n}",
	} {
		f := Parse([]byte(src))
		last := f.Len() - 1
		for i := range f.Len() {
			if f.is(i, "{") && f.pair[i] != last {
				t.Errorf("%q: partner of { at %d is %d, want %d", src, i, f.pair[i], last)
			}
		}
	}
}

func TestEOL(t *testing.T) {
	for src, want := range map[string]string{
		"": "\n", "a": "\n", "a\n": "\n", "a\r\n": "\r\n", "a\r\nb\nc\n": "\n", "a\r\nb\r\nc\n": "\r\n",
	} {
		if got := Parse([]byte(src)).EOL(); got != want {
			t.Errorf("%q: %q, want %q", src, got, want)
		}
	}
}
