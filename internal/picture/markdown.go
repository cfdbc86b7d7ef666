package picture

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"dot4fa/internal/check"
	"dot4fa/internal/fault"
	"dot4fa/internal/input"
	"dot4fa/internal/output"
	"dot4fa/internal/series"
	"dot4fa/internal/syntax"
)

// Markdown is a report of tables: how many commits hold and compile, how that
// changes from commit to commit, which guarded edits are made where, and what
// fails. commits are in order, and all have the same edits.
func Markdown(commits []check.Commit) []byte {
	var b bytes.Buffer
	held, compiled, good := 0, 0, 0
	var units, cached, unknown int
	var seconds float64
	for _, c := range commits {
		if c.OK {
			held++
		}
		if c.Units == nil {
			continue
		}
		if compiled++; len(syntax.Bad(c.Units)) == 0 {
			good++
		}
		for _, u := range c.Units {
			switch {
			case u.Status == syntax.NotChecked:
				unknown++
			case u.Cached:
				units, cached = units+1, cached+1
			default:
				units++
				seconds += u.Seconds
			}
		}
	}
	fmt.Fprintf(&b, "| | |\n|---|---|\n| commits | %d, %s |\n| all edits hold | %s |\n", len(commits), span(commits), share(held, len(commits)))
	if compiled > 0 {
		fmt.Fprintf(&b, "| every unit that was checked compiles | %s |\n| units judged | %d: %d by a compiler (%.0f s of its time), %d from earlier verdicts on the same content; %d could not be checked |\n",
			share(good, compiled), units, units-cached, seconds, cached, unknown)
	}
	b.WriteString("\n| from | to | commits | edits | units |\n|---|---|---|---|---|\n")
	for _, run := range runs(commits, func(c check.Commit) string { return counted(c.Edits) + "|" + unitsText(c.Units) }) {
		first, last := run[0], run[len(run)-1]
		fmt.Fprintf(&b, "| %s | %s | %d | %s | %s |\n", day(first), day(last), len(run), counted(first.Edits), unitsText(first.Units))
	}
	guards(&b, commits)
	failures(&b, commits)
	return b.Bytes()
}

// runs cuts commits where text changes.
func runs(commits []check.Commit, text func(check.Commit) string) [][]check.Commit {
	var out [][]check.Commit
	for i, c := range commits {
		if i > 0 && text(c) == text(commits[i-1]) {
			out[len(out)-1] = append(out[len(out)-1], c)
		} else {
			out = append(out, []check.Commit{c})
		}
	}
	return out
}

// guards lists every edit that is made on some commits and skipped on others.
func guards(b *bytes.Buffer, commits []check.Commit) {
	if len(commits) == 0 {
		return
	}
	head := "\n| guarded edit | file | made on | skipped on, because |\n|---|---|---|---|\n"
	for i, e := range commits[0].Edits {
		var made, skipped []string
		for _, run := range runs(commits, func(c check.Commit) string {
			if r := c.Edits[i]; r.Status == series.Skipped {
				return r.Detail
			}
			return ""
		}) {
			if r := run[0].Edits[i]; r.Status == series.Skipped {
				skipped = append(skipped, span(run)+": "+code(r.Detail))
			} else {
				made = append(made, span(run))
			}
		}
		if skipped != nil {
			fmt.Fprintf(b, "%s| %s | %s | %s | %s |\n", head, e.ID, e.File, orNone(made), strings.Join(skipped, "; "))
			head = ""
		}
	}
}

// failures lists the edits and units that fail, and the units nobody could judge, each with where.
func failures(b *bytes.Buffer, commits []check.Commit) {
	type key struct{ what, how string }
	var order []key
	where := map[key][]check.Commit{}
	detail := map[key]string{}
	add := func(k key, c check.Commit, text string) {
		if where[k] == nil {
			order = append(order, k)
			detail[k] = text
		}
		where[k] = append(where[k], c)
	}
	for _, c := range commits {
		for _, e := range c.Failed() {
			text := e.Detail
			if e.MovedBy != "" {
				text += "; " + e.MovedBy
			}
			add(key{e.ID, string(e.Status)}, c, text)
		}
		for _, u := range c.Units {
			switch u.Status {
			case syntax.Failed:
				add(key{u.File, "does not compile"}, c, u.Detail)
			case syntax.NotChecked:
				add(key{u.File, string(u.Status)}, c, u.Detail)
			}
		}
	}
	if order == nil {
		return
	}
	b.WriteString("\n| edit or unit | | where | found |\n|---|---|---|---|\n")
	for _, k := range order {
		line, _, _ := strings.Cut(detail[k], "\n")
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", k.what, k.how, span(where[k]), code(line))
	}
}

func span(list []check.Commit) string {
	switch len(list) {
	case 0:
		return "none"
	case 1:
		return day(list[0])
	}
	return fmt.Sprintf("%s to %s (%d)", day(list[0]), day(list[len(list)-1]), len(list))
}

func day(c check.Commit) string {
	date, _, _ := strings.Cut(c.Date, "T")
	return strings.TrimSpace(short(c.Ref) + " " + date)
}

func share(n, of int) string {
	return fmt.Sprintf("%d of %d (%.0f %%)", n, of, 100*float64(n)/float64(max(of, 1)))
}

// counted says how many edits have each status, and which fail.
func counted(edits []series.Result) string {
	n := map[series.Status]int{}
	var ids []string
	for _, e := range edits {
		n[e.Status]++
		if e.Failed() {
			ids = append(ids, e.ID)
		}
	}
	text := fmt.Sprintf("%d ok", n[series.OK])
	if n[series.Skipped] > 0 {
		text += fmt.Sprintf(", %d skipped", n[series.Skipped])
	}
	if ids != nil {
		text += ", failing: " + strings.Join(ids, " ")
	}
	return text
}

func unitsText(units []syntax.Unit) string {
	if units == nil {
		return "not compiled"
	}
	text := syntax.Summary(units)
	for _, u := range syntax.Bad(units) {
		text += " " + u.File
	}
	return text
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + strings.NewReplacer("|", "\\|", "`", "'", "\n", " ").Replace(text) + "`"
}

func orNone(list []string) string {
	if list == nil {
		return "none"
	}
	return strings.Join(list, "; ")
}

// The lines between which WriteMarkdown writes.
const (
	Begin = "<!-- made by dot4fa check --md -->\n"
	End   = "<!-- end of what dot4fa check --md made -->\n"
)

// WriteMarkdown writes a report to a file: between the lines Begin and End
// when it has them, with these around it when there is no such file yet. A file
// without them is not touched.
func WriteMarkdown(name string, report []byte) error {
	old, err := input.Read(name, "name a file, of which the part between the marks is written anew")
	if errors.Is(err, fs.ErrNotExist) {
		return output.Write(name, slices.Concat([]byte(Begin), report, []byte(End)), 0o666)
	}
	if err != nil {
		return err
	}
	head, rest, hasBegin := bytes.Cut(old, []byte(Begin))
	_, tail, hasEnd := bytes.Cut(rest, []byte(End))
	if !hasBegin || !hasEnd {
		return fault.New(fault.Usage, "the file is there and has no place for the report").At("%s", name).
			Hintf("name a new file, or put these two lines where it belongs: %s and %s", strings.TrimSpace(Begin), strings.TrimSpace(End))
	}
	return output.Write(name, slices.Concat(head, []byte(Begin), report, []byte(End), tail), 0o644)
}
