package series

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"syscall"
	"time"

	"dot4fa/internal/fault"

	"github.com/gofrs/flock"
)

// tree is a work tree. Everything goes through an os.Root, so that no symbolic
// link inside it can lead a write outside.
type tree struct {
	*os.Root
	dir  string
	n    int          // temporary files made
	step func() error // see Options
}

// manifest is the record of an apply, kept as .dot4fa/applied.json. It is written
// before the first file changes and names every content a file may have until
// the last one has, so that an interrupted run can be completed or taken back.
type manifest struct {
	records map[string]*record
}

// record is what is known of one file that was edited or made.
type record struct {
	Path string   `json:"path"`
	Pre  string   `json:"pre,omitempty"` // sha256 of upstream's content; empty when there was no file
	Mode uint32   `json:"mode,omitempty"`
	Post []string `json:"post"`           // sha256 of what we write, newest first; more than one while a run is under way
	Dirs []string `json:"dirs,omitempty"` // directories made for it
}

func (r *record) wrote(digest string) bool {
	for _, p := range r.Post {
		if p == digest {
			return true
		}
	}
	return false
}

const (
	manifestFile = stateDir + "/applied.json"
	preDir       = stateDir + "/pre"
	tmpDir       = stateDir + "/tmp"
	lockFile     = stateDir + "/lock"
)

func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}

const eROFS = syscall.EROFS // a read-only file system

func isReadOnly(err error) bool { return errors.Is(err, eROFS) }

func openTree(dir string) (*tree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fault.New(fault.Failure, "cannot open the work tree: %w", err).At("%s", dir).
			Hintf("`dot4fa fetch` makes it")
	}
	return &tree{Root: root, dir: dir}, nil
}

// look finds out what a.path holds and decides its state.
func (t *tree) look(a *action) error {
	info, err := t.Lstat(filepath.FromSlash(a.path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case errors.Is(err, syscall.ENOTDIR):
		a.foreign("a parent of it is not a directory")
		return nil
	case err != nil && (errors.Is(err, fs.ErrPermission) || isReadOnly(err)):
		return writeFault(err, t.dir)
	case err != nil:
		a.foreign(err.Error())
		return nil
	case info.Mode()&fs.ModeSymlink != 0:
		a.foreign("it is a symbolic link")
		return nil
	case !info.Mode().IsRegular():
		a.foreign("it is not a regular file")
		return nil
	default:
		data, err := t.ReadFile(filepath.FromSlash(a.path))
		if err != nil {
			return writeFault(err, t.dir)
		}
		a.seen, a.mode = sum(data), info.Mode().Perm()
	}
	a.decide()
	return nil
}

// stateDirOK makes the state directory and refuses one that is a link.
func (t *tree) stateDirOK() error {
	if err := t.MkdirAll(stateDir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return writeFault(err, t.dir)
	}
	for _, p := range []string{stateDir, preDir, tmpDir, lockFile, manifestFile} {
		info, err := t.Lstat(p)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return writeFault(err, t.dir)
		}
		if dir := p == stateDir || p == preDir || p == tmpDir; dir != info.IsDir() || !dir && !info.Mode().IsRegular() {
			return fault.New(fault.EditFails, "%s is not what dot4fa makes there", p).At("%s", t.dir).
				Hintf("move it away")
		}
	}
	return nil
}

// lock takes the work tree for this run; waiting is called when it has to wait.
func (t *tree) lock(ctx context.Context, waiting func(string)) (func(), error) {
	if err := t.stateDirOK(); err != nil {
		return nil, err
	}
	name := filepath.Join(t.dir, filepath.FromSlash(lockFile))
	l := flock.New(name)
	ok, err := l.TryLock()
	if err == nil && !ok {
		if waiting != nil {
			waiting(name)
		}
		ok, err = l.TryLockContext(ctx, 50*time.Millisecond)
	}
	if err == nil && ok {
		return func() { _ = l.Close() }, nil
	}
	if ctx.Err() != nil {
		return nil, fault.New(fault.Interrupted, "interrupted while waiting for another run on this work tree").At("%s", t.dir).
			Hintf("the same command waits again; --work names another directory")
	}
	return nil, writeFault(fmt.Errorf("cannot lock %s: %w", name, err), t.dir)
}

func (t *tree) loadManifest() (*manifest, error) {
	m := &manifest{records: map[string]*record{}}
	data, err := t.ReadFile(manifestFile)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return nil, writeFault(err, t.dir)
	}
	var file struct {
		Files []*record `json:"files"`
	}
	err = json.Unmarshal(data, &file)
	for _, r := range file.Files {
		if err == nil && r == nil {
			err = errors.New("it has an empty record")
		}
		if err == nil {
			err = cleanPath(r.Path)
		}
		if err != nil {
			break
		}
		m.records[r.Path] = r
	}
	if err != nil {
		return nil, fault.New(fault.EditFails, "the record of the last apply cannot be read: %w", err).
			At("%s", filepath.Join(t.dir, manifestFile)).
			Hintf("move the work tree away and fetch it again, or restore the file")
	}
	return m, nil
}

// saveManifest writes m, or removes it when it is empty.
func (t *tree) saveManifest(m *manifest) error {
	if len(m.records) == 0 {
		if err := t.remove(manifestFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	var file struct {
		Files []*record `json:"files"`
	}
	for _, p := range slices.Sorted(maps.Keys(m.records)) {
		file.Files = append(file.Files, m.records[p])
	}
	data, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		return err
	}
	return t.write(manifestFile, append(data, '\n'), 0o644)
}

// write puts data under name at once: a temporary file, synced, then renamed.
func (t *tree) write(name string, data []byte, mode fs.FileMode) (err error) {
	if err := t.stepped(); err != nil {
		return err
	}
	if err := t.MkdirAll(tmpDir, 0o755); err != nil {
		return err
	}
	var tmp string
	var f *os.File
	for range 100 {
		t.n++
		tmp = fmt.Sprintf("%s/%d-%d", tmpDir, os.Getpid(), t.n)
		f, err = t.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = t.Remove(tmp)
		}
	}()
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	if err := t.MkdirAll(filepath.FromSlash(path.Dir(name)), 0o755); err != nil {
		return err
	}
	if err := t.stepped(); err != nil {
		return err
	}
	return t.Rename(tmp, filepath.FromSlash(name))
}

func (t *tree) remove(name string) error {
	if err := t.stepped(); err != nil {
		return err
	}
	return t.Remove(filepath.FromSlash(name))
}

func (t *tree) stepped() error {
	if t.step == nil {
		return nil
	}
	return t.step()
}

// keep stores a pre-image under its digest.
func (t *tree) keep(data []byte) error {
	name := preDir + "/" + sum(data)
	if old, err := t.ReadFile(name); err == nil && sum(old) == sum(data) {
		return nil
	}
	return t.write(name, data, 0o644)
}

// kept returns a stored pre-image.
func (t *tree) kept(digest string) ([]byte, error) {
	data, err := t.ReadFile(preDir + "/" + digest)
	if err == nil && sum(data) != digest {
		err = errors.New("it is damaged")
	}
	return data, err
}

// missingDirs lists the directories that have to be made for name, outermost first.
func (t *tree) missingDirs(name string) []string {
	var dirs []string
	for d := path.Dir(name); d != "."; d = path.Dir(d) {
		if _, err := t.Lstat(filepath.FromSlash(d)); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		dirs = append(dirs, d)
	}
	sort.Strings(dirs)
	return dirs
}

// prune removes what only an apply needs from the state directory.
func (t *tree) prune(digests map[string]bool) {
	if d, err := t.Open(preDir); err == nil {
		names, _ := d.Readdirnames(-1)
		_ = d.Close()
		for _, n := range names {
			if !digests[n] {
				_ = t.Remove(preDir + "/" + n)
			}
		}
	}
	_ = t.RemoveAll(tmpDir)
	if len(digests) == 0 {
		_ = t.Remove(preDir)
	}
}
