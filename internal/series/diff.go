package series

import (
	"bytes"
	"fmt"

	"github.com/rogpeppe/go-internal/diff"
)

// Diff is the whole plan as one unified diff in git's form.
func (p *Plan) Diff() []byte {
	var b bytes.Buffer
	for _, f := range p.Files {
		b.Write(f.diff(f.Pre, !f.New, f.Post))
	}
	return b.Bytes()
}

// MemberDiff is what member n of the series changes, counted from 0, as a
// unified diff between the tree with the members before it and the tree with it.
func (p *Plan) MemberDiff(n int) []byte {
	var b bytes.Buffer
	for i := range p.Files {
		f := &p.Files[i]
		after, ok := f.Image(n + 1)
		if !ok {
			continue
		}
		before, had := f.Image(n)
		b.Write(f.diff(before, had, after))
	}
	return b.Bytes()
}

func (f *FilePlan) diff(before []byte, had bool, after []byte) []byte {
	if had && bytes.Equal(before, after) {
		return nil
	}
	var b bytes.Buffer
	old, now := "a/"+f.Path, "b/"+f.Path
	fmt.Fprintf(&b, "diff --git %s %s\n", quoted(old), quoted(now))
	from := quoted(old)
	if !had {
		from = "/dev/null"
		b.WriteString("new file mode 100644\n")
	}
	body := diff.Diff("old", before, "new", after)
	// The first three lines are the header of package diff.
	for range 3 {
		_, body, _ = bytes.Cut(body, []byte("\n"))
	}
	if len(body) > 0 {
		fmt.Fprintf(&b, "--- %s\n+++ %s\n", from, quoted(now))
		b.Write(body)
	}
	return b.Bytes()
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

// Origin says where a line of an edited file comes from.
type Origin struct {
	ID     string `json:"id"`
	Member string `json:"member"`
	Title  string `json:"title"`
	Why    string `json:"why"`
	Where  string `json:"where"` // file:line:col of the edit
	Place  string `json:"place"`
	First  int    `json:"first"` // lines of the edited file that it produced
	Last   int    `json:"last"`
}

// Explain says which edits produced a 1-based line of an edited file. It answers
// nothing for a line of upstream's own.
func (p *Plan) Explain(path string, line int) []Origin {
	f := p.File(path)
	if f == nil {
		return nil
	}
	var found []Origin
	at, out := 0, 0
	lineOf := func(off int) int { return bytes.Count(f.Post[:off], []byte("\n")) + 1 }
	for _, s := range f.splices {
		out += s.start - at
		at = s.end
		begin := out
		out += len(s.text)
		if len(s.text) == 0 {
			continue
		}
		last := out - 1
		first := begin
		if s.text[0] == '\n' || bytes.HasPrefix(s.text, []byte("\r\n")) {
			first += bytes.IndexByte(s.text, '\n') + 1 // the end of the line before
		}
		o := Origin{ID: s.edit.ID, Member: p.Members[s.edit.Member].File, Title: p.Members[s.edit.Member].Title,
			Why: s.edit.Why, Where: s.edit.Where, Place: s.edit.Place(), First: lineOf(min(first, last)), Last: lineOf(last)}
		if o.First <= line && line <= o.Last {
			found = append(found, o)
		}
	}
	return found
}
