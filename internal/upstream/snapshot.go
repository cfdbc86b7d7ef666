package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"sync"

	"dot4fa/internal/fault"
	"dot4fa/internal/upstream/gitobj"
)

// File is one file of a snapshot.
type File struct {
	Path string // with forward slashes
	Mode string // gitobj.ModeFile, ModeExec, ModeLink or ModeModule
	ID   string // of the blob
}

// Files returns the files that are not excluded, in path order. It fails only
// where the snapshot came from Repo.At and a tree cannot be read.
func (s *Snapshot) Files() ([]File, error) {
	if err := s.walk(context.Background()); err != nil {
		return nil, s.repo.explain(err, s.Commit)
	}
	return append([]File(nil), s.files...), nil
}

// Content returns the git tree id of the files that are not excluded: what
// Checkout writes, and the same for a directory and a repository that have the
// same files.
func (s *Snapshot) Content() (string, error) {
	if err := s.walk(context.Background()); err != nil {
		return "", s.repo.explain(err, s.Commit)
	}
	return s.content, nil
}

// BlobID returns the object id of a file. The error is fs.ErrNotExist for a
// path the commit does not have.
func (s *Snapshot) BlobID(name string) (string, error) {
	f, err := s.find(context.Background(), name)
	return f.ID, err
}

// ReadFile returns a file's content, the caller's to change. The error is fs.ErrNotExist for a path the
// commit does not have; an excluded path is an error that says so.
func (s *Snapshot) ReadFile(name string) ([]byte, error) {
	ctx := context.Background()
	f, err := s.find(ctx, name)
	if err != nil {
		return nil, err
	}
	if f.Mode == gitobj.ModeModule {
		return nil, fault.New(fault.Failure, "is a submodule, not a file").At("%s", name).Hintf("name a file of the repository itself")
	}
	if s.repo.exclude.Match(name, false) {
		return nil, fault.New(fault.Usage, "is excluded by the recipe").At("%s", name).Hintf("remove the pattern from upstream.exclude")
	}
	if s.dir != "" {
		return readDirFile(s.dir, f)
	}
	if b, ok := s.repo.blobs.get(f.ID); ok {
		return bytes.Clone(b), nil
	}
	data, err := s.repo.blob(ctx, s.Commit, f)
	if err == nil {
		s.repo.blobs.put(f.ID, bytes.Clone(data))
	}
	return data, err
}

// find looks a path up, by its directories only when the tree was not walked.
func (s *Snapshot) find(ctx context.Context, name string) (File, error) {
	clean := path.Clean(name)
	if clean != name || name == "." || path.IsAbs(name) || strings.HasPrefix(name, "../") {
		return File{}, fmt.Errorf("%s: %w", name, fs.ErrInvalid)
	}
	if s.walked {
		if i, ok := s.byPath[name]; ok {
			return s.files[i], nil
		}
		if s.dir != "" || !s.repo.exclude.Match(name, false) {
			return File{}, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		}
	}
	tree, rest := s.Tree, name
	for {
		entries, err := s.repo.tree(ctx, s.Commit, tree)
		if err != nil {
			return File{}, s.repo.explain(err, s.Commit)
		}
		head, tail, more := strings.Cut(rest, "/")
		i := -1
		for j := range entries {
			if entries[j].Name == head {
				i = j
			}
		}
		switch {
		case i < 0, more != (entries[i].Mode == gitobj.ModeDir):
			return File{}, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		case !more:
			return File{name, entries[i].Mode, entries[i].ID}, nil
		}
		tree, rest = entries[i].ID, tail
	}
}

// walk lists the files that are not excluded. Trees of excluded directories are
// not read.
func (s *Snapshot) walk(ctx context.Context) error {
	if s.walked {
		return nil
	}
	files := s.files[:0]
	var visit func(tree, dir string) (string, error)
	visit = func(tree, dir string) (string, error) {
		entries, err := s.repo.tree(ctx, s.Commit, tree)
		if err != nil {
			return "", err
		}
		var kept []gitobj.Entry
		for _, e := range entries {
			p := e.Name
			if dir != "" {
				p = dir + "/" + e.Name
			}
			isDir := e.Mode == gitobj.ModeDir
			if s.repo.exclude.Entry(p, isDir) {
				continue
			}
			switch e.Mode {
			case gitobj.ModeDir:
				if e.ID, err = visit(e.ID, p); err != nil {
					return "", err
				}
				if e.ID == emptyTree {
					continue
				}
			case gitobj.ModeFile, gitobj.ModeExec, gitobj.ModeLink:
				files = append(files, File{p, e.Mode, e.ID})
			case gitobj.ModeModule:
				// A submodule's files are not part of the commit. Upstream has
				// none since it took its last one in.
				continue
			default:
				return "", fmt.Errorf("%s has the unknown mode %s", p, e.Mode)
			}
			kept = append(kept, e)
		}
		return gitobj.HashTree(kept), nil
	}
	content, err := visit(s.Tree, "")
	if err != nil {
		return err
	}
	s.setFiles(files, content)
	return nil
}

var emptyTree = gitobj.HashTree(nil)

func (s *Snapshot) setFiles(files []File, content string) {
	sort.Slice(files, func(i, j int) bool { return files[i].Path < files[j].Path })
	s.files, s.content, s.walked = files, content, true
	s.byPath = make(map[string]int, len(files))
	for i, f := range files {
		s.byPath[f.Path] = i
	}
}

// openDir takes a plain directory as it is.
func (r *Repo) openDir(ctx context.Context) (*Snapshot, error) {
	if _, err := os.Lstat(filepath.Join(r.loc.dir, stateDir)); err == nil {
		return nil, fault.New(fault.Usage, "the directory is a work tree that dot4fa made, not upstream").At("%s", r.loc.text).
			Hintf("give what it was made from, see its dot4fa.lock")
	}
	files, id, err := hashDir(ctx, r.loc.dir, r.exclude.Entry)
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot read upstream: %w", err).At("%s", r.loc.text).Hintf("check the permissions of the directory")
	}
	if len(files) == 0 {
		return nil, fault.New(fault.Usage, "the directory has no files that are not excluded").At("%s", r.loc.text).Hintf("give a repository, a URL, or a directory with llama.cpp's files")
	}
	s := &Snapshot{Tree: id, repo: r, dir: r.loc.dir}
	s.setFiles(files, id)
	return s, nil
}

func readDirFile(dir string, f File) ([]byte, error) {
	p := filepath.Join(dir, filepath.FromSlash(f.Path))
	var data []byte
	var err error
	if f.Mode == gitobj.ModeLink {
		var to string
		to, err = os.Readlink(p)
		data = []byte(filepath.ToSlash(to))
	} else {
		data, err = os.ReadFile(p)
	}
	if err != nil {
		return nil, fault.Read(err, p)
	}
	if got := gitobj.Hash(gitobj.Blob, data); got != f.ID {
		return nil, fault.New(fault.Environment, "the file changed while it was being used").At("%s", p).Hintf("run the command again")
	}
	return data, nil
}

// treeCache keeps trees that were read: commits next to each other share most
// of theirs.
type treeCache struct {
	mu   sync.Mutex
	byID map[string][]gitobj.Entry
}

// tree returns the entries of a tree.
func (r *Repo) tree(ctx context.Context, commit, id string) ([]gitobj.Entry, error) {
	r.trees.mu.Lock()
	e, ok := r.trees.byID[id]
	r.trees.mu.Unlock()
	if ok {
		return e, nil
	}
	e, err := r.store.ReadTree(ctx, id)
	if err != nil {
		return nil, err
	}
	r.trees.mu.Lock()
	defer r.trees.mu.Unlock()
	if r.trees.byID == nil || len(r.trees.byID) > 20000 {
		r.trees.byID = map[string][]gitobj.Entry{}
	}
	r.trees.byID[id] = e
	return e, nil
}

// blobCache keeps files that were read: between most commits most files are
// the same. It forgets everything when it is full.
type blobCache struct {
	mu   sync.Mutex
	byID map[string][]byte
	size int
}

const blobCacheMax = 64 << 20

func (c *blobCache) get(id string) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b, ok := c.byID[id]
	return b, ok
}

func (c *blobCache) put(id string, b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byID == nil || c.size+len(b) > blobCacheMax {
		c.byID, c.size = map[string][]byte{}, 0
	}
	c.byID[id] = b
	c.size += len(b)
}

// blob returns a file's content, fetching it where the cache lacks it or has a
// damaged copy.
func (r *Repo) blob(ctx context.Context, commit string, f File) ([]byte, error) {
	_, data, err := r.store.Read(ctx, f.ID)
	if r.cache != nil && (errors.Is(err, gitobj.ErrMissing) || errors.Is(err, gitobj.ErrDamaged)) {
		if errors.Is(err, gitobj.ErrDamaged) {
			err = r.fetch(ctx, []string{commit}, err)
		} else {
			err = r.fetchBlobs(ctx, []string{f.ID})
		}
		if err == nil {
			_, data, err = r.store.Read(ctx, f.ID)
		}
	}
	if errors.Is(err, gitobj.ErrMissing) {
		err = &lackError{commit, []File{f}}
	}
	return data, r.explain(err, commit)
}
