package upstream

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	// What a caller does with the bytes is its own business.
	for range 3 {
		data, err := s.ReadFile("ggml/src/ggml.c")
		if err != nil || string(data) != "int y;\n" {
			t.Fatalf("ReadFile = %q, %v", data, err)
		}
		data[0] = 'X'
		_ = append(data, "more"...)
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
	expect(t, err, fault.Environment, "the repository is incomplete", "complete repository")

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
