package doctor_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"dot4fa/internal/fault"
	"dot4fa/internal/finding"
)

var update = flag.Bool("update", false, "write what doctor says into the set-ups and the table in docs/doctor.md")

const (
	screen     = 60 // lines
	lastChecks = 8  // lines that upstream and the work tree may add
)

const table = "../../docs/doctor.md"

// Every set-up: doctor says of it what it must, word for word, and the table in
// the documentation says so too.
func TestSetups(t *testing.T) {
	files, err := filepath.Glob("testdata/cases/*.txtar")
	must(t, err)
	rows := make([]row, len(files))
	t.Run("group", func(t *testing.T) { one(t, files, rows) })
	if t.Failed() {
		return
	}
	var broken, whole []row
	for _, r := range rows {
		if n := r.findings.Count(finding.OK); n == len(r.findings) {
			whole = append(whole, r)
		} else {
			broken = append(broken, r)
		}
	}
	if len(broken) < 20 || len(whole) < 5 {
		t.Errorf("%d broken and %d whole set-ups; there were 20 and 5", len(broken), len(whole))
	}
	had, err := os.ReadFile(table)
	must(t, err)
	want := document(had, whole, broken)
	if bytes.Equal(had, want) {
		return
	}
	if *update {
		must(t, os.WriteFile(table, want, 0o644))
		return
	}
	t.Errorf("the table in docs/doctor.md is not current: go test ./internal/doctor -update writes it")
}

// one examines each set-up by itself. Most of the time goes into making files.
func one(t *testing.T, files []string, rows []row) {
	for i, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			s := load(t, file)
			r := examine(s)
			got := s.said(r)
			if got != s.want && *update {
				rewrite(t, file, got)
			} else if got != s.want {
				t.Errorf("%s\ndoctor said:\n%s\nit must say:\n%s", s.title, got, s.want)
			}
			failed := r.Findings.Count(finding.Fail) > 0
			if failed != (fault.Code(r.Err()) == fault.Environment) || failed == r.OK {
				t.Errorf("with %d failures the error is %v", r.Findings.Count(finding.Fail), r.Err())
			}
			for _, f := range r.Findings {
				if f.Status == finding.Fail && !slices.ContainsFunc(f.Mend, command) {
					t.Errorf("%s failed, and no command mends it: %q", f.Check, f.Mend)
				}
			}
			if n := r.Findings.Count(finding.OK); (n == len(r.Findings)) != strings.HasPrefix(s.name, "whole-") {
				t.Errorf("%d of %d are ok, and the set-up is called %s", n, len(r.Findings), s.name)
			}
			var text bytes.Buffer
			must(t, r.Print(&text, false))
			if n := strings.Count(text.String(), "\n"); n < 5 || n+lastChecks >= screen {
				t.Errorf("the report has %d lines:\n%s", n, text.String())
			}
			rows[i] = row{s, r.Findings}
		})
	}
}

// rewrite replaces the want of a set-up.
func rewrite(t *testing.T, file, want string) {
	a, err := txtar.ParseFile(file)
	must(t, err)
	kept := a.Files[:0]
	for _, f := range a.Files {
		if f.Name != "want" {
			kept = append(kept, f)
		}
	}
	a.Files = append(kept, txtar.File{Name: "want", Data: []byte(want)})
	must(t, os.WriteFile(file, txtar.Format(a), 0o644))
}

// row is a set-up and what doctor said of it.
type row struct {
	s        *setup
	findings finding.List
}

const begin, end = "<!-- set-ups: made by go test ./internal/doctor -update -->\n", "<!-- end of the set-ups -->\n"

// document puts the table of set-ups between the marks of a page.
func document(page []byte, whole, broken []row) []byte {
	head, rest, ok := strings.Cut(string(page), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return page
	}
	var b strings.Builder
	b.WriteString(head + begin + "\n| set-up | check | what doctor says | what mends it |\n|---|---|---|---|\n")
	for _, r := range broken {
		title := r.s.title
		if r.s.source != "" {
			title = "[" + title + "](" + r.s.source + ")"
		}
		for _, f := range r.findings {
			if f.Status != finding.OK {
				b.WriteString("| " + title + " | " + string(f.Status) + ": " + f.Check + " | " + cell(f.Evidence) + " | " + code(f.Mend) + " |\n")
				title = ""
			}
		}
	}
	b.WriteString("\nNothing to say of these, which are as they should be:\n\n")
	for _, r := range whole {
		b.WriteString("- " + r.s.title + "\n")
	}
	b.WriteString("\n" + end + tail)
	return []byte(b.String())
}

func cell(s string) string { return strings.NewReplacer("|", `\|`, "*", `\*`, "_", `\_`).Replace(s) }

// command reports whether a mend can be typed as it stands.
func command(mend string) bool {
	switch word, _, _ := strings.Cut(mend, " "); word {
	case "sudo", "export", "unset", "dot4fa", "python", "docker", "podman", "printf", "newgrp", "git":
		return true
	case "install", "add": // what the distribution's package manager has no common command for
		return !strings.Contains(mend, "ROCm") && !strings.Contains(mend, "CUDA")
	}
	return false
}

func code(mends []string) string {
	var out []string
	for _, m := range mends {
		if m = strings.ReplaceAll(m, "|", `\|`); command(m) {
			m = "`" + m + "`"
		}
		out = append(out, m)
	}
	return strings.Join(out, "<br>or ")
}
