package anchor

import (
	"bytes"
	"fmt"
	"sort"
	"strings"
)

// Point is where whole lines go.
type Point struct {
	Off, End int    // they replace these bytes: none, or blanks between tokens
	Comma    int    // offset at which the list they extend lacks a comma, or -1
	Indent   string // put before each line that is not blank

	lead bool   // the text before Off is not ended by a newline: begin with one
	open bool   // leave out the last newline, as the file does
	tail string // written after the last newline: indentation of what follows
}

func point(off int, indent string) Point {
	return Point{Off: off, End: off, Comma: -1, Indent: indent}
}

// Lines returns the bytes to insert at p for lines that carry no indentation
// of their own beyond what is relative to each other. Preprocessor lines stay in
// the first column.
func (f *File) Lines(p Point, lines []string) []byte {
	var b bytes.Buffer
	if p.lead {
		b.WriteString(f.eol)
	}
	for i, line := range lines {
		if f.indented(line) {
			b.WriteString(p.Indent)
		}
		b.WriteString(line)
		if i < len(lines)-1 || !p.open {
			b.WriteString(f.eol)
		}
	}
	b.WriteString(p.tail)
	return b.Bytes()
}

// indented reports whether a line of an edit is indented like its place.
func (f *File) indented(line string) bool {
	return line != "" && !(f.lang == langC && strings.HasPrefix(line, "#"))
}

// Inline returns the bytes that replace a token at off with lines: the first
// one stands where the token stood, the others are indented like its line.
func (f *File) Inline(off int, lines []string) []byte {
	var b bytes.Buffer
	indent := f.indentAt(off)
	for i, line := range lines {
		if i > 0 {
			b.WriteString(f.eol)
			if f.indented(line) {
				b.WriteString(indent)
			}
		}
		b.WriteString(line)
	}
	return b.Bytes()
}

// Before returns the point before the line on which match m begins. When the
// match is not at the beginning of a statement or of a list element, it is the
// line on which its statement begins. Comments that stand directly above that
// line stay with it.
func (f *File) Before(m Match) (Point, error) {
	i := m.First
	if f.lang != langC {
		for !f.firstOnLine(i) {
			i--
		}
	} else if !f.firstOnLine(i) || f.toks[i].Dir != 0 || !f.begins(i) {
		i = f.statement(i)
	}
	if f.is(i, "else") {
		return Point{}, fmt.Errorf("line %d is an else branch without braces", f.line(f.toks[i].Start)+1)
	}
	off := f.lineStart(f.toks[i].Start)
	if i > 0 && f.toks[i-1].End > off {
		return Point{}, fmt.Errorf("the statement does not begin its line: %s", f.where(i))
	}
	for off > 0 {
		above := f.lineStart(off - 1)
		if i > 0 && f.toks[i-1].End > above || len(bytes.TrimSpace(f.src[above:off])) == 0 {
			break
		}
		off = above
	}
	return point(off, f.indent(i)), nil
}

// After returns the point after the line on which the statement of match m
// ends, or the brackets opened on the way close.
func (f *File) After(m Match) (Point, error) {
	last := m.Last
	for {
		if d := f.toks[last].Dir; d != 0 {
			for last+1 < len(f.toks) && f.toks[last+1].Dir == d {
				last++
			}
			break
		}
		for last+1 < len(f.toks) && f.sameLine(last, last+1) {
			last++
		}
		far := last
		for k := m.First; k <= last; k++ {
			far = max(far, f.pair[k])
		}
		if far == last && f.unfinished(last) {
			far = f.next(last)
		}
		if far == last || far >= len(f.toks) {
			break
		}
		last = far
	}
	off, unended := f.lineEnd(f.toks[last].End)
	p := point(off, f.indent(m.First))
	p.lead, p.open = unended, unended
	if b := f.up[m.First]; f.isList(b) && f.next(last) == f.pair[b] && !f.is(last, ",") && last > b {
		p.Comma = f.toks[last].End
	}
	if last+1 < len(f.toks) && f.toks[last+1].Start < p.Off {
		return p, fmt.Errorf("the statement does not end its line: %s", f.where(last))
	}
	return p, nil
}

// Opening returns the point after the line of the { of d, indented as its body.
func (f *File) Opening(d Def) Point {
	indent := f.bodyIndent(d)
	if c, ok := f.split(d.Open, d.Close); ok {
		off, unended := f.lineEnd(f.toks[c.last].End)
		p := point(off, indent)
		p.lead = unended
		return p
	}
	if !f.sameLine(d.Open, d.Open+1) {
		off, _ := f.lineEnd(f.toks[d.Open].End)
		return point(off, indent)
	}
	p := point(f.toks[d.Open].End, indent)
	p.End = f.skipBlanks(p.Off)
	p.lead, p.tail = true, indent
	if d.Open+1 == d.Close {
		p.tail = f.indent(d.Open)
	}
	return p
}

// Ending returns the point before the line of the } of d, indented as its body.
func (f *File) Ending(d Def) Point {
	at := d.Close
	if c, ok := f.split(d.Close, d.Open); ok {
		at = c.first
	}
	p := point(f.lineStart(f.toks[at].Start), f.bodyIndent(d))
	if at > 0 && f.toks[at-1].End > p.Off {
		p.Off, p.End = f.toks[at-1].End, f.toks[at].Start
		if f.skipBlanks(p.Off) != p.End { // a comment stands between
			p.Off = p.End
		}
		p.lead, p.tail = true, f.indent(d.Open)
	}
	if last := f.prev(d.Close); (d.Kind == "enum" || d.Kind == "table") && last > d.Open && !f.is(last, ",") {
		p.Comma = f.toks[last].End
	}
	return p
}

func (f *File) skipBlanks(off int) int {
	for off < len(f.src) && (f.src[off] == ' ' || f.src[off] == '\t') {
		off++
	}
	return off
}

// End returns the point at the end of the file.
func (f *File) End() Point {
	unended := len(f.src) > 0 && f.src[len(f.src)-1] != '\n'
	p := point(len(f.src), "")
	p.lead, p.open = unended, unended
	return p
}

// split returns the outermost conditional that holds token a and not b.
func (f *File) split(a, b int) (cond, bool) {
	for _, c := range f.conds {
		if c.first <= a && a <= c.last && (b < c.first || b > c.last) {
			return c, true
		}
	}
	return cond{}, false
}

func (f *File) where(i int) string {
	line, _ := f.Pos(f.toks[i].Start)
	return fmt.Sprintf("%d: %s", line, strings.TrimSpace(f.LineText(line)))
}

func (f *File) sameLine(i, j int) bool {
	return j < len(f.toks) && f.line(f.toks[j].Start) == f.line(f.toks[i].End-1)
}

func (f *File) firstOnLine(i int) bool { return i == 0 || !f.sameLine(i-1, i) }

// indent is the white space the line of token i begins with.
func (f *File) indent(i int) string { return f.indentAt(f.toks[i].Start) }

func (f *File) indentAt(off int) string {
	start := f.lines[f.line(off)]
	end := start
	for end < len(f.src) && (f.src[end] == ' ' || f.src[end] == '\t') {
		end++
	}
	return string(f.src[start:end])
}

// bodyIndent is the indentation of the first line of the body of d that begins
// at its own level, or one step more than the closing brace.
func (f *File) bodyIndent(d Def) string {
	for i := d.Open + 1; i < d.Close; i++ {
		access := f.isAny(i, "public", "private", "protected") && f.is(i+1, ":")
		if f.up[i] == d.Open && f.toks[i].Dir == 0 && f.firstOnLine(i) && !access && !f.is(i, ":") {
			return f.indent(i)
		}
	}
	return f.indent(d.Close) + "    "
}

// inside returns the comment or multi-line token that holds off strictly.
func (f *File) inside(off int) (span, bool) {
	i := sort.Search(len(f.comments), func(i int) bool { return f.comments[i].end > off })
	if i < len(f.comments) && f.comments[i].start < off {
		return f.comments[i], true
	}
	i = sort.Search(len(f.toks), func(i int) bool { return f.toks[i].End > off })
	if i < len(f.toks) && f.toks[i].Start < off {
		return span{f.toks[i].Start, f.toks[i].End}, true
	}
	return span{}, false
}

// lineStart is the beginning of the line of off; a line that begins inside a
// comment, a literal or after a continuation belongs to the one before.
func (f *File) lineStart(off int) int {
	for {
		p := f.lines[f.line(off)]
		if s, ok := f.inside(p); ok {
			off = s.start
		} else if p > 0 && f.spliced(p-1) {
			off = p - 1
		} else {
			if p == 0 && bytes.HasPrefix(f.src, []byte("\xef\xbb\xbf")) {
				p = 3
			}
			return p
		}
	}
}

// lineEnd is the offset after the newline that ends the line of off; the second
// result says that there is none.
func (f *File) lineEnd(off int) (int, bool) {
	for {
		n := bytes.IndexByte(f.src[off:], '\n')
		if n < 0 {
			return len(f.src), !bytes.HasSuffix(f.src, []byte("\n"))
		}
		nl := off + n
		if s, ok := f.inside(nl); ok {
			off = s.end
		} else if f.spliced(nl) {
			off = nl + 1
		} else {
			return nl + 1, false
		}
	}
}

// spliced reports whether the newline at nl is a line continuation.
func (f *File) spliced(nl int) bool {
	for nl--; nl >= 0 && (f.src[nl] == ' ' || f.src[nl] == '\t' || f.src[nl] == '\r'); nl-- {
	}
	return nl >= 0 && f.src[nl] == '\\'
}
