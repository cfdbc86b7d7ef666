// Package page writes headings, paragraphs and tables, as text for a terminal or as
// Markdown. Columns is a table by itself.
package page

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Page is what is written. Nothing is written after the first error.
type Page struct {
	w     io.Writer
	text  bool // for a terminal
	begun bool
	para  bool // the last thing written was a paragraph
	err   error
}

// Text returns a page for a terminal.
func Text(w io.Writer) *Page { return &Page{w: w, text: true} }

// Markdown returns a page in Markdown.
func Markdown(w io.Writer) *Page { return &Page{w: w} }

// Err ends the page and returns the first error of writing it.
func (p *Page) Err() error {
	p.end()
	return p.err
}

// Picture shows an image file in Markdown; on a terminal it says nothing.
func (p *Page) Picture(file string) {
	p.end()
	if !p.text {
		p.printf("![%s](%s)\n", strings.TrimSuffix(file, ".svg"), file)
	}
}

// Line writes a line of a paragraph. In Markdown it ends with a hard break.
func (p *Page) Line(format string, args ...any) {
	if !p.text && p.para {
		p.printf("  \n")
	}
	p.printf(format, args...)
	if p.text {
		p.printf("\n")
	}
	p.para = true
}

// end closes a paragraph.
func (p *Page) end() {
	if !p.text && p.para {
		p.printf("\n\n")
	}
	p.para = false
}

func (p *Page) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

// Heading begins a section; the first one is the title.
func (p *Page) Heading(text string) {
	mark := "## "
	if p.text {
		mark = ""
	} else if !p.begun {
		mark = "# "
	}
	p.end()
	if p.text && p.begun {
		p.printf("\n")
	}
	p.begun = true
	p.printf("%s%s\n", mark, text)
	if !p.text {
		p.printf("\n")
	}
}

// Table writes rows; the first one is the head.
func (p *Page) Table(rows [][]string) {
	p.end()
	if p.err != nil {
		return
	}
	if p.text {
		p.err = Columns(p.w, rows)
		return
	}
	for i, r := range rows {
		cells := make([]string, len(r))
		for j, c := range r {
			cells[j] = strings.ReplaceAll(c, "|", `\|`)
		}
		p.printf("| %s |\n", strings.Join(cells, " | "))
		if i == 0 {
			p.printf("|%s\n", strings.Repeat("---|", len(r)))
		}
	}
	p.printf("\n")
}

// Columns writes rows for a terminal, their cells in columns that are two blanks
// apart.
func Columns(w io.Writer, rows [][]string) error { return columns(w, rows, "", 0) }

// RightColumns is Columns with every cell at the right of its column, as for
// numbers.
func RightColumns(w io.Writer, rows [][]string) error {
	return columns(w, rows, "\t", tabwriter.AlignRight)
}

func columns(w io.Writer, rows [][]string, end string, flags uint) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', flags)
	for _, r := range rows {
		fmt.Fprintln(t, strings.Join(r, "\t")+end)
	}
	return t.Flush()
}
