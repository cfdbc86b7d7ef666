package series

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
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
	known := 0 // files that upstream has, in a state of ours
	for _, a := range acts {
		if a.state == Foreign {
			list = append(list, fmt.Sprintf("%s: %s", a.path, a.why))
		} else if a.target != nil && a.target.upstreamed {
			known++
		}
	}
	if len(list) == 0 {
		return nil
	}
	what := fmt.Sprintf("%d files are not as dot4fa left them", len(list))
	if len(list) == 1 {
		what = "a file is not as dot4fa left it"
	}
	err := fault.New(fault.EditFails, "cannot %s: %s, nothing was changed\n  %s", verb, what, strings.Join(list, "\n  "))
	if len(list) > 1 && known == 0 {
		return err.Hintf("no file of the plan is as upstream has it at the pin: is this the tree of another commit? " +
			"use another --work directory, or move this one away")
	}
	return err.Hintf("keep a change by making it an edit under patches/; then move the file away and fetch it again, or use another --work directory")
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
