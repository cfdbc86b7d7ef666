// Package picture draws where the edits hold: a row for each edit, a column for
// each commit, a colour for each status. The cells say more when pointed at.
package picture

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"

	"dot4fa/internal/check"
	"dot4fa/internal/series"
	"dot4fa/internal/syntax"
)

// colors tell the statuses apart for the colour-blind too: they differ in lightness.
var colors = []struct {
	status series.Status
	color  string
}{
	{series.OK, "#7fc97f"}, {series.Skipped, "#d9d9d9"}, {series.Moved, "#e6a817"},
	{series.Ambiguous, "#8073ac"}, {series.Gone, "#b2182b"}, {series.Conflict, "#2d004b"},
}

func colorOf(s series.Status) string {
	for _, c := range colors {
		if c.status == s {
			return c.color
		}
	}
	return "#000000"
}

const (
	cell   = 12 // pixels
	left   = 130
	top    = 70
	bottom = 34
)

// SVG draws commits, which all have the same edits in the same order, as a
// stand-alone image. A last row shows whether the units compile, where they were compiled.
func SVG(commits []check.Commit) []byte {
	var edits []series.Result
	compiled := false
	for _, c := range commits {
		if len(c.Edits) > len(edits) {
			edits = c.Edits
		}
		compiled = compiled || c.Units != nil
	}
	rows := len(edits)
	if compiled {
		rows++
	}
	width, height := max(left+len(commits)*cell+10, 560), top+rows*cell+bottom
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="9">`+"\n", width, height, width, height)
	b.WriteString(`<rect width="100%" height="100%" fill="#ffffff"/>` + "\n")
	for i, e := range edits {
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s<title>%s</title></text>`+"\n", left-4, top+i*cell+9, escaped(e.ID), escaped(e.File+" · "+e.Place))
	}
	if compiled {
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end" font-weight="bold">compiles</text>`+"\n", left-4, top+len(edits)*cell+9)
	}
	for x, c := range commits {
		at := left + x*cell
		fmt.Fprintf(&b, `<text transform="translate(%d %d) rotate(-60)">%s</text>`+"\n", at+cell-3, top-4, escaped(short(c.Ref)))
		for y, e := range c.Edits {
			square(&b, at, top+y*cell, colorOf(e.Status), fmt.Sprintf("%s on %s: %s %s", e.ID, c.Ref, e.Status, e.Detail))
		}
		if c.Units != nil {
			color, what := colorOf(series.OK), syntax.Summary(c.Units)
			for _, u := range syntax.Bad(c.Units) {
				color = colorOf(series.Gone)
				what += "; " + u.File
			}
			square(&b, at, top+len(edits)*cell, color, c.Ref+": "+what)
		}
	}
	x := left
	for _, s := range colors {
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="10" height="10" fill="%s"/><text x="%d" y="%d">%s</text>`+"\n", x, height-20, s.color, x+14, height-11, s.status)
		x += 70
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func square(b *bytes.Buffer, x, y int, color, title string) {
	fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s"><title>%s</title></rect>`+"\n", x, y, cell-1, cell-1, color, escaped(title))
}

// HTML is a page with the picture and, below, what failed where.
func HTML(commits []check.Commit) []byte {
	good, failures := 0, 0
	var list bytes.Buffer
	for _, c := range commits {
		if c.OK {
			good++
		}
		for _, e := range c.Failed() {
			failures++
			text := e.Detail
			if e.MovedBy != "" {
				text += "; moved by " + e.MovedBy
			}
			fmt.Fprintf(&list, "<tr><td>%s</td><td>%s</td><td>%s</td><td>%s</td><td>%s</td></tr>\n", escaped(c.Ref), escaped(e.ID), escaped(string(e.Status)), escaped(e.File), escaped(text))
		}
		for _, u := range syntax.Bad(c.Units) {
			failures++
			fmt.Fprintf(&list, "<tr><td>%s</td><td>%s</td><td>does not compile</td><td>%s</td><td>%s</td></tr>\n", escaped(c.Ref), escaped(strings.Join(u.Edits, " ")), escaped(u.File), escaped(u.Detail))
		}
	}
	var b bytes.Buffer
	b.WriteString("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n<title>dot4fa check</title>\n")
	b.WriteString("<style>body{font-family:sans-serif;margin:2em}table{border-collapse:collapse;font-size:small}td,th{border:1px solid #ccc;padding:2px 6px;text-align:left}</style>\n</head>\n<body>\n")
	fmt.Fprintf(&b, "<h1>dot4fa check</h1>\n<p>All edits hold on %d of %d commits.</p>\n", good, len(commits))
	b.Write(SVG(commits))
	if failures > 0 {
		b.WriteString("<table>\n<tr><th>commit</th><th>edit</th><th>status</th><th>file</th><th>found</th></tr>\n")
		b.Write(list.Bytes())
		b.WriteString("</table>\n")
	}
	b.WriteString("</body>\n</html>\n")
	return b.Bytes()
}

func short(ref string) string { return ref[:min(len(ref), 10)] }

func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a strings.Builder does not fail
	return b.String()
}
