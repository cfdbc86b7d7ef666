package series

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sort"
	"strings"

	"dot4fa/internal/fault"
)

// TreeState is how a work tree stands against a plan.
type TreeState string

// The states of a work tree.
const (
	Clean   TreeState = "clean"   // every file is as upstream has it
	Applied TreeState = "applied" // every file is as the plan wants it
	Partial TreeState = "partial" // some of each, or made by another plan: apply or unapply completes it
	Foreign TreeState = "foreign" // some file is neither: apply and unapply refuse
)

// Rendered is a file of ours that upstream does not have.
type Rendered struct {
	Path   string // slash-separated, relative to the work tree
	Data   []byte
	Source string // what it was made from
}

// FileState is how one file of the plan, or of an earlier apply, stands.
type FileState struct {
	Path  string    `json:"path"`
	State TreeState `json:"state"`            // Partial: written by an earlier apply
	Why   string    `json:"reason,omitempty"` // of Foreign
}

// Change lists what Apply or Unapply did, or would do.
type Change struct {
	Written  []string `json:"written"`  // given their edited or rendered content
	Restored []string `json:"restored"` // given back their upstream content
	Removed  []string `json:"removed"`
}

// Empty reports whether nothing had to be done.
func (c *Change) Empty() bool { return len(c.Written)+len(c.Restored)+len(c.Removed) == 0 }

// Options of Apply and Unapply. The zero value is good.
type Options struct {
	Waiting func(lock string) // called once when another run holds the work tree
	DryRun  bool              // say what would change and write nothing
	step    func() error      // called before each change on disk; for tests
}

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
			return nil, fault.New(fault.Usage, "rendered file: %w", err)
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
	for _, p := range sortedKeys(paths) {
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

// State compares the work tree at dir with the plan and the rendered files. It
// changes nothing and takes no lock.
func State(dir string, plan *Plan, rendered []Rendered) (TreeState, []FileState, error) {
	t, err := openTree(dir)
	if err != nil {
		return "", nil, err
	}
	defer t.Close()
	want, err := targets(plan, rendered)
	if err != nil {
		return "", nil, err
	}
	m, err := t.loadManifest()
	if err != nil {
		return "", nil, err
	}
	acts, err := judge(t, want, m)
	if err != nil {
		return "", nil, err
	}
	var files []FileState
	n := map[TreeState]int{}
	for _, a := range acts {
		n[a.state]++
		files = append(files, FileState{a.path, a.state, a.why})
	}
	switch {
	case n[Foreign] > 0:
		return Foreign, files, nil
	case n[Clean] == len(acts):
		return Clean, files, nil
	case n[Applied]+n[Clean] == len(acts) && onlyStale(acts):
		return Applied, files, nil
	}
	return Partial, files, nil
}

// onlyStale reports whether the clean files are ones that the plan does not name.
func onlyStale(acts []action) bool {
	for _, a := range acts {
		if a.state == Clean && a.target != nil {
			return false
		}
	}
	return true
}

// refuse is the error naming the files that were edited by hand, or nil.
func refuse(acts []action, verb string) error {
	var list []string
	for _, a := range acts {
		if a.state == Foreign {
			list = append(list, fmt.Sprintf("%s: %s", a.path, a.why))
		}
	}
	if len(list) == 0 {
		return nil
	}
	sort.Strings(list)
	what := fmt.Sprintf("%d files are not as dot4fa left them", len(list))
	if len(list) == 1 {
		what = "a file is not as dot4fa left it"
	}
	return fault.New(fault.EditFails, "cannot %s: %s, nothing was changed\n  %s", verb, what, strings.Join(list, "\n  ")).
		Hintf("keep a change by making it an edit under patches/; then move the file away and fetch it again, or use another --work directory")
}

// Apply brings the work tree at dir to the state the plan describes. It is safe
// to run twice, and after an interruption it completes what was begun. Files
// that hold neither upstream's content nor ours are never touched: then nothing
// is changed and the error has exit code 3.
func Apply(ctx context.Context, dir string, plan *Plan, rendered []Rendered, o Options) (*Change, error) {
	want, err := targets(plan, rendered)
	if err != nil {
		return nil, err
	}
	return change(ctx, dir, "apply", want, o)
}

// Unapply gives every file an apply has touched its recorded upstream content
// and mode back, byte for byte, and removes the files it made. plan and rendered
// may be nil; they help when the records in the work tree were lost.
func Unapply(ctx context.Context, dir string, plan *Plan, rendered []Rendered, o Options) (*Change, error) {
	want, err := targets(plan, rendered)
	if err != nil {
		return nil, err
	}
	return change(ctx, dir, "unapply", want, o)
}

func change(ctx context.Context, dir, verb string, want map[string]*target, o Options) (*Change, error) {
	t, err := openTree(dir)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	t.step = o.step
	if !o.DryRun {
		unlock, err := t.lock(ctx, o.Waiting)
		if err != nil {
			return nil, err
		}
		defer unlock()
	}
	m, err := t.loadManifest()
	if err != nil {
		return nil, err
	}
	acts, err := judge(t, want, m)
	if err != nil {
		return nil, err
	}
	if err := refuse(acts, verb); err != nil {
		return nil, err
	}
	j := &job{tree: t, manifest: m, acts: acts, options: o}
	if verb == "apply" {
		err = j.apply(ctx)
	} else {
		err = j.unapply(ctx)
	}
	if err == nil {
		return &j.done, nil
	}
	if ctx.Err() != nil {
		return &j.done, fault.New(fault.Interrupted, "%s was interrupted: %w", verb, err).At("%s", dir).
			Hintf("run it again to finish, or `dot4fa unapply` to take it back")
	}
	return &j.done, writeFault(err, dir)
}

// writeFault tells a tree that cannot be written from other failures.
func writeFault(err error, dir string) error {
	var already *fault.Error
	if errors.As(err, &already) {
		return err
	}
	if errors.Is(err, fs.ErrPermission) || isReadOnly(err) {
		return fault.New(fault.Environment, "cannot write to the work tree: %w", err).At("%s", dir).
			Hintf("make it writable or name another with --work; what was begun is completed by the next run")
	}
	if errors.Is(err, os.ErrExist) {
		return fault.New(fault.EditFails, "a file appeared while dot4fa was writing: %w", err).At("%s", dir).
			Hintf("run the command again")
	}
	return fault.New(fault.Failure, "cannot change the work tree: %w", err).At("%s", dir).
		Hintf("what was begun is completed by the next run, or taken back by `dot4fa unapply`")
}
