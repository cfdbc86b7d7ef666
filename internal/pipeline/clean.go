package pipeline

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"dot4fa/internal/build"
	"dot4fa/internal/fault"
	"dot4fa/internal/lock"
	"dot4fa/internal/page"
	"dot4fa/internal/series"
)

// Cleaned says what Clean removed.
type Cleaned struct {
	Work    string   `json:"work"`
	Removed []string `json:"removed"` // directories
}

// Clean removes the work tree, or with onlyBuild its build directory. It removes
// only what dot4fa made: a directory without our mark, a file changed by hand or
// one that somebody put there makes it refuse, and then nothing is removed.
func (r *Run) Clean(ctx context.Context, onlyBuild bool) (*Cleaned, error) {
	c := &Cleaned{Work: r.Work, Removed: []string{}}
	o, err := r.origin()
	if err != nil {
		return nil, err
	}
	if o == nil {
		return c, nil
	}
	unlock, err := r.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	target := r.Work
	if onlyBuild {
		target = filepath.Join(r.Work, "build")
		if _, err := os.Lstat(target); err != nil {
			return c, nil
		}
	} else if err := r.onlyOurs(ctx); err != nil {
		return nil, err
	}
	if r.DryRun {
		c.Removed = append(c.Removed, target)
		return c, nil
	}
	// Out of its place first: an interrupted removal must not leave half a tree
	// under the name of a whole one.
	away := filepath.Join(filepath.Dir(target), "."+filepath.Base(target)+".dot4fa-part")
	if err := os.RemoveAll(away); err != nil {
		return nil, environment(err, away, "cannot remove")
	}
	if err := os.Rename(target, away); err != nil {
		return nil, environment(err, target, "cannot remove")
	}
	if err := os.RemoveAll(away); err != nil {
		return nil, environment(err, away, "cannot remove")
	}
	c.Removed = append(c.Removed, target)
	return c, nil
}

// onlyOurs refuses a work tree that holds anything dot4fa did not write.
func (r *Run) onlyOurs(ctx context.Context) error {
	// The records in the tree say what ours is, whatever the recipe says now.
	_, files, err := series.State(r.Work, nil, nil)
	if err != nil {
		return err
	}
	known := map[string]bool{lock.Name: true, build.PresetsFile: build.TreeOf(r.Work).OwnsPresets()}
	var list []string
	for _, f := range files {
		known[f.Path] = true
		if f.State == series.Foreign {
			list = append(list, f.Path+": "+f.Why)
		}
	}
	ix, err := r.readIndex()
	if err != nil {
		return err
	}
	err = filepath.WalkDir(r.Work, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		rel, err := filepath.Rel(r.Work, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if rel == "build" || rel == stateDir {
				return fs.SkipDir
			}
			return nil
		}
		f, upstreams := ix[rel]
		switch {
		case known[rel]:
		case !upstreams:
			list = append(list, rel+": not made by dot4fa")
		case !f.same(name):
			list = append(list, rel+": changed by hand")
		}
		return nil
	})
	if err != nil {
		return environment(err, r.Work, "cannot look through the work tree")
	}
	if list == nil {
		return nil
	}
	const shown = 10
	more := ""
	if n := len(list) - shown; n > 0 {
		list, more = list[:shown], "\n  and "+page.Plural(n, "more file")
	}
	return fault.New(fault.EditFails, "the work tree holds what dot4fa did not make, nothing was removed\n  %s%s", strings.Join(list, "\n  "), more).
		At("%s", r.Work).Hintf("move these files away, or remove the directory yourself")
}
