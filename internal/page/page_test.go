package page

import (
	"bytes"
	"errors"
	"testing"
)

func fill(p *Page) error {
	p.Heading("title")
	p.Line("a %d", 1)
	p.Line("b")
	p.Heading("more")
	p.Table([][]string{{"x", "y"}, {"1|2", "long"}})
	p.Picture("a.svg")
	p.Line("end")
	return p.Err()
}

func TestPage(t *testing.T) {
	for name, c := range map[string]struct {
		make func(*bytes.Buffer) *Page
		want string
	}{
		"text":     {func(b *bytes.Buffer) *Page { return Text(b) }, "title\na 1\nb\n\nmore\nx    y\n1|2  long\nend\n"},
		"markdown": {func(b *bytes.Buffer) *Page { return Markdown(b) }, "# title\n\na 1  \nb\n\n## more\n\n| x | y |\n|---|---|\n| 1\\|2 | long |\n\n![a](a.svg)\nend\n\n"},
	} {
		var b bytes.Buffer
		if err := fill(c.make(&b)); err != nil || b.String() != c.want {
			t.Errorf("%s: %v\n%q, want\n%q", name, err, b.String(), c.want)
		}
	}
}

type full struct{ left int }

func (f *full) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errors.New("full")
	}
	return len(p), nil
}

// TestError: wherever writing stops, it is reported.
func TestError(t *testing.T) {
	for n := 0; n < 35; n++ {
		if fill(Text(&full{n})) == nil || fill(Markdown(&full{n})) == nil {
			t.Fatalf("no error after %d bytes", n)
		}
	}
}
