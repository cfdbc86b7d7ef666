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

// Parse lexes src and pairs its brackets. It accepts any bytes. src must not
// change afterwards.
func Parse(src []byte) *File {
	f := &File{src: src}
	f.toks, f.comments = lex(src)
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
	f.defs = f.findDefs()
	return f
}

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

// open is a node of the stack of open brackets. The stack is a linked list, so
// that each branch of a conditional continues from the same one.
type open struct {
	tok   int
	depth int
	below *open
}

// branchState is what an #if must remember until its #endif.
type branchState struct {
	entry  *open // stack before the #if
	chosen *open // stack after the branch that counts
	done   bool  // chosen is set
	zero   bool  // the current branch is an #if 0: a later one counts
	inAlt  bool
	alt    int // alternative around the #if
	cond   int
	others []*open // stacks after the branches that do not count
}

// pairBrackets pairs ( ) [ ] { }. Of the branches of a conditional the first one
// that is not #if 0 decides the balance of what follows; brackets of the others
// pair within their branch, or share the partner of the bracket they stand for.
func (f *File) pairBrackets() {
	n := len(f.toks)
	f.pair, f.up, f.alt = make([]int, n), make([]int, n), make([]int, n)
	f.altUp = []int{0}
	for i := range f.pair {
		f.pair[i] = -1
	}
	alias := map[int]int{}
	var stack *open
	var nest []*branchState
	alt := 0
	for i := 0; i < n; {
		f.alt[i], f.up[i] = alt, stack.index()
		if d := f.toks[i].Dir; d != 0 {
			end := i + 1
			for end < n && f.toks[end].Dir == d {
				end++
			}
			stack, alt, nest = f.directive(i, end, stack, alt, nest, alias)
			var local *open // brackets of a directive pair within it
			for j := i; j < end; j++ {
				f.alt[j], f.up[j] = alt, local.index()
				local = f.bracket(j, local)
			}
			i = end
			continue
		}
		stack = f.bracket(i, stack)
		i++
	}
	for len(nest) > 0 { // an #if without #endif reaches the end
		b := nest[len(nest)-1]
		f.conds[b.cond].last = n - 1
		nest = nest[:len(nest)-1]
	}
	for a, b := range alias {
		for c, ok := alias[b]; ok; c, ok = alias[b] {
			b = c
		}
		if f.pair[a] < 0 {
			f.pair[a] = f.pair[b]
		}
	}
}

func (o *open) index() int {
	if o == nil {
		return -1
	}
	return o.tok
}

func (o *open) size() int {
	if o == nil {
		return 0
	}
	return o.depth
}

// bracket pushes or pops token i. A closer without a partner is ignored; a } or
// ) closes whatever was left open inside its pair.
func (f *File) bracket(i int, stack *open) *open {
	if f.toks[i].Kind != Punct {
		return stack
	}
	var want byte
	switch c := f.src[f.toks[i].Start]; c {
	case '(', '[', '{':
		return &open{tok: i, depth: stack.size() + 1, below: stack}
	case ')':
		want = '('
	case ']':
		want = '['
	case '}':
		want = '{'
	default:
		return stack
	}
	o := stack
	for o != nil && f.src[f.toks[o.tok].Start] != want {
		if want != '{' && f.src[f.toks[o.tok].Start] == '{' {
			return stack
		}
		o = o.below
	}
	if o == nil {
		return stack
	}
	f.pair[i] = o.tok
	if f.pair[o.tok] < 0 {
		f.pair[o.tok] = i
	}
	f.up[i] = o.below.index()
	return o.below
}

// directive handles the conditional directives at tokens [i, end).
func (f *File) directive(i, end int, stack *open, alt int, nest []*branchState, alias map[int]int) (*open, int, []*branchState) {
	if i+1 >= end {
		return stack, alt, nest
	}
	switch f.Text(i + 1) {
	case "if", "ifdef", "ifndef":
		b := &branchState{entry: stack, alt: alt, cond: len(f.conds)}
		f.conds = append(f.conds, cond{first: i})
		if f.is(i+1, "if") && end == i+3 && f.is(i+2, "0") {
			b.zero = true
			alt = f.newAlt(alt)
		}
		return stack, alt, append(nest, b)
	case "else", "elif", "elifdef", "elifndef":
		if len(nest) == 0 {
			return stack, alt, nest
		}
		b := nest[len(nest)-1]
		b.leave(stack)
		alt = b.alt
		if b.done {
			b.inAlt = true
			alt = f.newAlt(alt)
		}
		return b.entry, alt, nest
	case "endif":
		if len(nest) == 0 {
			return stack, alt, nest
		}
		b := nest[len(nest)-1]
		b.leave(stack)
		if !b.done {
			b.chosen = b.entry
		}
		f.conds[b.cond].last = end - 1
		for _, o := range b.others {
			f.alias(o, b, alias)
		}
		return b.chosen, b.alt, nest[:len(nest)-1]
	}
	return stack, alt, nest
}

func (f *File) newAlt(up int) int {
	f.altUp = append(f.altUp, up)
	return len(f.altUp) - 1
}

func (b *branchState) leave(stack *open) {
	if b.zero || b.inAlt {
		b.others = append(b.others, stack)
	} else {
		b.chosen, b.done = stack, true
	}
	b.zero, b.inAlt = false, false
}

// alias notes that the brackets left open by a branch that does not count stand
// for those left open by the one that does.
func (f *File) alias(o *open, b *branchState, alias map[int]int) {
	c := b.chosen
	if o.size() != c.size() {
		return
	}
	for ; o != nil && o != c && o.depth > b.entry.size(); o, c = o.below, c.below {
		if f.src[f.toks[o.tok].Start] == f.src[f.toks[c.tok].Start] {
			alias[o.tok] = c.tok
		}
	}
}
