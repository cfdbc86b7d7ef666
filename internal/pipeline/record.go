package pipeline

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"sort"

	"dot4fa/internal/lock"
	"dot4fa/internal/release"
	"dot4fa/internal/render"
	"dot4fa/internal/series"
	"dot4fa/internal/shell"
	"dot4fa/internal/toolchain"
	"dot4fa/internal/upstream"
	"dot4fa/internal/upstream/gitobj"
)

// Stages in the lock. Unlike the others cmake is a part of configure: when it
// changes, what CMake remembers is stale.
const (
	stageFetch     = "fetch"
	stageApply     = "apply"
	stageCMake     = "cmake"
	stageConfigure = "configure"
	stageBuild     = "build"
)

func (r *Run) lockFile() string { return filepath.Join(r.Work, lock.Name) }

// readLock returns the work tree's lock, an empty one when there is none.
func (r *Run) readLock() (*lock.Lock, error) {
	l, err := lock.Read(r.lockFile())
	if errors.Is(err, fs.ErrNotExist) {
		return &lock.Lock{}, nil
	}
	return l, err
}

// record sets the fingerprints of stages in l and writes it; an empty one
// takes the stage away.
func (r *Run) record(l *lock.Lock, fingerprints ...lock.Stage) error {
	for _, s := range fingerprints {
		i := slices.IndexFunc(l.Stages, func(old lock.Stage) bool { return old.Name == s.Name })
		switch {
		case i >= 0 && s.Fingerprint == "":
			l.Stages = slices.Delete(l.Stages, i, i+1)
		case i >= 0:
			l.Stages[i] = s
		case s.Fingerprint != "":
			l.Stages = append(l.Stages, s)
		}
	}
	return l.Write(r.lockFile())
}

// recordTree writes what the work tree was made from.
func (r *Run) recordTree(plan *series.Plan, files []render.File) error {
	l, err := r.readLock()
	if err != nil {
		return err
	}
	up := r.Recipe.Upstream
	fetched := lock.Fingerprint(up.Commit, up.Exclude, r.snapshot.Tree)
	var posts []lock.Item
	for _, f := range plan.Files {
		posts = append(posts, lock.Item{ID: f.Path, SHA256: lock.SumBytes(f.Post)})
	}
	l.Files = nil
	for _, f := range files {
		l.Files = append(l.Files, lock.Item{ID: f.Path, SHA256: f.Sum()})
	}
	l.Edits = nil
	for _, e := range r.edits.Edits() {
		l.Edits = append(l.Edits, lock.Item{ID: e.ID, SHA256: says(e)})
	}
	applied := lock.Fingerprint(r.Recipe.Hash(), posts, l.Files)
	l.Tool = r.Version
	l.Recipe = lock.Recipe{Name: r.Recipe.Name, Hash: r.Recipe.Hash()}
	tag := up.Tag
	if r.snapshot.Commit == "" {
		tag = ""
	}
	if !l.Fresh(stageFetch, fetched) || !l.Fresh(stageApply, applied) || l.Upstream.After == "" {
		l.Upstream = lock.Upstream{From: r.from(), Commit: r.snapshot.Commit, Tag: tag, Tree: r.snapshot.Tree}
		if l.Upstream.Before, err = r.snapshot.Content(); err != nil {
			return err
		}
		if l.Upstream.After, err = treeAfter(r.snapshot, plan, files); err != nil {
			return err
		}
	}
	return r.record(l, lock.Stage{Name: stageFetch, Fingerprint: fetched}, lock.Stage{Name: stageApply, Fingerprint: applied})
}

// recordUnapplied notes that the tree is upstream's again. The files that the
// configured build lists are gone, so that it is not configured any more.
func (r *Run) recordUnapplied(l *lock.Lock) error {
	if l.Recipe.Hash == "" {
		return nil // there was no lock
	}
	l.Upstream.After, l.Files, l.Edits = "", nil, nil
	return r.record(l, lock.Stage{Name: stageApply}, lock.Stage{Name: stageConfigure}, lock.Stage{Name: stageBuild})
}

// says is the digest of what an edit says, wherever it is written.
func says(e *series.Edit) string {
	probe := ""
	for _, p := range e.Probes {
		probe += p.File + "\x00" + p.Has + "\x00" + p.Lacks + "\x00"
	}
	return lock.Fingerprint(e.File, e.Scope, e.Anchor, e.Count, e.Do, e.Text, probe, e.Since, e.Until)
}

// treeAfter is the git tree id of upstream's files with the edits made and the
// rendered files added.
func treeAfter(s *upstream.Snapshot, plan *series.Plan, rendered []render.File) (string, error) {
	files, err := s.Files()
	if err != nil {
		return "", err
	}
	byPath := make(map[string]gitobj.Entry, len(files))
	for _, f := range files {
		byPath[f.Path] = gitobj.Entry{Mode: f.Mode, ID: f.ID}
	}
	put := func(path string, data []byte) {
		e, ok := byPath[path]
		if !ok {
			e.Mode = gitobj.ModeFile
		}
		e.ID = gitobj.Hash(gitobj.Blob, data)
		byPath[path] = e
	}
	for _, f := range plan.Files {
		put(f.Path, f.Post)
	}
	for _, f := range rendered {
		put(f.Path, f.Data)
	}
	return release.TreeID(byPath), nil
}

// configuration is what decides the outcome of a configure.
type configuration struct {
	cmake string // digest of CMake's arguments and the compilers
	whole string // and of which files there are
}

// configuration covers everything that decides what CMake generates and that
// Ninja does not watch itself: the arguments, the programs, and which files we
// add, because upstream's build lists the device code by pattern.
func (r *Run) configuration(ctx context.Context, cmd shell.Command, tools toolchain.Set) (configuration, error) {
	files, plan, err := r.filesAndPlan(ctx)
	if err != nil {
		return configuration{}, err
	}
	var added []string
	for _, f := range files {
		added = append(added, f.Path)
	}
	for _, f := range plan.Files {
		if f.New {
			added = append(added, f.Path)
		}
	}
	sort.Strings(added)
	c := configuration{cmake: lock.Fingerprint(cmd, tools.Tools())}
	c.whole = lock.Fingerprint(c.cmake, added)
	return c, nil
}
