package series

import (
	"io/fs"
	"maps"
	"slices"

	"dot4fa/internal/fault"
)

// target is what a path should hold: pre in a clean tree, post in an applied one.
type target struct {
	pre, post  []byte
	absent     bool // there is no pre
	upstreamed bool // edited, not made, by us
}

func (t *target) preSum() string {
	if t.absent {
		return ""
	}
	return sum(t.pre)
}

func targets(plan *Plan, rendered []Rendered) (map[string]*target, error) {
	all := map[string]*target{}
	if plan != nil {
		for _, f := range plan.Files {
			all[f.Path] = &target{pre: f.Pre, post: f.Post, absent: f.New, upstreamed: !f.New}
		}
	}
	for _, r := range rendered {
		if err := cleanPath(r.Path); err != nil {
			return nil, fault.New(fault.Usage, "rendered file: %w", err).
				Hintf("in templates/manifest.yaml, write paths relative to the root of the upstream tree")
		}
		if all[r.Path] != nil {
			return nil, fault.New(fault.Usage, "%s is both rendered and edited, or rendered twice", r.Path).
				Hintf("rename the file in templates/manifest.yaml")
		}
		all[r.Path] = &target{post: r.Data, absent: true}
	}
	return all, nil
}

// action is what has to happen to one file.
type action struct {
	path   string
	state  TreeState
	why    string // of Foreign
	seen   string // digest of the content found, "" when there is no file
	mode   fs.FileMode
	target *target // nil: only an earlier apply knows the file
	record *record // nil: no earlier apply knows it
}

// judge compares every file of the targets and of the manifest with the tree.
func judge(t *tree, want map[string]*target, m *manifest) ([]action, error) {
	paths := map[string]bool{}
	for p := range want {
		paths[p] = true
	}
	for p := range m.records {
		paths[p] = true
	}
	var acts []action
	for _, p := range slices.Sorted(maps.Keys(paths)) {
		a := action{path: p, target: want[p], record: m.records[p], mode: 0o644}
		if err := t.look(&a); err != nil {
			return nil, err
		}
		acts = append(acts, a)
	}
	return acts, nil
}

// decide sets the state of a from the content found.
func (a *action) decide() {
	r := a.record
	if t := a.target; t != nil {
		switch {
		case a.seen == sum(t.post):
			a.state = Applied
		case a.seen == t.preSum():
			a.state = Clean
		case r != nil && r.Pre == t.preSum() && r.wrote(a.seen):
			a.state = Partial
		case r != nil && r.wrote(a.seen):
			a.foreign("it was edited for another upstream commit")
		case a.seen == "":
			a.foreign("it is missing")
		case t.upstreamed:
			a.foreign("it is neither upstream's file nor the edited one")
		default:
			a.foreign("a file that dot4fa did not write is in the way")
		}
		return
	}
	switch {
	case a.seen == r.Pre:
		a.state = Clean
	case r.wrote(a.seen):
		a.state = Partial
	case a.seen == "":
		a.foreign("it is missing")
	default:
		a.foreign("it was changed after dot4fa wrote it")
	}
}

func (a *action) foreign(why string) { a.state, a.why = Foreign, why }
