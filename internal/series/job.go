package series

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"

	"dot4fa/internal/fault"
)

// job carries out the actions of one apply or unapply under the lock.
type job struct {
	tree     *tree
	manifest *manifest
	acts     []action
	options  Options
	done     Change
}

// apply records what it is about to do, does it, and records that it is done.
func (j *job) apply(ctx context.Context) error {
	final := &manifest{records: map[string]*record{}}
	begun := &manifest{records: map[string]*record{}}
	var work []action
	for _, a := range j.acts {
		if a.target == nil {
			if a.state == Partial {
				begun.records[a.path] = a.record
				work = append(work, a)
			}
			continue
		}
		r := j.record(a)
		final.records[a.path] = &r
		r2 := r
		if a.record != nil && a.record.Pre == r.Pre {
			r2.Post = append(append([]string{}, r.Post...), a.record.Post...)
		}
		begun.records[a.path] = &r2
		if a.state != Applied {
			work = append(work, a)
		}
	}
	if j.options.DryRun {
		for _, a := range work {
			j.count(a, a.target == nil)
		}
		return nil
	}
	if len(work) == 0 && sameRecords(j.manifest, final) {
		return nil
	}
	for _, a := range j.acts {
		if a.target != nil && !a.target.absent {
			if err := j.tree.keep(a.target.pre); err != nil {
				return err
			}
		}
	}
	if err := j.tree.saveManifest(begun); err != nil {
		return err
	}
	for _, a := range work {
		if err := j.step(ctx, a); err != nil {
			return err
		}
		var err error
		if a.target == nil {
			err = j.restore(a)
		} else {
			err = j.tree.write(a.path, a.target.post, a.mode)
		}
		if err != nil {
			return err
		}
		j.count(a, a.target == nil)
	}
	if err := j.tree.saveManifest(final); err != nil {
		return err
	}
	j.tree.prune(final.digests())
	return nil
}

// unapply restores every file that is not as upstream has it.
func (j *job) unapply(ctx context.Context) error {
	var work []action
	for _, a := range j.acts {
		if a.state == Applied || a.state == Partial {
			work = append(work, a)
		}
	}
	if j.options.DryRun {
		for _, a := range work {
			j.count(a, true)
		}
		return nil
	}
	for _, a := range work {
		if err := j.step(ctx, a); err != nil {
			return err
		}
		if err := j.restore(a); err != nil {
			return err
		}
		j.count(a, true)
	}
	for _, a := range j.acts {
		j.removeDirs(a.record)
	}
	if err := j.tree.saveManifest(&manifest{}); err != nil {
		return err
	}
	j.tree.prune(nil)
	return nil
}

// step stops between two files when asked to, and makes sure that the file is
// still what it was when the run began.
func (j *job) step(ctx context.Context, a action) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	again := action{path: a.path, target: a.target, record: a.record}
	if err := j.tree.look(&again); err != nil {
		return err
	}
	if again.seen != a.seen || again.state != a.state {
		return fault.New(fault.EditFails, "%s was changed while dot4fa was writing", a.path).At("%s", j.tree.dir).
			Hintf("run the command again; it will say what it finds")
	}
	return nil
}

// restore gives the file of a back its upstream content, or removes it.
func (j *job) restore(a action) error {
	pre, mode := "", a.mode
	if a.record != nil {
		pre, mode = a.record.Pre, fs.FileMode(a.record.Mode)
	} else {
		pre = a.target.preSum()
	}
	if pre == "" {
		err := j.tree.remove(a.path)
		j.removeDirs(a.record)
		return err
	}
	data, err := j.tree.kept(pre)
	if err != nil && a.target != nil && a.target.preSum() == pre {
		data, err = a.target.pre, nil
	}
	if err != nil {
		return fault.New(fault.EditFails, "the upstream content of %s is not in the records: %w", a.path, err).At("%s", j.tree.dir).
			Hintf("move the work tree away and fetch it again")
	}
	return j.tree.write(a.path, data, mode)
}

// removeDirs removes the directories made for a file when they are empty.
func (j *job) removeDirs(r *record) {
	if r == nil {
		return
	}
	for i := len(r.Dirs) - 1; i >= 0; i-- {
		_ = j.tree.Remove(filepath.FromSlash(r.Dirs[i])) // fails while it holds something
	}
}

// record is what the manifest says of a once it is applied.
func (j *job) record(a action) record {
	r := record{Path: a.path, Pre: a.target.preSum(), Mode: uint32(a.mode), Post: []string{sum(a.target.post)}}
	if old := a.record; old != nil && old.Pre == r.Pre {
		r.Mode, r.Dirs = old.Mode, old.Dirs
	} else if a.target.absent {
		r.Dirs = j.tree.missingDirs(a.path)
	}
	return r
}

func (j *job) count(a action, back bool) {
	switch {
	case !back:
		j.done.Written = append(j.done.Written, a.path)
	case a.record != nil && a.record.Pre == "" || a.record == nil && a.target.absent:
		j.done.Removed = append(j.done.Removed, a.path)
	default:
		j.done.Restored = append(j.done.Restored, a.path)
	}
}

func (m *manifest) digests() map[string]bool {
	d := map[string]bool{}
	for _, r := range m.records {
		if r.Pre != "" {
			d[r.Pre] = true
		}
	}
	return d
}

func sameRecords(a, b *manifest) bool {
	if len(a.records) != len(b.records) {
		return false
	}
	for p, r := range a.records {
		if o := b.records[p]; o == nil || fmt.Sprint(*r) != fmt.Sprint(*o) {
			return false
		}
	}
	return true
}
