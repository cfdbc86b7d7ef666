// Package gitobj reads objects of a git repository in place, without writing
// to it and without asking a network for what is missing. Every object is
// hashed again before it is handed out, so that from a commit id down to a
// file's bytes nothing has to be trusted.
package gitobj

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// Type is what an object is.
type Type string

// The types of object.
const (
	Commit Type = "commit"
	Tree   Type = "tree"
	Blob   Type = "blob"
	Tag    Type = "tag"
)

// Errors of reading, each wrapped with the object's id.
var (
	ErrMissing = errors.New("object missing")
	ErrDamaged = errors.New("object damaged")
	ErrType    = errors.New("object of another type")
)

// cacheSize bounds the memory for delta bases. Neighbouring versions of large
// files are deltas of each other; below 64 MiB the real repository reads
// noticeably slower.
const cacheSize = 96 * cache.MiByte

// Store reads the objects of one repository and of those it borrows from
// (objects/info/alternates). It may be used by several goroutines, which take
// turns.
type Store struct {
	dir string

	mu  sync.Mutex
	all []*filesystem.Storage // the repository's own first
}

// Open returns a Store on a git directory (the .git directory, or a bare
// repository); for a linked worktree that is the main repository's.
func Open(dir string) (*Store, error) {
	s := &Store{dir: dir}
	return s, s.open()
}

func (s *Store) open() error {
	dirs, err := borrowed(s.dir)
	if err != nil {
		return err
	}
	for _, d := range dirs {
		// KeepDescriptors keeps the packs open between reads. No repository
		// configuration is read: formats and extensions are judged by the
		// caller. go-git's own handling of alternates opens them anew for
		// every object and does not know them in HasEncodedObject.
		s.all = append(s.all, filesystem.NewStorageWithOptions(osfs.New(d), cache.NewObjectLRU(cacheSize),
			filesystem.Options{KeepDescriptors: true}))
	}
	return nil
}

// borrowed lists a git directory and those whose objects it uses too.
func borrowed(dir string) ([]string, error) {
	if fi, err := os.Stat(filepath.Join(dir, "objects")); err != nil {
		return nil, err
	} else if !fi.IsDir() {
		return nil, fmt.Errorf("%s is not a directory", filepath.Join(dir, "objects"))
	}
	out := []string{dir}
	seen := map[string]bool{filepath.Join(dir, "objects"): true}
	for i := 0; i < len(out); i++ {
		objects := filepath.Join(out[i], "objects")
		data, err := os.ReadFile(filepath.Join(objects, "info", "alternates"))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			line = strings.TrimRight(line, "\r\n")
			if line == "" || line[0] == '#' {
				continue
			}
			if !filepath.IsAbs(line) {
				line = filepath.Join(objects, line)
			}
			line = filepath.Clean(line)
			if fi, err := os.Stat(line); err == nil && fi.IsDir() && filepath.Base(line) == "objects" && !seen[line] {
				seen[line] = true
				out = append(out, filepath.Dir(line))
			}
		}
	}
	return out, nil
}

// Close gives the open packs back.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, st := range s.all {
		errs = append(errs, st.Close())
	}
	return errors.Join(errs...)
}

// Has reports whether the repository has an object of this id. It does not read it.
func (s *Store) Has(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	st, err := s.find(plumbing.NewHash(id))
	return st != nil && err == nil
}

// find returns where an object is: ErrMissing for nowhere, ErrDamaged when an
// index cannot be read.
func (s *Store) find(h plumbing.Hash) (found *filesystem.Storage, err error) {
	defer func() {
		if p := recover(); p != nil { // as in read
			found, err = nil, fmt.Errorf("%w: %s: %v", ErrDamaged, h, p)
		}
	}()
	err = fmt.Errorf("%w: %s", ErrMissing, h)
	for _, st := range s.all {
		switch e := st.HasEncodedObject(h); {
		case e == nil:
			return st, nil
		case !errors.Is(e, plumbing.ErrObjectNotFound):
			err = fmt.Errorf("%w: %s: %v", ErrDamaged, h, e)
		}
	}
	return nil, err
}

// Read returns an object's type and content. The error is ErrMissing, or
// ErrDamaged when the content cannot be read or is not what the id says.
func (s *Store) Read(ctx context.Context, id string) (Type, []byte, error) {
	if err := ctx.Err(); err != nil {
		return "", nil, err
	}
	if !IsID(id) {
		return "", nil, fmt.Errorf("%q is not an object id", id)
	}
	s.mu.Lock()
	typ, data, err := s.read(id)
	s.mu.Unlock()
	if err != nil {
		return "", nil, err
	}
	if got := Hash(typ, data); got != id {
		return "", nil, fmt.Errorf("%w: %s has the content of %s", ErrDamaged, id, got)
	}
	return typ, data, nil
}

func (s *Store) read(id string) (typ Type, data []byte, err error) {
	defer func() {
		// go-git's pack reader panics on some damaged packs.
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %s: %v", ErrDamaged, id, p)
		}
	}()
	st, err := s.find(plumbing.NewHash(id))
	if err != nil {
		return "", nil, err
	}
	o, err := st.EncodedObject(plumbing.AnyObject, plumbing.NewHash(id))
	if err != nil { // also when what it is a delta of is missing
		return "", nil, fmt.Errorf("%w: %s: %v", ErrDamaged, id, err)
	}
	r, err := o.Reader()
	if err != nil {
		return "", nil, fmt.Errorf("%w: %s: %v", ErrDamaged, id, err)
	}
	defer r.Close()
	data, err = io.ReadAll(r)
	if err != nil {
		return "", nil, fmt.Errorf("%w: %s: %v", ErrDamaged, id, err)
	}
	return Type(o.Type().String()), data, nil
}

// Hash returns the id of an object of this type and content.
func Hash(t Type, data []byte) string {
	h := sha1.New()
	io.WriteString(h, string(t)+" "+strconv.Itoa(len(data))+"\x00")
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil))
}

// IsID reports whether s is a full object id: 40 lower-case hex digits.
func IsID(s string) bool {
	return len(s) == 40 && strings.Trim(s, "0123456789abcdef") == ""
}

// Refs returns all refs by full name with the object each points at; symbolic
// ones are followed.
func (s *Store) Refs() (map[string]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	it, err := s.all[0].IterReferences()
	if err != nil {
		return nil, err
	}
	defer it.Close()
	out := map[string]string{}
	sym := map[string]string{}
	err = it.ForEach(func(r *plumbing.Reference) error {
		if r.Type() == plumbing.SymbolicReference {
			sym[r.Name().String()] = r.Target().String()
		} else {
			out[r.Name().String()] = r.Hash().String()
		}
		return nil
	})
	for name, to := range sym {
		if id, ok := out[to]; ok {
			out[name] = id
		}
	}
	return out, err
}

// Prefix returns the ids of all objects that start with these hex digits.
func (s *Store) Prefix(start string) ([]string, error) {
	raw, err := hex.DecodeString(start[:len(start)&^1])
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	seen := map[string]bool{}
	for _, st := range s.all {
		hashes, err := st.HashesWithPrefix(raw)
		if err != nil {
			return nil, err
		}
		for _, h := range hashes {
			if id := h.String(); strings.HasPrefix(id, start) && !seen[id] {
				seen[id] = true
				out = append(out, id)
			}
		}
	}
	return out, nil
}
