package series

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dot4fa/internal/fault"
)

func TestCheck(t *testing.T) {
	const src = "enum op {\n  A,\n  COUNT,\n};\nvoid f() {\n  x;\n}\nvoid g(int n) {\n  x;\n  y; y;\n}\n"
	for _, c := range []struct {
		name, edit string
		status     Status
		detail     string
		near       string // text of the first candidate
	}{
		{"ok", "scope: f, anchor: x, do: replace, text: z", OK, "", ""},
		{"allowed not to match", "scope: f, anchor: q, count: 0..1, do: replace, text: z", OK, "no match, as allowed by count 0..1", ""},
		{"in another scope", "scope: f, anchor: 'y;', do: replace, text: z", Moved, "0 matches in f instead of 1, but the file has it at line 10", "x;"},
		{"too often", "anchor: x, do: replace, text: z", Ambiguous, "2 matches in the file instead of 1, at line 6, 9", "x"},
		{"too seldom", "anchor: x, count: 3, do: replace, text: z", Gone, "2 matches in the file instead of 3", "x"},
		{"nowhere", "scope: enum op, anchor: COUNTER, do: insert_before, text: z", Gone, "0 matches in enum op instead of 1", "COUNT"},
		{"scope renamed", "scope: ff, anchor: COUNT, do: replace, text: z", Moved, "scope ff is not in the file, but the anchor is, at line 3", ""},
		{"scope gone", "scope: enum opp, do: scope_end, text: z", Gone, "scope enum opp is not in the file", "enum op"},
		{"other overload", "scope: g(long n), do: scope_end, text: z", Gone, "scope g(long n) is not in the file", "g(int n)"},
		{"scope elsewhere", "scope: [f, enum op], do: scope_end, text: z", Moved, "scope enum op is not in f", "enum op"},
		{"file gone", "file: h, do: append, text: z", Gone, "the file is not in the tree", ""},
		{"no integer", "anchor: COUNT, do: bump_counter", Moved, "0 matches in the file instead of 1, but the file has it at line 3", "COUNT"},
		{"no place for a line", "scope: g, anchor: 'y; y', do: insert_before, text: z", OK, "", ""},
		{"probe has", "do: append, text: z, probe: {file: p, has: Q}", Skipped, "p has no Q", ""},
		{"probe lacks", "do: append, text: z, probe: {file: f, lacks: COUNT}", Skipped, "f has COUNT", ""},
		{"two probes", "do: append, text: z, probe: [{file: f, has: COUNT}, {file: p, lacks: COUNT}]", OK, "", ""},
		{"two probes, one against it", "do: append, text: z, probe: [{file: f, has: COUNT}, {file: f, lacks: COUNT}]", Skipped, "f has COUNT", ""},
		{"probe lacks in no file", "do: append, text: z, probe: {file: p, lacks: COUNT}", OK, "", ""},
		{"probe does not see comments", "do: append, text: z, probe: {file: c, lacks: COUNT}", OK, "", ""},
		{"since", "do: append, text: z, since: aaaaaaaa", OK, "", ""},
		{"since later", "do: append, text: z, since: bbbbbbbb", Skipped, "the tree is older than bbbbbbbb", ""},
		{"until", "do: append, text: z, until: aaaaaaaa", Skipped, "the tree contains aaaaaaaa", ""},
		{"until later", "do: append, text: z, until: bbbbbbbb", OK, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			edit := c.edit
			if !strings.Contains(edit, "file: h") {
				edit = "file: f, " + edit
			}
			s := mustLoad(t, "  - {id: e, why: w, "+edit+"}\n")
			s.Hooks.Contains = func(commit string) (bool, error) { return commit == "aaaaaaaa", nil }
			rs, err := s.Check(files{"f": src, "c": "// COUNT\n"}.read)
			if err != nil {
				t.Fatal(err)
			}
			r := rs[0]
			if r.Status != c.status || r.Detail != c.detail {
				t.Errorf("%s: %s, want %s: %s", r.Status, r.Detail, c.status, c.detail)
			}
			if len(r.Candidates) > 3 {
				t.Errorf("%d candidates", len(r.Candidates))
			}
			if c.near != "" && (len(r.Candidates) == 0 || r.Candidates[0].Text != c.near) {
				t.Errorf("candidates %+v, want %s first", r.Candidates, c.near)
			}
			if r.Failed() != (c.status != OK && c.status != Skipped) {
				t.Error("Failed disagrees with the status")
			}
		})
	}
}

func TestBracesDoNotPair(t *testing.T) {
	s := mustLoad(t, "  - {id: a, file: f, scope: g, do: scope_end, text: x, why: y}\n")
	r, err := s.Check(files{"f": "int a;\nvoid g() {\n  if (a) {\n}\n"}.read)
	want := "scope g is not in the file; the braces of the file do not pair from line 2 on"
	if err != nil || r[0].Status != Gone || r[0].Detail != want {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestReport(t *testing.T) {
	s := mustLoad(t, `
  - {id: h.op, file: f.h, why: w, scope: enum op, anchor: COUNT, do: insert_before, text: x}
  - {id: fine, file: f.h, why: w, do: append, text: x}
  - {id: c.fa, file: f.c, why: w, anchor: x, do: replace, text: y}
`)
	s.Hooks.MovedBy = func(file, anchor string) string {
		if file == "f.h" {
			return "0123abcd rename " + anchor
		}
		return ""
	}
	s.Hooks.Next = func(r Result) string { return "dot4fa explain " + r.ID }
	_, err := s.Plan(files{"f.h": "enum op {\n  A,\n  N_COUNT,\n};\n"}.read, nil)
	want := `patches/010-a.yaml:6:5: 2 of 3 edits do not apply
  h.op (010-a.yaml): gone
    file   f.h
    place  enum op ▸ COUNT
    found  0 matches in enum op instead of 1
    near   f.h:3   80%  N_COUNT
    moved  0123abcd rename COUNT
    next   dot4fa explain h.op
  c.fa (010-a.yaml): gone
    file   f.c
    place  x
    found  the file is not in the tree
    next   dot4fa explain c.fa`
	if d := cmp.Diff(want, err.Error()); d != "" {
		t.Error(d)
	}
	if fault.Code(err) != fault.EditFails || !strings.Contains(fault.Hint(err), "patches/010-a.yaml") {
		t.Errorf("exit code %d, hint %q", fault.Code(err), fault.Hint(err))
	}
	var r *Report
	if !errors.As(err, &r) || len(r.Failed) != 2 || r.Total != 3 {
		t.Errorf("%+v", r)
	}
}

func TestHistoryNeeded(t *testing.T) {
	s := mustLoad(t, "  - {id: a, file: f, do: append, text: x, why: y, since: aaaaaaaa}\n")
	if _, err := s.Check(files{"f": ""}.read); fault.Code(err) != fault.Usage || fault.Hint(err) == "" {
		t.Errorf("error %v", err)
	}
	broken := errors.New("shallow")
	s.Hooks.Contains = func(string) (bool, error) { return false, broken }
	if _, err := s.Check(files{"f": ""}.read); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}
