package pipeline

import (
	"bytes"
	"context"
	"path/filepath"
	"strconv"
	"strings"

	"dot4fa/internal/fault"
	"dot4fa/internal/nearest"
	"dot4fa/internal/render"
	"dot4fa/internal/series"
)

// Explanation is why something is in the tree.
type Explanation struct {
	File    string      `json:"file"`
	Line    int         `json:"line,omitempty"`   // of the edited file
	Text    string      `json:"text,omitempty"`   // of that line
	Source  string      `json:"source,omitempty"` // for a rendered file: what it is made from
	Edits   []Explained `json:"edits,omitempty"`
	Subject string      `json:"subject"` // in words: what the answer is about
}

// Explained is one edit with its reasons.
type Explained struct {
	ID         string        `json:"id"`
	Where      string        `json:"where"` // file:line:col in the series
	Member     string        `json:"member"`
	Title      string        `json:"title"`
	File       string        `json:"file"`
	Place      string        `json:"place"`
	Do         string        `json:"do"`
	Status     series.Status `json:"status"`
	Detail     string        `json:"detail,omitempty"`
	Lines      []int         `json:"lines,omitempty"` // of upstream's file
	Why        string        `json:"why"`
	MemberWhy  string        `json:"member_why"`
	RemoveWhen string        `json:"remove_when"`
}

// Explain answers for an edit's id, a file of the tree, or FILE:LINE in the
// edited file.
func (r *Run) Explain(ctx context.Context, what string) (*Explanation, error) {
	edits, err := r.Series()
	if err != nil {
		return nil, err
	}
	s, err := r.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	results, err := edits.Check(s.ReadFile) // an edit that does not apply can be explained too
	if err != nil {
		return nil, err
	}
	all := map[string]Explained{}
	var ids, order []string
	for i, e := range edits.Edits() {
		m := edits.Members[e.Member]
		all[e.ID] = Explained{ID: e.ID, Where: e.Where, Member: m.File, Title: m.Title, File: e.File, Place: e.Place(), Do: string(e.Do),
			Status: results[i].Status, Detail: results[i].Detail, Lines: results[i].Lines,
			Why: e.Why, MemberWhy: m.Why, RemoveWhen: m.RemoveWhen}
		order = append(order, e.ID)
	}
	ids = append(ids, order...)
	if e, ok := all[what]; ok {
		return &Explanation{File: e.File, Edits: []Explained{e}, Subject: "edit " + e.ID}, nil
	}

	file, line := r.inTree(what)
	if line > 0 {
		return r.explainLine(ctx, file, line, all)
	}
	x := &Explanation{File: file, Subject: file}
	for _, id := range order {
		if all[id].File == file {
			x.Edits = append(x.Edits, all[id])
		}
		ids = append(ids, all[id].File)
	}
	if f, err := r.renderedFile(ctx, file); err != nil {
		return nil, err
	} else if f != nil {
		x.Source = f.Source
		return x, nil
	}
	if x.Edits != nil {
		return x, nil
	}
	if has(s)(file) {
		return nil, fault.New(fault.Usage, "dot4fa does not touch %s", file).Hintf("`%s` lists the edits with their files", r.Command("check"))
	}
	hint := ""
	if near := nearest.Hint(what, ids); near != "" {
		hint = near + "? "
	}
	return nil, fault.New(fault.Usage, "there is no edit, file or FILE:LINE called %s", what).
		Hintf("%s`%s` lists the edits with their files", hint, r.Command("check"))
}

// inTree splits FILE:LINE and makes a path below the work tree relative to it.
func (r *Run) inTree(what string) (file string, line int) {
	file = filepath.ToSlash(what)
	if i := strings.LastIndexByte(file, ':'); i > 0 {
		if n, err := strconv.Atoi(file[i+1:]); err == nil && n > 0 {
			file, line = file[:i], n
		}
	}
	if abs, err := filepath.Abs(filepath.FromSlash(file)); err == nil {
		if rel, err := filepath.Rel(r.Work, abs); err == nil && filepath.IsLocal(rel) {
			file = filepath.ToSlash(rel)
		}
	}
	return strings.TrimPrefix(file, "./"), line
}

func (r *Run) renderedFile(ctx context.Context, path string) (*render.File, error) {
	files, err := r.Files(ctx)
	if err != nil {
		return nil, err
	}
	for i := range files {
		if files[i].Path == path {
			return &files[i], nil
		}
	}
	return nil, nil
}

func (r *Run) explainLine(ctx context.Context, file string, line int, all map[string]Explained) (*Explanation, error) {
	x := &Explanation{File: file, Line: line, Subject: file + ":" + strconv.Itoa(line)}
	if f, err := r.renderedFile(ctx, file); err != nil {
		return nil, err
	} else if f != nil {
		x.Source = f.Source
		x.Text = lineOf(f.Data, line)
		return x, nil
	}
	plan, err := r.Plan(ctx)
	if err != nil {
		return nil, err
	}
	f := plan.File(file)
	if f == nil {
		return nil, fault.New(fault.Usage, "dot4fa does not touch %s", file).Hintf("`%s` lists the edits with their files", r.Command("check"))
	}
	if n := bytes.Count(f.Post, []byte{'\n'}); line > n {
		return nil, fault.New(fault.Usage, "%s has %d lines when it is edited", file, n).Hintf("the line is that of the edited file, not of upstream's")
	}
	x.Text = lineOf(f.Post, line)
	if e := f.EditAt(line); e != nil {
		x.Edits = []Explained{all[e.ID]}
	}
	return x, nil
}

func lineOf(data []byte, n int) string {
	lines := bytes.SplitN(data, []byte{'\n'}, n+1)
	if n > len(lines) {
		return ""
	}
	return strings.TrimRight(string(lines[n-1]), "\r")
}

// Diff is what the series, or one member of it, does to upstream's files.
func (r *Run) Diff(ctx context.Context, member string) ([]byte, error) {
	plan, err := r.Plan(ctx)
	if err != nil {
		return nil, err
	}
	if member == "" {
		return plan.Diff(), nil
	}
	name := filepath.Base(member)
	var known []string
	for i, m := range plan.Members {
		if m.File == name || strings.TrimSuffix(m.File, ".yaml") == name {
			return plan.MemberDiff(i), nil
		}
		known = append(known, m.File)
	}
	hint := ""
	if near := nearest.Hint(name, known); near != "" {
		hint = near + "? "
	}
	return nil, fault.New(fault.Usage, "the series has no member %s", member).Hintf("%smembers: %s", hint, strings.Join(known, ", "))
}
