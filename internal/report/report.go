// Package report puts what is known of a build into one file that can be given to
// others: what the machine is, what was built, what was verified and measured. Names
// of people and places are taken out of it, and what is missing is named.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Part is one of the things that a report holds.
type Part struct {
	Name    string          `json:"name"`
	Command string          `json:"command"` // what makes it
	State   State           `json:"state"`
	Note    string          `json:"note,omitempty"` // what went wrong, or why it may not count
	Made    string          `json:"made,omitempty"` // when, where it was stored before
	Text    string          `json:"-"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// State says whether a part is there.
type State string

// The states of a part.
const (
	OK      State = "ok"
	Failed  State = "failed"  // it is there, and says that something does not hold
	Missing State = "missing" // it is not there: Command makes it
	NotFor  State = "none"    // the recipe has no such thing
)

// Report is the whole file.
type Report struct {
	Format int    `json:"format"` // 1
	Made   string `json:"made"`   // UTC
	Parts  []Part `json:"parts"`
}

// Missing lists the parts that are not there.
func (r *Report) Missing() []Part {
	var out []Part
	for _, p := range r.Parts {
		if p.State == Missing {
			out = append(out, p)
		}
	}
	return out
}

// Markdown writes the report as a page: a table of its parts, each part as the
// command prints it, and all of it as JSON at the end.
func (r *Report) Markdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# dot4fa report\n\nMade %s. Names of people, of this machine and of its directories were taken out.\n\n", r.Made)
	b.WriteString("| part | state | command | remark |\n|---|---|---|---|\n")
	for _, p := range r.Parts {
		note := p.Note
		if p.Made != "" {
			note = strings.TrimSpace("made " + p.Made + " " + note)
		}
		fmt.Fprintf(&b, "| %s | %s | `%s` | %s |\n", p.Name, p.State, p.Command, cell(note))
	}
	for _, p := range r.Parts {
		fmt.Fprintf(&b, "\n## %s\n\n", p.Name)
		if p.State == NotFor {
			fmt.Fprintf(&b, "None: %s.\n", p.Note)
			continue
		}
		if p.State == Missing {
			fmt.Fprintf(&b, "Missing: %s. `%s` makes it.\n", orWord(p.Note, "it has not been run"), p.Command)
			continue
		}
		fence := "```"
		for strings.Contains(p.Text, fence) {
			fence += "`"
		}
		fmt.Fprintf(&b, "%s\n%s\n%s\n", fence, strings.TrimRight(p.Text, "\n"), fence)
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	fmt.Fprintf(&b, "\n<details><summary>as JSON</summary>\n\n```json\n%s\n```\n\n</details>\n", data)
	_, err = io.WriteString(w, b.String())
	return err
}

// cell makes text fit for a cell of a table.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(s)
}

func orWord(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return strings.TrimRight(s, ".")
}
