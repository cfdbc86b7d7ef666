package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"dot4fa/internal/fault"
	"dot4fa/internal/upstream/gitobj"
)

// creator makes a new file; a test puts a full disk here.
type creator func(name string, perm fs.FileMode) (io.WriteCloser, error)

func createNew(name string, perm fs.FileMode) (io.WriteCloser, error) {
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
}

// stateDir is dot4fa's own directory in a work tree.
const stateDir = ".dot4fa"

// Checkout writes the files that are not excluded to dir, which must not exist
// or be empty. The files are written beside dir, read back and hashed, and only
// then moved there: dir is never half made. Nothing in it points into a repository.
func (s *Snapshot) Checkout(ctx context.Context, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := s.walk(ctx); err != nil {
		return s.repo.explain(err, s.Commit)
	}
	if err := vacant(dir); err != nil {
		return err
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return cannotWrite(parent, err)
	}
	pattern := "." + filepath.Base(dir) + ".checkout-"
	sweep(parent, pattern)
	tmp, err := os.MkdirTemp(parent, pattern+"*")
	if err != nil {
		return cannotWrite(parent, err)
	}
	done := false
	defer func() {
		if !done {
			os.RemoveAll(tmp)
		}
	}()
	held, err := os.Open(tmp)
	if err != nil {
		return cannotWrite(tmp, err)
	}
	defer held.Close()
	hold(held)
	if err := os.Chmod(tmp, 0o755); err != nil {
		return cannotWrite(tmp, err)
	}
	if err := s.write(ctx, tmp, dir); err != nil {
		return err
	}
	_, got, err := hashDir(ctx, tmp, func(string, bool) bool { return false })
	if err != nil {
		return err
	}
	if got != s.content {
		return fault.New(fault.Environment, "what was written is not what was read: tree %s, want %s", got, s.content).At("%s", dir).
			Hintf("check the disk, and whether the file system keeps executable bits, symbolic links and the case of names")
	}
	err = os.Remove(dir)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = os.Rename(tmp, dir)
	}
	if err != nil {
		return cannotWrite(dir, err)
	}
	done = true
	return nil
}

// vacant checks that nothing would be overwritten.
func vacant(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, syscall.ENOTDIR):
		return fault.New(fault.Usage, "is a file, not a directory").At("%s", dir).Hintf("give another --work directory")
	case err != nil:
		return fault.New(fault.Environment, "cannot read the work directory: %w", err).At("%s", dir).Hintf("give another --work directory")
	case len(entries) > 0:
		return fault.New(fault.Failure, "the directory is not empty: it has %s", entries[0].Name()).At("%s", dir).
			Hintf("give a new --work directory, or remove this one if nothing in it is needed")
	}
	return nil
}

// sweep removes what killed runs left: temporary directories nobody holds.
func sweep(parent, prefix string) {
	entries, _ := os.ReadDir(parent)
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		p := filepath.Join(parent, e.Name())
		if f, err := os.Open(p); err == nil {
			if hold(f) {
				os.RemoveAll(p)
			}
			f.Close()
		}
	}
}

// write writes every file under tmp. dir is what messages call it.
func (s *Snapshot) write(ctx context.Context, tmp, dir string) error {
	create := s.create
	if create == nil {
		create = createNew
	}
	made := map[string]bool{".": true}
	step := max(len(s.files)/50, 1)
	for i, f := range s.files {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if i%step == 0 {
			s.repo.progress.Status("checkout %d%%", 100*i/len(s.files))
		}
		data, err := s.load(ctx, f)
		if err != nil {
			return err
		}
		if d := path.Dir(f.Path); !made[d] {
			if err := os.MkdirAll(filepath.Join(tmp, filepath.FromSlash(d)), 0o755); err != nil {
				return cannotWrite(filepath.Join(dir, d), err)
			}
			made[d] = true
		}
		name := filepath.Join(tmp, filepath.FromSlash(f.Path))
		if f.Mode == gitobj.ModeLink {
			if err := safeLink(f.Path, string(data)); err != nil {
				return err
			}
			if err := os.Symlink(filepath.FromSlash(string(data)), name); err != nil {
				return cannotWrite(filepath.Join(dir, f.Path), err)
			}
			continue
		}
		perm := fs.FileMode(0o644)
		if f.Mode == gitobj.ModeExec {
			perm = 0o755
		}
		if err := writeFile(create, name, perm, data); err != nil {
			return cannotWrite(filepath.Join(dir, f.Path), err)
		}
	}
	return nil
}

// load reads a file once, without keeping it.
func (s *Snapshot) load(ctx context.Context, f File) ([]byte, error) {
	if s.dir != "" {
		return readDirFile(s.dir, f)
	}
	return s.repo.blob(ctx, s.Commit, f)
}

func writeFile(create creator, name string, perm fs.FileMode, data []byte) error {
	w, err := create(name, perm)
	if err != nil {
		return err
	}
	if n, err := w.Write(data); err != nil || n != len(data) {
		w.Close()
		if err == nil {
			err = io.ErrShortWrite
		}
		return err
	}
	return w.Close()
}

// safeLink refuses a link that leaves the tree. Only leading ".." are followed
// on paper: after a name, which may be a link itself, a ".." proves nothing.
func safeLink(name, to string) error {
	depth := strings.Count(name, "/")
	down := false
	bad := to == "" || strings.HasPrefix(to, "/") || strings.ContainsAny(to, "\\\x00") || filepath.IsAbs(filepath.FromSlash(to))
	for part := range strings.SplitSeq(to, "/") {
		switch part {
		case "", ".":
		case "..":
			depth--
			bad = bad || down || depth < 0
		case ".git":
			bad = true
		default:
			down = true
		}
	}
	if bad {
		return fault.New(fault.Failure, "the symbolic link points outside the tree: %q", to).At("%s", name).
			Hintf("this is not upstream as it should be: do not use it, or exclude the path in the recipe")
	}
	return nil
}

// cannotWrite says why a file or directory could not be written.
func cannotWrite(where string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		return fault.New(fault.Environment, "no space left: %w", err).At("%s", where).
			Hintf("free some space there, or choose another --work directory; nothing half made was left behind")
	case errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS):
		return fault.New(fault.Environment, "cannot write: %w", err).At("%s", where).
			Hintf("choose a --work directory you can write to")
	}
	return fault.New(fault.Environment, "cannot write: %w", err).At("%s", where).Hintf("check the disk and the path")
}

// HashDir returns the git tree id of the files under dir. skip says which paths
// (forward slashes, below dir) play no part; .git and .dot4fa at the top never
// do. Empty directories do not count, as in git.
func HashDir(ctx context.Context, dir string, skip func(path string, isDir bool) bool) (string, error) {
	if skip == nil {
		skip = func(string, bool) bool { return false }
	}
	_, id, err := hashDir(ctx, dir, skip)
	return id, err
}

func hashDir(ctx context.Context, root string, skip func(string, bool) bool) ([]File, string, error) {
	var files []File
	var visit func(rel string) (string, error)
	visit = func(rel string) (string, error) {
		entries, err := os.ReadDir(filepath.Join(root, filepath.FromSlash(rel)))
		if err != nil {
			return "", err
		}
		var tree []gitobj.Entry
		for _, e := range entries {
			if err := ctx.Err(); err != nil {
				return "", context.Cause(ctx)
			}
			p := path.Join(rel, e.Name())
			if rel == "" && (e.Name() == ".git" || e.Name() == stateDir) || skip(p, e.IsDir()) {
				continue
			}
			full := filepath.Join(root, filepath.FromSlash(p))
			switch typ := e.Type(); {
			case typ.IsDir():
				id, err := visit(p)
				if err != nil {
					return "", err
				}
				if id != emptyTree {
					tree = append(tree, gitobj.Entry{Mode: gitobj.ModeDir, Name: e.Name(), ID: id})
				}
				continue
			case typ&fs.ModeSymlink != 0:
				to, err := os.Readlink(full)
				if err != nil {
					return "", err
				}
				files = append(files, File{p, gitobj.ModeLink, gitobj.Hash(gitobj.Blob, []byte(filepath.ToSlash(to)))})
			case typ.IsRegular():
				info, err := e.Info()
				if err != nil {
					return "", err
				}
				data, err := os.ReadFile(full)
				if err != nil {
					return "", err
				}
				mode := gitobj.ModeFile
				if info.Mode()&0o100 != 0 {
					mode = gitobj.ModeExec
				}
				files = append(files, File{p, mode, gitobj.Hash(gitobj.Blob, data)})
			default:
				return "", fmt.Errorf("%s is neither a file, a directory nor a symbolic link", p)
			}
			f := files[len(files)-1]
			tree = append(tree, gitobj.Entry{Mode: f.Mode, Name: e.Name(), ID: f.ID})
		}
		return gitobj.HashTree(tree), nil
	}
	id, err := visit("")
	return files, id, err
}
