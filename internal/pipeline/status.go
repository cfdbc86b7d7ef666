package pipeline

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"dot4fa/internal/build"
	"dot4fa/internal/fault"
	"dot4fa/internal/page"
	"dot4fa/internal/series"
)

// Status is how a work tree stands against a recipe.
type Status struct {
	Work       string             `json:"work"`
	Recipe     string             `json:"recipe"`
	Commit     string             `json:"commit"` // the recipe's pin
	Tag        string             `json:"tag"`
	Tree       *Origin            `json:"tree,omitempty"`    // what the work tree was made from; nil when there is none
	State      string             `json:"state"`             // absent, other commit, clean, rendered, applied, partial, foreign
	Files      []series.FileState `json:"files,omitempty"`   // edited and rendered files
	Changed    []string           `json:"changed,omitempty"` // other upstream files changed by hand
	Configured bool               `json:"configured"`
	Programs   []string           `json:"programs,omitempty"` // targets of the recipe that are built
	Missing    []string           `json:"missing,omitempty"`  // targets of the recipe that are not
	Next       string             `json:"next,omitempty"`     // command to run next
}

// States of a work tree besides those of package series.
const (
	Absent      = "absent"
	OtherCommit = "other commit"
	OnlyFiles   = "rendered" // the rendered files are there and no edit is made
)

// Err is the fault that the status shows, or nil.
func (s *Status) Err() error {
	switch s.State {
	case OtherCommit:
		return fault.New(fault.EditFails, "the work tree is of another upstream commit").At("%s", s.Work).
			Hintf("name another directory with --work, or remove this one with dot4fa clean")
	case string(series.Foreign):
		n := 0
		for _, f := range s.Files {
			if f.State == series.Foreign {
				n++
			}
		}
		return fault.New(fault.EditFails, "%s changed by hand where dot4fa makes its edits", page.Plural(n, "file")).At("%s", s.Work).
			Hintf("keep a change by making it an edit under patches/; then move the file away and fetch it again, or use another --work directory")
	}
	return nil
}

// Status looks at the work tree and changes nothing.
func (r *Run) Status(ctx context.Context) (*Status, error) {
	up := r.Recipe.Upstream
	s := &Status{Work: r.Work, Recipe: r.Recipe.Name, Commit: up.Commit, Tag: up.Tag, State: Absent}
	o, err := r.origin()
	if err != nil {
		return nil, err
	}
	if o == nil {
		s.Next = r.Command("build").String()
		return s, nil
	}
	s.Tree = o
	if _, err := r.ownTree(ctx); err != nil {
		if fault.Code(err) != fault.EditFails {
			return nil, err
		}
		s.State = OtherCommit
		return s, nil
	}
	files, plan, err := r.filesAndPlan(ctx)
	if err != nil {
		return nil, err
	}
	state, list, err := series.State(r.Work, plan, asRendered(files))
	if err != nil {
		return nil, err
	}
	s.State, s.Files = string(state), list
	if state == series.Partial && onlyRendered(plan, list) {
		s.State = OnlyFiles
	}
	if s.Changed, err = r.changedByHand(list); err != nil {
		return nil, err
	}
	tree := build.TreeOf(r.Work)
	if s.Configured, err = r.isConfigured(ctx, tree); err != nil {
		return nil, err
	}
	s.Programs = programs(tree, r.Recipe.Targets)
	for _, t := range r.Recipe.Targets {
		if !built(s.Programs, t) {
			s.Missing = append(s.Missing, t)
		}
	}
	if s.State != string(series.Applied) && s.State != string(series.Foreign) || !s.Configured || len(s.Missing) > 0 {
		s.Next = r.Command("build").String()
	}
	return s, nil
}

// isConfigured reports whether a configure would do nothing.
func (r *Run) isConfigured(ctx context.Context, tree build.Tree) (bool, error) {
	tools := r.Tools(ctx)
	want, err := r.configuration(ctx, tree.ConfigureCommand(r.Recipe, tools), tools)
	if err != nil {
		return false, err
	}
	l, err := r.readLock()
	if err != nil {
		return false, err
	}
	return l.Fresh(stageConfigure, want.whole) && configured(tree), nil
}

func built(programs []string, target string) bool {
	for _, p := range programs {
		if strings.TrimSuffix(filepath.Base(p), ".exe") == target {
			return true
		}
	}
	return false
}

func onlyRendered(plan *series.Plan, files []series.FileState) bool {
	for _, f := range files {
		if plan.File(f.Path) != nil && f.State != series.Clean || f.State == series.Foreign {
			return false
		}
	}
	return true
}

// changedByHand lists the files that came from upstream, are none of ours, and
// are not as upstream has them. They are built as they are.
func (r *Run) changedByHand(ours []series.FileState) ([]string, error) {
	ix, err := r.readIndex()
	if err != nil {
		return nil, err
	}
	for _, f := range ours {
		delete(ix, f.Path)
	}
	var changed []string
	for _, p := range slices.Sorted(maps.Keys(ix)) {
		if !ix[p].same(filepath.Join(r.Work, filepath.FromSlash(p))) {
			changed = append(changed, p)
		}
	}
	return changed, nil
}
