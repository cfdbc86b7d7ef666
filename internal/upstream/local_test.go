package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"dot4fa/internal/fault"
	"dot4fa/internal/upstream/gitobj"
	"dot4fa/internal/upstream/gittest"
)

var ctx = context.Background()

// small is a tree in upstream's shape: what is excluded, executables, a link,
// names that are not ASCII.
var small = map[string]string{
	"CMakeLists.txt":           "project(x)\n",
	"ggml/src/ggml.c":          "int x;\n",
	"ggml/src/ggml-cuda/a.cuh": "#pragma once\n",
	"scripts/run.sh+x":         "#!/bin/sh\n",
	"models/vocab.gguf":        "large",
	"models/templates/t.jinja": "{{ x }}\n",
	"docs/build.md":            "how\n",
	"tools/docs/kept.md":       "kept\n",
	"media/logo.png":           "\x89PNG\r\n\x00",
	"crlf.txt":                 "a\r\nb\r\n",
	"empty":                    "",
	"link":                     "->ggml/src/ggml.c",
	"sub/up":                   "->../empty",
	"naïve name/é 字.txt":       "ü\n",
}

var someExcluded = []string{"models/*.gguf", "/docs/", "/media/"}

// upstreamRepo makes a repository with three commits; the second is tagged.
func upstreamRepo(t *testing.T) (r *gittest.Repo, ids []string) {
	r = gittest.New(t)
	ids = append(ids, r.Commit("first", small))
	r.Git("tag", "b1")
	ids = append(ids, r.Commit("second", map[string]string{"ggml/src/ggml.c": "int y;\n", "docs/build.md": "how else\n"}))
	r.Git("tag", "-a", "-m", "release", "b2")
	ids = append(ids, r.Commit("third", map[string]string{"ggml/src/new.c": "int z;\n"}))
	return r, ids
}

func open(t *testing.T, o Options) *Snapshot {
	t.Helper()
	if o.Exclude == nil {
		o.Exclude = someExcluded
	}
	s, err := Open(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func checkout(t *testing.T, s *Snapshot) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "wörk tree")
	if err := s.Checkout(ctx, dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// listing is a directory's files with kind, executable bit and content.
func listing(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		info, err := e.Info()
		if err != nil {
			return err
		}
		if e.Type()&fs.ModeSymlink != 0 {
			to, err := os.Readlink(p)
			out[rel] = "->" + to
			return err
		}
		data, err := os.ReadFile(p)
		if info.Mode()&0o111 != 0 {
			rel += "+x"
		}
		out[rel] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// wanted is small without what someExcluded names.
func wanted() map[string]string {
	out := map[string]string{}
	for p, c := range small {
		if p != "models/vocab.gguf" && !strings.HasPrefix(p, "docs/") && !strings.HasPrefix(p, "media/") {
			out[p] = c
		}
	}
	return out
}

func same(t *testing.T, got, want map[string]string) {
	t.Helper()
	for p, c := range want {
		if g, ok := got[p]; !ok || g != c {
			t.Errorf("%s = %q (there: %v), want %q", p, g, ok, c)
		}
	}
	for p := range got {
		if _, ok := want[p]; !ok {
			t.Errorf("%s should not be there", p)
		}
	}
}

// TestLocations: a bare repository, one with a work tree, a linked worktree, a
// shared clone and a plain directory all give the same files, and none of them
// is written to.
func TestLocations(t *testing.T) {
	r, ids := upstreamRepo(t)
	base := t.TempDir()
	bare, linked, shared, plain := filepath.Join(base, "bare.git"), filepath.Join(base, "linked"), filepath.Join(base, "shared"), filepath.Join(base, "plain")
	r.Git("clone", "-q", "--bare", r.Dir, bare)
	r.Git("worktree", "add", "-q", "--detach", linked, ids[2])
	r.Git("clone", "-q", "--shared", "--no-checkout", r.Dir, shared)
	p := gittest.Repo{T: t, Dir: plain}
	os.Mkdir(plain, 0o755)
	p.Write(small)
	// Uncommitted changes play no part.
	r.Write(map[string]string{"ggml/src/ggml.c": "changed", "new": "new"})
	want := ""
	for _, dir := range []string{r.Dir, bare, linked, shared, plain} {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			before := fingerprint(t, dir)
			s := open(t, Options{Location: dir, Commit: ids[0]})
			content, err := s.Content()
			if err != nil {
				t.Fatal(err)
			}
			if want == "" {
				want = content
			}
			if content != want {
				t.Errorf("content = %s, want %s", content, want)
			}
			if dir == plain {
				if s.Commit != "" {
					t.Errorf("a plain directory claims to be commit %s", s.Commit)
				}
			} else if s.Commit != ids[0] || s.Tree != r.Git("rev-parse", ids[0]+"^{tree}") || s.Subject != "first" {
				t.Errorf("snapshot = %+v", s)
			}
			out := checkout(t, s)
			same(t, listing(t, out), wanted())
			if _, err := os.Lstat(filepath.Join(out, ".git")); err == nil {
				t.Error("there is a .git in the checkout")
			}
			if got, err := HashDir(ctx, out, nil); err != nil || got != content {
				t.Errorf("HashDir = %s, %v, want %s", got, err, content)
			}
			if after := fingerprint(t, dir); after != before {
				t.Errorf("the location was written to:\n%s\nbefore:\n%s", after, before)
			}
		})
	}
}

// fingerprint is every path below dir with size and time of change.
func fingerprint(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			t.Fatal(err)
		}
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&b, p, info.Size(), info.ModTime().UnixNano(), info.Mode())
		return nil
	})
	return b.String()
}

func TestReading(t *testing.T) {
	r, ids := upstreamRepo(t)
	s := open(t, Options{Location: r.Dir, Commit: ids[1]})
	if data, err := s.ReadFile("ggml/src/ggml.c"); err != nil || string(data) != "int y;\n" {
		t.Errorf("ReadFile = %q, %v", data, err)
	}
	if id, err := s.BlobID("ggml/src/ggml.c"); err != nil || id != r.Git("rev-parse", ids[1]+":ggml/src/ggml.c") {
		t.Errorf("BlobID = %s, %v", id, err)
	}
	for _, p := range []string{"ggml/src/new.c", "ggml", "ggml/src/ggml.c/x", "nothing"} {
		if _, err := s.ReadFile(p); !IsNotExist(err) {
			t.Errorf("ReadFile(%q) = %v, want not exist", p, err)
		}
	}
	for _, p := range []string{"../x", "/etc/passwd", ".", "", "a//b", "./empty"} {
		if _, err := s.ReadFile(p); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("ReadFile(%q) = %v, want invalid", p, err)
		}
	}
	_, err := s.ReadFile("docs/build.md")
	if fault.Code(err) != fault.Usage || !strings.Contains(err.Error(), "excluded") {
		t.Errorf("an excluded file: %v", err)
	}
	files, err := s.Files()
	if err != nil || len(files) != len(wanted()) || !slices.IsSortedFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) }) {
		t.Errorf("Files = %v, %v", files, err)
	}
}

// drop removes an object from a repository.
func drop(t *testing.T, gitDir, id string) {
	t.Helper()
	if err := os.Remove(filepath.Join(gitDir, "objects", id[:2], id[2:])); err != nil {
		t.Fatal(err)
	}
}

// TestLackingBlobs: a repository without the excluded files' objects works, one
// without a needed file's names the path.
func TestLackingBlobs(t *testing.T) {
	r, ids := upstreamRepo(t)
	git := filepath.Join(r.Dir, ".git")
	drop(t, git, r.Git("rev-parse", ids[0]+":models/vocab.gguf"))
	drop(t, git, r.Git("rev-parse", ids[0]+":docs"))
	s := open(t, Options{Location: r.Dir, Commit: ids[0]})
	same(t, listing(t, checkout(t, s)), wanted())

	drop(t, git, r.Git("rev-parse", ids[0]+":ggml/src/ggml-cuda/a.cuh"))
	_, err := Open(ctx, Options{Location: r.Dir, Commit: ids[0], Exclude: someExcluded})
	expect(t, err, fault.Environment, "lacks ggml/src/ggml-cuda/a.cuh", "upstream.exclude")
	drop(t, git, r.Git("rev-parse", ids[0]+":crlf.txt"))
	_, err = Open(ctx, Options{Location: r.Dir, Commit: ids[0], Exclude: someExcluded})
	expect(t, err, fault.Environment, "lacks crlf.txt", "")
	if !strings.Contains(err.Error(), "and 1 more files") {
		t.Errorf("error = %v", err)
	}
	_, err = Open(ctx, Options{Location: r.Dir, Commit: ids[0]})
	expect(t, err, fault.Environment, "the repository is incomplete", "fetch it there")

	// At reads single files: the rest may be missing.
	repo, err := OpenRepo(ctx, Options{Location: r.Dir})
	if err != nil {
		t.Fatal(err)
	}
	defer repo.Close()
	at, err := repo.At(ctx, ids[0])
	if err != nil {
		t.Fatal(err)
	}
	if data, err := at.ReadFile("ggml/src/ggml.c"); err != nil || string(data) != "int x;\n" {
		t.Errorf("ReadFile = %q, %v", data, err)
	}
	_, err = at.ReadFile("crlf.txt")
	expect(t, err, fault.Environment, "lacks crlf.txt", "")
}

// TestPartialClone: what a partial clone lacks is not fetched behind our back.
func TestPartialClone(t *testing.T) {
	r, ids := upstreamRepo(t)
	clone := filepath.Join(t.TempDir(), "clone.git")
	r.Git("clone", "-q", "--bare", "--filter=blob:none", "file://"+strings.ReplaceAll(r.Dir, " ", "%20"), clone)
	before := fingerprint(t, clone)
	_, err := Open(ctx, Options{Location: clone, Commit: ids[0], Exclude: someExcluded})
	expect(t, err, fault.Environment, "lacks CMakeLists.txt", "complete repository")
	if fingerprint(t, clone) != before {
		t.Error("the clone was written to")
	}
}

// expect checks an error's exit code, message and hint.
func expect(t *testing.T, err error, code int, what, hint string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want %q", what)
		return
	}
	if fault.Code(err) != code || !strings.Contains(err.Error(), what) {
		t.Errorf("error (code %d) = %v, want code %d, %q", fault.Code(err), err, code, what)
	}
	if h := fault.Hint(err); h == "" || !strings.Contains(h, hint) {
		t.Errorf("hint of %v = %q, want %q", err, h, hint)
	}
}

func TestBadLocations(t *testing.T) {
	r, ids := upstreamRepo(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	empty := filepath.Join(dir, "empty")
	broken := filepath.Join(dir, "broken")
	gone := filepath.Join(dir, "gone")
	sha256 := filepath.Join(dir, "sha256")
	os.WriteFile(file, nil, 0o644)
	for _, d := range []string{empty, broken, gone, sha256} {
		os.Mkdir(d, 0o755)
	}
	os.WriteFile(filepath.Join(broken, ".git"), []byte("nonsense"), 0o644)
	os.WriteFile(filepath.Join(gone, ".git"), []byte("gitdir: ../nowhere\n"), 0o644)
	r.Git("init", "-q", "--object-format=sha256", sha256)
	none := strings.Repeat("1", 40)
	for name, c := range map[string]struct {
		o          Options
		code       int
		what, hint string
	}{
		"nothing given":  {Options{}, fault.Usage, "no upstream given", "--upstream"},
		"not there":      {Options{Location: filepath.Join(dir, "no")}, fault.Usage, "does not exist", "URL"},
		"host and path":  {Options{Location: "example.org/a/b"}, fault.Usage, "does not exist", "did you mean https://example.org/a/b"},
		"a file":         {Options{Location: file}, fault.Usage, "not a directory", "unpack"},
		"no files":       {Options{Location: empty}, fault.Usage, "has no files", ""},
		"broken .git":    {Options{Location: broken}, fault.Environment, ".git is not what git writes", ""},
		"worktree gone":  {Options{Location: gone}, fault.Environment, "repository is gone", "worktree repair"},
		"SHA-256":        {Options{Location: sha256}, fault.Environment, "SHA-256", ""},
		"strange scheme": {Options{Location: "ext::sh -c x"}, fault.Usage, "does not exist", ""},
		"unknown scheme": {Options{Location: "rsync://h/x"}, fault.Usage, "unknown kind of URL rsync://", "https"},
		"spaces in URL":  {Options{Location: "https://h/a b"}, fault.Usage, "not a URL", "%20"},
		"short commit":   {Options{Location: r.Dir, Commit: ids[0][:8]}, fault.Usage, "not a full commit id", "40"},
		"not a commit":   {Options{Location: r.Dir, Commit: r.Git("rev-parse", "HEAD^{tree}")}, fault.Usage, "is a tree, not a commit", "commit's id"},
		"unknown commit": {Options{Location: r.Dir, Commit: none}, fault.Environment, "does not have commit " + none, "fetch it there"},
		"bad pattern":    {Options{Location: r.Dir, Commit: ids[0], Exclude: []string{"a["}}, fault.Usage, "exclude pattern", ".gitignore"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(ctx, c.o)
			expect(t, err, c.code, c.what, c.hint)
		})
	}
}

// TestPassword: what is secret in a URL is not shown.
func TestPassword(t *testing.T) {
	for _, u := range []string{"https://user:secret@example.org/x", "https://secret@example.org/x"} {
		l, err := locate(u)
		if err != nil || strings.Contains(l.text, "secret") || l.url != u || !strings.Contains(l.text, "example.org/x") {
			t.Errorf("locate(%q) = %+v, %v", u, l, err)
		}
	}
}

func TestDamagedLocal(t *testing.T) {
	r, ids := upstreamRepo(t)
	s := open(t, Options{Location: r.Dir, Commit: ids[0]})
	id := r.Git("rev-parse", ids[0]+":crlf.txt")
	p := filepath.Join(r.Dir, ".git/objects", id[:2], id[2:])
	os.Chmod(p, 0o644)
	if err := os.WriteFile(p, []byte("noise"), 0o644); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "work")
	expect(t, s.Checkout(ctx, dir), fault.Environment, "damaged", "fsck")
	nothingLeft(t, dir)
}

// nothingLeft checks that neither dir nor anything beside it was left.
func nothingLeft(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Errorf("left behind: %s", e.Name())
	}
}

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

// TestHashDir agrees with git on what a tree is.
func TestHashDir(t *testing.T) {
	r, ids := upstreamRepo(t)
	got, err := HashDir(ctx, r.Dir, nil)
	if want := r.Git("rev-parse", ids[2]+"^{tree}"); err != nil || got != want {
		t.Errorf("HashDir = %s, %v, git says %s", got, err, want)
	}
	os.MkdirAll(filepath.Join(r.Dir, "no", "files"), 0o755)
	os.MkdirAll(filepath.Join(r.Dir, ".dot4fa"), 0o755)
	os.WriteFile(filepath.Join(r.Dir, ".dot4fa", "x"), nil, 0o644)
	if again, _ := HashDir(ctx, r.Dir, nil); again != got {
		t.Error("empty directories or .dot4fa count")
	}
	if _, err := HashDir(ctx, filepath.Join(r.Dir, "nothing"), nil); err == nil {
		t.Error("no error for a directory that is not there")
	}
	if id, err := HashDir(ctx, t.TempDir(), nil); err != nil || id != gitobj.HashTree(nil) {
		t.Errorf("an empty directory: %s, %v", id, err)
	}
}
