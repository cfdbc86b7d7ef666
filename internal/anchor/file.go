package anchor

import (
	"bytes"
	"sort"
	"strings"
)

// File is a lexed source file with its brackets paired. It is immutable.
type File struct {
	src      []byte
	toks     []Token
	comments []span
	lines    []int // offset of the first byte of each line
	eol      string
	lang     lang

	pair  []int // token -> its bracket partner, or -1
	up    []int // token -> innermost bracket that encloses it, or -1
	alt   []int // token -> alternative (an #else or #elif branch) it lies in, 0 for none
	altUp []int // alternative -> the one around it
	conds []cond
	defs  []Def
}

// cond is one #if … #endif, by token index.
type cond struct {
	first int // the '#' of #if
	last  int // the last token of #endif; len(toks)-1 when it is missing
}

// Parse lexes src as C++ and pairs its brackets. It accepts any bytes. src must
// not change afterwards.
func Parse(src []byte) *File { return ParseAs("", src) }

// ParseAs is Parse for a file of the given name. In CMake, Python, shell, make and
// YAML files # begins a comment, there are no scopes, and edits go before or
// after lines.
func ParseAs(name string, src []byte) *File {
	f := &File{src: src, lang: langOf(name)}
	f.toks, f.comments = lex(src, f.lang)
	f.lines = append(f.lines, 0)
	for i, c := range src {
		if c == '\n' {
			f.lines = append(f.lines, i+1)
		}
	}
	f.eol = "\n"
	if crlf := bytes.Count(src, []byte("\r\n")); crlf > 0 && 2*crlf >= len(f.lines)-1 {
		f.eol = "\r\n"
	}
	f.pairBrackets()
	if f.lang == langC {
		f.defs = f.findDefs()
	}
	return f
}

// Directives reports whether lines that begin with # are preprocessor lines.
func (f *File) Directives() bool { return f.lang == langC }

// EOL returns the line ending the file mostly uses.
func (f *File) EOL() string { return f.eol }

// Len returns the number of tokens.
func (f *File) Len() int { return len(f.toks) }

// Token returns token i.
func (f *File) Token(i int) Token { return f.toks[i] }

// Text returns the text of token i with line continuations removed.
func (f *File) Text(i int) string {
	t := f.toks[i]
	s := string(f.src[t.Start:t.End])
	if t.Kind <= Number && strings.IndexByte(s, '\\') >= 0 {
		s = strings.Map(func(r rune) rune {
			if strings.ContainsRune("\\ \t\r\n", r) {
				return -1
			}
			return r
		}, s)
	}
	return s
}

// Pos returns the 1-based line and byte column of an offset.
func (f *File) Pos(off int) (line, col int) {
	line = f.line(off)
	return line + 1, off - f.lines[line] + 1
}

// LineText returns the text of a 1-based line without its line ending.
func (f *File) LineText(line int) string {
	if line < 1 || line > len(f.lines) {
		return ""
	}
	end := len(f.src)
	if line < len(f.lines) {
		end = f.lines[line]
	}
	return strings.TrimRight(string(f.src[f.lines[line-1]:end]), "\r\n")
}

// line returns the 0-based line of an offset.
func (f *File) line(off int) int {
	return sort.SearchInts(f.lines, off+1) - 1
}

func (f *File) is(i int, text string) bool {
	if i < 0 || i >= len(f.toks) {
		return false
	}
	t := f.toks[i]
	return t.End-t.Start == len(text) && string(f.src[t.Start:t.End]) == text
}

func (f *File) isAny(i int, texts ...string) bool {
	for _, t := range texts {
		if f.is(i, t) {
			return true
		}
	}
	return false
}

func (f *File) kind(i int, k Kind) bool {
	return i >= 0 && i < len(f.toks) && f.toks[i].Kind == k
}

// next returns the token after i as the compiler would see it: directives are
// passed over, and so are alternatives that i does not lie in.
func (f *File) next(i int) int {
	from := i
	for i++; i < len(f.toks); i++ {
		if f.visible(i, from) {
			return i
		}
	}
	return len(f.toks)
}

// prev is next backwards; it returns -1 at the beginning.
func (f *File) prev(i int) int {
	from := i
	for i--; i >= 0; i-- {
		if f.visible(i, from) {
			return i
		}
	}
	return -1
}

func (f *File) visible(i, from int) bool {
	if f.toks[i].Dir != f.toks[from].Dir {
		return false
	}
	a := f.alt[from]
	for a > f.alt[i] {
		a = f.altUp[a]
	}
	return a == f.alt[i]
}

// Unpaired returns the 1-based line of the first brace without a partner, or 0.
// Scopes after it may be missing or too large.
func (f *File) Unpaired() int {
	for i, t := range f.toks {
		if t.Dir == 0 && f.pair[i] < 0 && f.isAny(i, "{", "}") {
			line, _ := f.Pos(t.Start)
			return line
		}
	}
	return 0
}
