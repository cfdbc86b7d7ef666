package pipeline

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"dot4fa/internal/fault"
	"dot4fa/internal/upstream"
	"dot4fa/internal/upstream/gitobj"
)

const (
	stateDir  = ".dot4fa"
	treeFile  = stateDir + "/tree.json" // marks a directory as a work tree of ours
	indexFile = stateDir + "/files"     // every upstream file as it was checked out
)

// Origin is what a work tree was checked out from.
type Origin struct {
	Format int    `json:"format"`
	Commit string `json:"commit"` // empty when it came from a plain directory
	Tag    string `json:"tag,omitempty"`
	Tree   string `json:"tree"` // git tree id
	From   string `json:"from"` // where upstream was read
}

// origin reads the mark of the work tree; nil when there is no tree yet. A
// directory that holds something else is an error.
func (r *Run) origin() (*Origin, error) {
	entries, err := os.ReadDir(r.Work)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, fs.ErrPermission):
		return nil, environment(err, r.Work, "cannot read the work tree")
	case err != nil:
		return nil, fault.New(fault.Usage, "the work tree is not a directory").At("%s", r.Work).
			Hintf("name another with --work")
	case len(entries) == 0:
		return nil, nil
	}
	data, err := os.ReadFile(filepath.Join(r.Work, filepath.FromSlash(treeFile)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Usage, "the directory is not empty and dot4fa did not make it").At("%s", r.Work).
			Hintf("name a new directory with --work, or empty this one yourself")
	}
	var o Origin
	if err == nil {
		err = json.Unmarshal(data, &o)
	}
	if err == nil && o.Tree == "" {
		err = errors.New("it names no tree")
	}
	if err != nil {
		return nil, fault.New(fault.EditFails, "the work tree's record cannot be read: %w", err).
			At("%s", filepath.Join(r.Work, filepath.FromSlash(treeFile))).
			Hintf("move the work tree away and run the command again")
	}
	return &o, nil
}

// ownTree returns the work tree's origin and refuses one of another commit.
// nil means that there is none yet.
func (r *Run) ownTree(ctx context.Context) (*Origin, error) {
	o, err := r.origin()
	if o == nil || err != nil {
		return nil, err
	}
	pin := r.Recipe.Upstream
	if o.Commit == pin.Commit {
		return o, nil
	}
	if o.Commit == "" { // from a directory: its files must still be the same
		s, err := r.Snapshot(ctx)
		if err != nil {
			return nil, err
		}
		if s.Tree == o.Tree {
			return o, nil
		}
		return nil, fault.New(fault.EditFails, "the work tree was made from the files in %s as they were (tree %.10s), upstream is tree %.10s now", o.From, o.Tree, s.Tree).
			At("%s", r.Work).Hintf("%s", r.another())
	}
	return nil, fault.New(fault.EditFails, "the work tree is of upstream commit %.10s%s, the recipe is pinned to %.10s (%s)", o.Commit, inParens(o.Tag), pin.Commit, pin.Tag).
		At("%s", r.Work).Hintf("%s", r.another())
}

func (r *Run) another() string {
	return fmt.Sprintf("name another directory with --work, or remove this one with `%s`; nothing was changed", r.Command("clean"))
}

func inParens(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

// checkout makes the work tree from s. It appears under its name when it is
// whole and not before.
func (r *Run) checkout(ctx context.Context, s *upstream.Snapshot) error {
	parent, base := filepath.Split(r.Work)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return environment(err, parent, "cannot make the directory of the work tree")
	}
	part := filepath.Join(parent, "."+base+".dot4fa-part")
	if err := os.RemoveAll(part); err != nil { // of a killed run
		return environment(err, part, "cannot remove what an interrupted run left")
	}
	defer os.RemoveAll(part)
	if err := s.Checkout(ctx, part); err != nil {
		return err
	}
	files, err := s.Files()
	if err != nil {
		return err
	}
	index, err := indexTree(part, files)
	if err != nil {
		return environment(err, part, "cannot read the files checked out")
	}
	o := Origin{Format: 1, Commit: s.Commit, Tree: s.Tree, From: r.from()}
	if s.Commit == r.Recipe.Upstream.Commit {
		o.Tag = r.Recipe.Upstream.Tag
	}
	data, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{treeFile: append(data, '\n'), indexFile: index.encode()} {
		name = filepath.Join(part, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return environment(err, name, "cannot write the work tree's record")
		}
		if err := os.WriteFile(name, content, 0o644); err != nil {
			return environment(err, name, "cannot write the work tree's record")
		}
	}
	if err := os.Remove(r.Work); err != nil && !errors.Is(err, fs.ErrNotExist) { // only when empty
		return environment(err, r.Work, "cannot put the work tree in its place")
	}
	if err := os.Rename(part, r.Work); err != nil {
		return environment(err, r.Work, "cannot put the work tree in its place")
	}
	return nil
}

// index records the files of a fresh checkout: path to git blob id and, to
// spare reading them again, size and modification time.
type index map[string]indexed

type indexed struct {
	blob  string
	size  int64
	mtime int64
}

func indexTree(dir string, files []upstream.File) (index, error) {
	ix := index{}
	for _, f := range files {
		info, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(f.Path)))
		if err != nil {
			return nil, err
		}
		ix[f.Path] = indexed{f.ID, info.Size(), info.ModTime().UnixNano()}
	}
	return ix, nil
}

func (ix index) encode() []byte {
	paths := make([]string, 0, len(ix))
	for p := range ix {
		paths = append(paths, p)
	}
	sort.Strings(paths)
	var b strings.Builder
	for _, p := range paths {
		f := ix[p]
		fmt.Fprintf(&b, "%s %d %d %s\n", f.blob, f.size, f.mtime, p)
	}
	return []byte(b.String())
}

func (r *Run) readIndex() (index, error) {
	name := filepath.Join(r.Work, filepath.FromSlash(indexFile))
	f, err := os.Open(name)
	if err != nil {
		return nil, environment(err, name, "cannot read the list of upstream's files")
	}
	defer f.Close()
	ix := index{}
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var e indexed
		var path string
		part := strings.SplitN(sc.Text(), " ", 4)
		if len(part) == 4 {
			e.blob, path = part[0], part[3]
			if _, err := fmt.Sscan(part[1]+" "+part[2], &e.size, &e.mtime); err == nil {
				ix[path] = e
				continue
			}
		}
		return nil, fault.New(fault.EditFails, "the list of upstream's files is damaged").At("%s", name).
			Hintf("move the work tree away and run the command again")
	}
	return ix, nil
}

// same reports whether the file at name still has the content recorded.
func (f indexed) same(name string) bool {
	info, err := os.Lstat(name)
	if err != nil {
		return false
	}
	if info.Size() == f.size && info.ModTime().UnixNano() == f.mtime && info.Mode().IsRegular() {
		return true
	}
	var data []byte
	if info.Mode()&fs.ModeSymlink != 0 {
		var to string
		to, err = os.Readlink(name)
		data = []byte(filepath.ToSlash(to))
	} else {
		data, err = os.ReadFile(name)
	}
	return err == nil && gitobj.Hash(gitobj.Blob, data) == f.blob
}

// lock takes the work tree for this run. The lock lies in the cache directory:
// the work tree may not exist yet.
func (r *Run) lock(ctx context.Context) (unlock func(), err error) {
	cache, err := upstream.DefaultCacheDir()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(cache, "locks")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fault.New(fault.Environment, "cannot make the cache directory: %w", err).At("%s", dir).
			Hintf("set DOT4FA_CACHE to a directory that can be written")
	}
	key := sha256.Sum256([]byte(r.Work))
	l := flock.New(filepath.Join(dir, hex.EncodeToString(key[:8])))
	ok, err := l.TryLock()
	if err == nil && !ok {
		r.Report.Say("another run is at work in %s; waiting for it to finish", r.Work)
		ok, err = l.TryLockContext(ctx, 100*time.Millisecond)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil || !ok {
		return nil, environment(err, dir, "cannot lock the work tree")
	}
	return func() { _ = l.Close() }, nil
}
