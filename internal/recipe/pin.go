package recipe

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"dot4fa/internal/fault"
)

// RewritePin returns src, a recipe file, with upstream.commit and upstream.tag
// replaced. Every other byte stays: comments, blank lines, quotes, line ends,
// order. file is src's name in messages. It fails, and changes nothing, when src has no
// pin or writes it in a form that cannot be replaced in place (a block scalar,
// an explicit tag).
func RewritePin(file string, src []byte, commit, tag string) ([]byte, error) {
	for path, v := range map[string]string{"upstream.commit": commit, "upstream.tag": tag} {
		if why := lookup(path).check(v); why != "" {
			return nil, fault.New(fault.Usage, "%s cannot be %q", path, v).Hintf("%s", why)
		}
	}
	before, err := decode(file, src)
	if err != nil {
		return nil, err
	}
	root, err := parse(file, src)
	if err != nil {
		return nil, err
	}
	up := child(root, "upstream")
	c, t := child(up, "commit"), child(up, "tag")
	if c == nil || t == nil {
		return nil, fault.New(fault.Usage, "the recipe file has no pin").At("%s", file).
			Hintf("the pin is upstream.commit and upstream.tag; rewrite the file that has them")
	}
	// The later one first, so that the earlier one's place stays right.
	first, second, v1, v2 := c, t, commit, tag
	if c.Line > t.Line || c.Line == t.Line && c.Column > t.Column {
		first, second, v1, v2 = t, c, tag, commit
	}
	out, err := splice(file, src, second, v2)
	if err == nil {
		out, err = splice(file, out, first, v1)
	}
	if err != nil {
		return nil, err
	}
	// Read back: exactly the two values differ.
	after, err := decode(file, out)
	if err != nil {
		return nil, err
	}
	ok := len(before.items) == len(after.items)
	for p, it := range after.items {
		want := before.items[p].value
		switch p {
		case "upstream.commit":
			want = commit
		case "upstream.tag":
			want = tag
		}
		ok = ok && equal(it.value, want)
	}
	if !ok {
		return nil, inPlace(file, c)
	}
	return out, nil
}

func inPlace(file string, n *yaml.Node) error {
	return bad(Pos{file, n.Line, n.Column}, "the pin cannot be rewritten in place").
		Hintf("write commit and tag as plain or quoted words on a line of their own")
}

func equal(a, b any) bool {
	x, err1 := yaml.Marshal(a)
	y, err2 := yaml.Marshal(b)
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}

// child returns the value of a key of a mapping, nil when there is none.
func child(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// splice replaces one plain or quoted scalar in src.
func splice(file string, src []byte, n *yaml.Node, value string) ([]byte, error) {
	off, ok := offset(src, n.Line, n.Column)
	quote := ""
	switch {
	case n.Style&yaml.SingleQuotedStyle != 0:
		quote = "'"
	case n.Style&yaml.DoubleQuotedStyle != 0:
		quote = `"`
	case n.Style != 0:
		ok = false
	}
	old := quote + n.Value + quote
	if !ok || !bytes.HasPrefix(src[off:], []byte(old)) {
		return nil, inPlace(file, n)
	}
	var b bytes.Buffer
	b.Write(src[:off])
	b.WriteString(quote + value + quote)
	b.Write(src[off+len(old):])
	return b.Bytes(), nil
}

// offset turns a line and a column, both from 1 and the column in characters,
// into a byte offset.
func offset(src []byte, line, col int) (int, bool) {
	text := string(src)
	off := 0
	if strings.HasPrefix(text, "\ufeff") {
		off = len("\ufeff") // the parser does not count a byte order mark
	}
	for ; line > 1; line-- {
		i := strings.IndexAny(text[off:], "\r\n\u0085\u2028\u2029")
		if i < 0 {
			return 0, false
		}
		off += i
		switch {
		case strings.HasPrefix(text[off:], "\r\n"):
			off += 2
		case text[off] == '\r' || text[off] == '\n':
			off++
		case strings.HasPrefix(text[off:], "\u0085"):
			off += 2
		default:
			off += 3
		}
	}
	for ; col > 1; col-- {
		if off >= len(text) {
			return 0, false
		}
		_, size := utf8.DecodeRuneInString(text[off:])
		off += size
	}
	return off, true
}
