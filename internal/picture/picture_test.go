package picture

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"dot4fa/internal/check"
	"dot4fa/internal/series"
	"dot4fa/internal/syntax"
)

// nasty is text that breaks a document where it is not escaped.
const nasty = `<b> & "q" 'a' ]]> ` + "\x01\xff"

func commits() []check.Commit {
	edits := func(s series.Status) []series.Result {
		return []series.Result{{ID: "a", File: "f.h", Place: "enum x ▸ " + nasty, Status: series.OK}, {ID: "b", File: "f.c", Status: s, Detail: nasty, MovedBy: nasty}}
	}
	return []check.Commit{
		{Ref: "b1", OK: true, Edits: edits(series.OK), Units: []syntax.Unit{{File: "u.c", Status: syntax.OK}}},
		{Ref: "b2" + nasty, Edits: edits(series.Gone)},
		{Ref: "b3", OK: true, Edits: edits(series.Skipped), Units: []syntax.Unit{{File: "u.c", Status: syntax.Failed, Detail: nasty}}},
	}
}

// wellFormed parses data as XML and returns how often each element is there and all text.
func wellFormed(t *testing.T, data []byte) (map[string]int, string) {
	t.Helper()
	count, text := map[string]int{}, ""
	d := xml.NewDecoder(bytes.NewReader(data))
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return count, text
		}
		if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
		switch tok := tok.(type) {
		case xml.StartElement:
			count[tok.Name.Local]++
		case xml.CharData:
			text += string(tok)
		}
	}
}

func TestSVG(t *testing.T) {
	svg := SVG(commits())
	count, text := wellFormed(t, svg)
	// the background, six cells of edits, two of units, and the legend
	if want := 1 + 6 + 2 + len(colors); count["rect"] != want {
		t.Errorf("%d rectangles, want %d", count["rect"], want)
	}
	for _, want := range []string{"a on b1: ok", `: gone <b> & "q" 'a' ]]>`, "b on b3: skipped", "b1: 1 unit compiles", "b3: 0 units compile, 1 fail; u.c", "compiles"} {
		if !strings.Contains(text, want) {
			t.Errorf("the picture does not say %q", want)
		}
	}
	for status, n := range map[series.Status]int{series.OK: 5, series.Gone: 2, series.Skipped: 1} {
		if got := strings.Count(string(svg), `height="11" fill="`+colorOf(status)+`"`); got != n {
			t.Errorf("%d cells in the colour of %s, want %d", got, status, n)
		}
	}
}

func TestHTML(t *testing.T) {
	page := HTML(commits())
	body, found := bytes.CutPrefix(page, []byte("<!DOCTYPE html>\n"))
	if !found {
		t.Fatal("no document type")
	}
	count, text := wellFormed(t, body)
	if count["svg"] != 1 || count["tr"] != 3 {
		t.Errorf("%d pictures and %d rows, want 1 and 3", count["svg"], count["tr"])
	}
	if !strings.Contains(text, "All edits hold on 2 of 3 commits.") || !strings.Contains(text, "moved by <b>") {
		t.Errorf("the page lacks its text:\n%s", text)
	}
	if count["b"] != 0 {
		t.Error("text became markup")
	}
	good := commits()[:1]
	if strings.Contains(string(HTML(good)), "<table>") {
		t.Error("a table of failures without one")
	}
}

// TestColors: every status has a colour of its own.
func TestColors(t *testing.T) {
	seen := map[string]series.Status{}
	for _, s := range []series.Status{series.OK, series.Skipped, series.Moved, series.Ambiguous, series.Gone, series.Conflict} {
		c := colorOf(s)
		if other, taken := seen[c]; taken || c == "#000000" {
			t.Errorf("%s has the colour %s, as %s", s, c, other)
		}
		seen[c] = s
	}
}
