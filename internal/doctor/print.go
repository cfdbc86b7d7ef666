package doctor

import (
	"fmt"
	"io"
	"strings"

	"dot4fa/internal/finding"
)

// Text is laid out for one screen: a line for each check, and under it, indented,
// what to do.
const (
	width  = 110 // of a line; a path that is longer stays whole
	indent = 24  // where what was seen begins
)

// Print writes the report as text. color marks what is not ok.
func (r *Report) Print(w io.Writer, color bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "recipe %s", r.Recipe)
	if len(r.GPUTargets) > 0 {
		fmt.Fprintf(&b, ", for %s", strings.Join(r.GPUTargets, ", "))
	}
	b.WriteString("\n\n")
	for _, f := range r.Findings {
		status := fmt.Sprintf("%-4s", f.Status)
		if f.Status == finding.Fail {
			status = "FAIL"
		}
		if color {
			status = paint(f.Status, status)
		}
		fmt.Fprintf(&b, "%s  %-16s  %s\n", status, f.Check, wrapped(f.Evidence))
		for i, m := range f.Mend {
			word := "mend"
			if i > 0 {
				word = "or"
			}
			fmt.Fprintf(&b, "%*s  %s\n", indent-2, word, wrapped(m))
		}
	}
	fmt.Fprintf(&b, "\n%d failed, %d to note, %d ok\n", r.Findings.Count(finding.Fail), r.Findings.Count(finding.Warn), r.Findings.Count(finding.OK))
	_, err := io.WriteString(w, b.String())
	return err
}

// wrapped breaks text between words so that it stands in a column.
func wrapped(text string) string {
	var b strings.Builder
	at := indent
	for i, word := range strings.Fields(text) {
		n := len([]rune(word))
		switch {
		case i == 0:
		case at+1+n > width:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += n
	}
	return b.String()
}

func paint(s finding.Status, text string) string {
	switch s {
	case finding.Fail:
		return "\x1b[1;31m" + text + "\x1b[0m"
	case finding.Warn:
		return "\x1b[33m" + text + "\x1b[0m"
	}
	return text
}
