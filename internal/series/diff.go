package series

import (
	"bytes"
	"fmt"
	"sort"
	"strings"
)

// Diff is the whole plan as one unified diff in git's form.
func (p *Plan) Diff() []byte {
	var b bytes.Buffer
	for i := range p.Files {
		b.Write(p.Files[i].diff(0, len(p.Members)))
	}
	return b.Bytes()
}

// MemberDiff is what member n of the series changes, counted from 0, as a
// unified diff between the tree with the members before it and the tree with it.
func (p *Plan) MemberDiff(n int) []byte {
	var b bytes.Buffer
	for i := range p.Files {
		b.Write(p.Files[i].diff(n, n+1))
	}
	return b.Bytes()
}

// diff is the change from the image after the first from members to that after
// the first to. It is made from the edits themselves, so it says exactly what
// they do and needs no search for what changed.
func (f *FilePlan) diff(from, to int) []byte {
	before, had := f.Image(from)
	after, has := f.Image(to)
	if !has || had && bytes.Equal(before, after) {
		return nil
	}
	var b bytes.Buffer
	a, z := quoted("a/"+f.Path), quoted("b/"+f.Path)
	fmt.Fprintf(&b, "diff --git %s %s\n", a, z)
	if !had {
		a = "/dev/null"
		b.WriteString("new file mode 100644\n")
		if len(after) == 0 {
			return b.Bytes()
		}
	}
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", a, z)
	old, now := splitLines(before), splitLines(after)
	writeHunks(&b, old, now, f.blocks(from, to, old, now))
	return b.Bytes()
}

// block replaces the lines [a, b) of one image with the lines [c, d) of another.
type block struct{ a, b, c, d int }

// blocks lists the lines that the edits of the members [from, to) change.
func (f *FilePlan) blocks(from, to int, old, now []string) []block {
	if len(old) == 0 || len(now) == 0 {
		return []block{{0, len(old), 0, len(now)}}
	}
	starts, ends := offsets(old), offsets(now)
	var all []block
	shift, grow := 0, 0 // from pristine to old, and from old to now
	for _, s := range f.splices {
		delta := len(s.text) - (s.end - s.start)
		switch m := s.edit.Member; {
		case m < from:
			shift += delta
		case m < to:
			end := s.end + shift + grow + delta
			k := block{
				a: lineAt(starts, old, s.start+shift), b: lineAt(starts, old, s.end+shift),
				c: lineAt(ends, now, s.start+shift+grow), d: lineAt(ends, now, end),
			}
			if k.b < len(old) { // the line after an insertion, or the rest of the last one
				k.b, k.d = k.b+1, min(k.d+1, len(now))
			} else if end > ends[k.d] {
				k.d++
			}
			grow += delta
			if n := len(all); n > 0 && k.a < all[n-1].b {
				all[n-1].b, all[n-1].d = max(all[n-1].b, k.b), max(all[n-1].d, k.d)
			} else {
				all = append(all, k)
			}
		}
	}
	trimmed := all[:0]
	for _, k := range all {
		for k.b > k.a && k.d > k.c && old[k.b-1] == now[k.d-1] {
			k.b, k.d = k.b-1, k.d-1
		}
		for k.b > k.a && k.d > k.c && old[k.a] == now[k.c] {
			k.a, k.c = k.a+1, k.c+1
		}
		if k.b > k.a || k.d > k.c {
			trimmed = append(trimmed, k)
		}
	}
	return trimmed
}

const contextLines = 3 // lines around a change

func writeHunks(b *bytes.Buffer, old, now []string, blocks []block) {
	for i := 0; i < len(blocks); {
		j := i + 1
		for j < len(blocks) && blocks[j].a-blocks[j-1].b <= 2*contextLines {
			j++
		}
		first, last := blocks[i], blocks[j-1]
		a, z := max(first.a-contextLines, 0), min(last.b+contextLines, len(old))
		c := first.c - (first.a - a)
		d := last.d + (z - last.b)
		fmt.Fprintf(b, "@@ -%s +%s @@\n", lineRange(a, z), lineRange(c, d))
		at := a
		for _, k := range blocks[i:j] {
			writeLines(b, ' ', old[at:k.a])
			writeLines(b, '-', old[k.a:k.b])
			writeLines(b, '+', now[k.c:k.d])
			at = k.b
		}
		writeLines(b, ' ', old[at:z])
		i = j
	}
}

// lineRange is the range of 0-based lines [a, b) as unified diff writes it.
func lineRange(a, b int) string {
	switch b - a {
	case 0:
		return fmt.Sprintf("%d,0", a)
	case 1:
		return fmt.Sprint(a + 1)
	}
	return fmt.Sprintf("%d,%d", a+1, b-a)
}

func writeLines(b *bytes.Buffer, mark byte, lines []string) {
	for _, l := range lines {
		b.WriteByte(mark)
		b.WriteString(l)
		if l[len(l)-1] != '\n' {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

// splitLines splits after each newline; the last line may lack one.
func splitLines(data []byte) []string {
	var lines []string
	for len(data) > 0 {
		n := bytes.IndexByte(data, '\n') + 1
		if n == 0 {
			n = len(data)
		}
		lines = append(lines, string(data[:n]))
		data = data[n:]
	}
	return lines
}

func offsets(lines []string) []int {
	at, all := 0, make([]int, 0, len(lines)+1)
	for _, l := range lines {
		all = append(all, at)
		at += len(l)
	}
	return append(all, at)
}

// lineAt is the line that holds the byte at off. The end of the file belongs to
// a last line without a newline, else to the line that would follow.
func lineAt(offsets []int, lines []string, off int) int {
	n := sort.SearchInts(offsets, off+1) - 1
	if last := len(lines) - 1; n > last && last >= 0 && !strings.HasSuffix(lines[last], "\n") {
		return last
	}
	return n
}

// quoted is a path as git writes it in a diff header.
func quoted(p string) string {
	plain := true
	for i := 0; i < len(p); i++ {
		plain = plain && p[i] >= 0x20 && p[i] < 0x7f && p[i] != '"' && p[i] != '\\'
	}
	if plain {
		return p
	}
	var b bytes.Buffer
	b.WriteByte('"')
	for i := 0; i < len(p); i++ {
		switch c := p[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < 0x20 || c >= 0x7f:
			fmt.Fprintf(&b, "\\%03o", c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// AddDiff is the diff of a file that is added as a whole: Path and Post.
func (f *FilePlan) AddDiff() []byte {
	whole := FilePlan{Path: f.Path, Post: f.Post, New: true,
		splices: []splice{{text: f.Post, edit: &Edit{}}}}
	return whole.diff(0, 1)
}
