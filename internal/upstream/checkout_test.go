package upstream

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"dot4fa/internal/fault"
	"dot4fa/internal/upstream/gittest"
)

func TestCheckoutTargets(t *testing.T) {
	r, ids := upstreamRepo(t)
	s := open(t, Options{Location: r.Dir, Commit: ids[0]})
	base := t.TempDir()
	empty, full, file := filepath.Join(base, "empty"), filepath.Join(base, "full"), filepath.Join(base, "file")
	os.Mkdir(empty, 0o755)
	os.Mkdir(full, 0o755)
	os.WriteFile(filepath.Join(full, "mine"), []byte("x"), 0o644)
	os.WriteFile(file, nil, 0o644)
	for _, dir := range []string{empty, filepath.Join(base, "a", "b", "c")} {
		if err := s.Checkout(ctx, dir); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
		same(t, listing(t, dir), wanted())
	}
	expect(t, s.Checkout(ctx, full), fault.Failure, "not empty: it has mine", "--work")
	expect(t, s.Checkout(ctx, empty), fault.Failure, "not empty", "--work")
	expect(t, s.Checkout(ctx, file), fault.Usage, "is a file", "--work")
	expect(t, s.Checkout(ctx, filepath.Join(file, "x")), fault.Usage, "is a file", "--work")
	if data, err := os.ReadFile(filepath.Join(full, "mine")); err != nil || string(data) != "x" {
		t.Error("a file in the way was lost")
	}
}

// failing makes a creator whose n-th file cannot be written as a whole.
func failing(n int, err error) creator {
	return func(name string, perm fs.FileMode) (io.WriteCloser, error) {
		if n--; n > 0 {
			return createNew(name, perm)
		}
		f, e := createNew(name, perm)
		if e != nil {
			return nil, e
		}
		return &halfWriter{f, err}, nil
	}
}

type halfWriter struct {
	io.WriteCloser
	err error
}

func (s *halfWriter) Write(p []byte) (int, error) {
	n, _ := s.WriteCloser.Write(p[:len(p)/2])
	return n, s.err
}

func TestCheckoutFails(t *testing.T) {
	r, ids := upstreamRepo(t)
	for name, c := range map[string]struct {
		create     creator
		what, hint string
	}{
		"full disk":   {failing(3, &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}), "no space left", "free some space"},
		"quota":       {failing(5, syscall.EDQUOT), "no space left", "free some space"},
		"read-only":   {func(string, fs.FileMode) (io.WriteCloser, error) { return nil, syscall.EROFS }, "cannot write", "can write to"},
		"permission":  {func(string, fs.FileMode) (io.WriteCloser, error) { return nil, syscall.EACCES }, "cannot write", "can write to"},
		"short write": {failing(2, nil), "cannot write", "check the disk"},
		"disk lies": {func(name string, perm fs.FileMode) (io.WriteCloser, error) {
			w, err := createNew(name, perm)
			if strings.HasSuffix(name, "ggml.c") {
				os.Chmod(name, 0o755)
			}
			return w, err
		}, "what was written is not what was read", "check the disk"},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, Options{Location: r.Dir, Commit: ids[0]})
			s.create = c.create
			dir := filepath.Join(t.TempDir(), "work")
			expect(t, s.Checkout(ctx, dir), fault.Environment, c.what, c.hint)
			nothingLeft(t, dir)
			s.create = nil
			if err := s.Checkout(ctx, dir); err != nil {
				t.Errorf("the same again without the fault: %v", err)
			}
		})
	}
}

// cancelAt cancels when the nth status line comes.
type cancelAt struct {
	n      int
	cancel context.CancelFunc
}

func (c *cancelAt) Say(string, ...any) {}
func (c *cancelAt) Status(string, ...any) {
	if c.n--; c.n == 0 {
		c.cancel()
	}
}

func TestCheckoutCancelled(t *testing.T) {
	r, ids := upstreamRepo(t)
	for _, n := range []int{1, 4, 10} {
		c, cancel := context.WithCancel(ctx)
		s := open(t, Options{Location: r.Dir, Commit: ids[0], Progress: &cancelAt{n, cancel}})
		dir := filepath.Join(t.TempDir(), "work")
		if err := s.Checkout(c, dir); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled at file %d: %v", n, err)
		}
		nothingLeft(t, dir)
	}
}

// TestSweep: what a killed run left goes, what a running one is making stays.
func TestSweep(t *testing.T) {
	r, ids := upstreamRepo(t)
	s := open(t, Options{Location: r.Dir, Commit: ids[0]})
	base := t.TempDir()
	dead, live, other := filepath.Join(base, ".work.checkout-dead"), filepath.Join(base, ".work.checkout-live"), filepath.Join(base, ".other.checkout-1")
	for _, d := range []string{dead, live, other} {
		os.MkdirAll(filepath.Join(d, "x"), 0o755)
	}
	f, err := os.Open(live)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if !hold(f) {
		t.Skip("directories cannot be locked here")
	}
	if err := s.Checkout(ctx, filepath.Join(base, "work")); err != nil {
		t.Fatal(err)
	}
	for d, want := range map[string]bool{dead: false, live: true, other: true} {
		if _, err := os.Stat(d); (err == nil) != want {
			t.Errorf("%s: there = %v, want %v", filepath.Base(d), err == nil, want)
		}
	}
}

func TestLinks(t *testing.T) {
	for _, c := range []struct {
		name, to string
		ok       bool
	}{
		{"a", "b", true}, {"d/a", "../b", true}, {"d/e/a", "../../b", true}, {"a", "./b/c", true}, {"a", ".", true},
		{"a", "..", false}, {"a", "../b", false}, {"d/a", "../../b", false}, {"a", "/etc/passwd", false}, {"a", "", false},
		{"a", "b/../../c", false}, {"a", "b/..", false}, {"a", ".git/config", false}, {"a", `..\b`, false}, {"a", "x\x00y", false},
	} {
		if err := safeLink(c.name, c.to); (err == nil) != c.ok {
			t.Errorf("%s -> %q: %v, want ok = %v", c.name, c.to, err, c.ok)
		}
	}
	r := gittest.New(t)
	id := r.Commit("bad", map[string]string{"ok": "x", "z": "->../outside"})
	s := open(t, Options{Location: r.Dir, Commit: id})
	dir := filepath.Join(t.TempDir(), "work")
	expect(t, s.Checkout(ctx, dir), fault.Failure, "points outside the tree", "exclude the path")
	nothingLeft(t, dir)
}

// TestSubmodule: a submodule is no file of the commit.
func TestSubmodule(t *testing.T) {
	r := gittest.New(t)
	r.Write(map[string]string{"a": "1"})
	r.Git("add", "a")
	r.Git("update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",sub/mod")
	r.Git("commit", "-qm", "x")
	s := open(t, Options{Location: r.Dir, Commit: r.Git("rev-parse", "HEAD")})
	same(t, listing(t, checkout(t, s)), map[string]string{"a": "1"})
	if _, err := s.ReadFile("sub/mod"); !IsNotExist(err) {
		t.Errorf("ReadFile of a submodule: %v", err)
	}
}

func TestDirectoryChanges(t *testing.T) {
	dir := t.TempDir()
	p := gittest.Repo{T: t, Dir: dir}
	p.Write(map[string]string{"a": "1", "b": "2"})
	s := open(t, Options{Location: dir})
	p.Write(map[string]string{"b": "3"})
	work := filepath.Join(t.TempDir(), "work")
	expect(t, s.Checkout(ctx, work), fault.Environment, "changed while", "again")
	nothingLeft(t, work)
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err == nil {
		_, err := Open(ctx, Options{Location: dir})
		expect(t, err, fault.Environment, "neither a file", "")
	}
}
