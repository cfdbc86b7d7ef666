package gitobj_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"dot4fa/internal/upstream/gitobj"
	"dot4fa/internal/upstream/gittest"
)

var ctx = context.Background()

// history makes a repository with deltas, large and empty files, tags.
func history(t *testing.T) (*gittest.Repo, []string) {
	r := gittest.New(t)
	var lines []string
	for i := range 400 {
		lines = append(lines, fmt.Sprintf("line %d of a file that changes a little each time", i))
	}
	for i := range 6 {
		lines[i*50] = fmt.Sprintf("changed in %d", i)
		r.Commit(fmt.Sprintf("change %d", i), map[string]string{
			"big.txt": strings.Join(lines, "\n"), "dir/sub/f" + fmt.Sprint(i): fmt.Sprint(i), "empty": "", "run.sh+x": "#!/bin/sh\n", "link": "->dir/sub/f0",
		})
	}
	r.Git("tag", "-a", "-m", "annotated", "v1")
	ids := strings.Fields(r.Git("cat-file", "--batch-all-objects", "--batch-check=%(objectname)"))
	return r, ids
}

func open(t *testing.T, dir string) *gitobj.Store {
	t.Helper()
	s, err := gitobj.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// raw is what git says an object is.
func raw(t *testing.T, r *gittest.Repo, id string) (string, string) {
	t.Helper()
	typ := r.Git("cat-file", "-t", id)
	cmd := exec.Command("git", "-C", r.Dir, "cat-file", typ, id)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return typ, string(out)
}

func TestReadsWhatGitReads(t *testing.T) {
	r, ids := history(t)
	check := func(t *testing.T, dir string) {
		s := open(t, dir)
		for _, id := range ids {
			typ, data, err := s.Read(ctx, id)
			wantType, want := raw(t, r, id)
			if err != nil || string(typ) != wantType || string(data) != want {
				t.Errorf("%s: %s of %d bytes, %v; want %s of %d", id, typ, len(data), err, wantType, len(want))
			}
			if !s.Has(id) {
				t.Errorf("Has(%s) = false", id)
			}
		}
		none := strings.Repeat("0", 39) + "1"
		if _, _, err := s.Read(ctx, none); !errors.Is(err, gitobj.ErrMissing) || s.Has(none) {
			t.Errorf("an object that is not there: %v", err)
		}
		if _, _, err := s.Read(ctx, "abc"); err == nil {
			t.Error("a short id was read")
		}
	}
	if len(ids) < 25 {
		t.Fatalf("only %d objects", len(ids))
	}
	t.Run("loose", func(t *testing.T) { check(t, filepath.Join(r.Dir, ".git")) })
	r.Pack()
	t.Run("packed", func(t *testing.T) { check(t, filepath.Join(r.Dir, ".git")) })
	t.Run("alternates", func(t *testing.T) {
		clone := filepath.Join(t.TempDir(), "c.git")
		r.Git("clone", "-q", "--bare", "--shared", r.Dir, clone)
		check(t, clone)
	})
}

func TestCancelled(t *testing.T) {
	r, ids := history(t)
	c, cancel := context.WithCancel(ctx)
	cancel()
	if _, _, err := open(t, filepath.Join(r.Dir, ".git")).Read(c, ids[0]); !errors.Is(err, context.Canceled) {
		t.Errorf("Read = %v", err)
	}
}

// TestDamage: whatever byte of a pack is changed, an object is read right or not
// at all. Every object is unreadable for some byte, so that the check can fail.
func TestDamage(t *testing.T) {
	r, ids := history(t)
	r.Pack()
	want := map[string]string{}
	for _, id := range ids {
		_, want[id] = raw(t, r, id)
	}
	packs, _ := filepath.Glob(filepath.Join(r.Dir, ".git/objects/pack/*.pack"))
	if len(packs) != 1 {
		t.Fatalf("packs: %v", packs)
	}
	good, err := os.ReadFile(packs[0])
	if err != nil {
		t.Fatal(err)
	}
	os.Chmod(packs[0], 0o644)
	hit := map[string]bool{}
	for at := 12; at < len(good)-20; at += 5 {
		bad := append([]byte(nil), good...)
		bad[at] ^= 0x55
		if err := os.WriteFile(packs[0], bad, 0o644); err != nil {
			t.Fatal(err)
		}
		s, err := gitobj.Open(filepath.Join(r.Dir, ".git"))
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			_, data, err := s.Read(ctx, id)
			switch {
			case err == nil && string(data) != want[id]:
				t.Fatalf("byte %d: object %s is read wrong", at, id)
			case errors.Is(err, gitobj.ErrDamaged):
				hit[id] = true
			case err != nil:
				t.Fatalf("byte %d: %s: %v, want ErrDamaged", at, id, err)
			}
		}
		s.Close()
	}
	if len(hit) != len(ids) {
		t.Errorf("%d of %d objects were ever damaged", len(hit), len(ids))
	}
}

// TestDamagedIndex: a changed byte of the index may hide objects, it never
// gives wrong ones.
func TestDamagedIndex(t *testing.T) {
	r, ids := history(t)
	r.Pack()
	want := map[string]string{}
	for _, id := range ids {
		_, want[id] = raw(t, r, id)
	}
	files, _ := filepath.Glob(filepath.Join(r.Dir, ".git/objects/pack/*.idx"))
	good, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	os.Chmod(files[0], 0o644)
	failed := 0
	for at := 0; at < len(good); at += 23 {
		bad := append([]byte(nil), good...)
		bad[at] ^= 0x55
		if err := os.WriteFile(files[0], bad, 0o644); err != nil {
			t.Fatal(err)
		}
		s, err := gitobj.Open(filepath.Join(r.Dir, ".git"))
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			if _, data, err := s.Read(ctx, id); err != nil {
				failed++
			} else if string(data) != want[id] {
				t.Fatalf("byte %d: object %s is read wrong", at, id)
			}
		}
		s.Close()
	}
	if failed == 0 {
		t.Error("no damage was ever noticed")
	}
}

func TestDamagedLoose(t *testing.T) {
	r, ids := history(t)
	id := ids[0]
	p := filepath.Join(r.Dir, ".git/objects", id[:2], id[2:])
	other := filepath.Join(r.Dir, ".git/objects", ids[1][:2], ids[1][2:])
	swap, err := os.ReadFile(other)
	if err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(p)
	if err != nil {
		t.Fatal(err)
	}
	os.Chmod(p, 0o644)
	for name, data := range map[string][]byte{"another's": swap, "empty": nil, "cut": good[:len(good)/2], "noise": []byte("noise")} {
		if err := os.WriteFile(p, data, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, _, err := open(t, filepath.Join(r.Dir, ".git")).Read(ctx, id); !errors.Is(err, gitobj.ErrDamaged) {
			t.Errorf("%s: %v, want ErrDamaged", name, err)
		}
	}
}

func TestCommitsAndTrees(t *testing.T) {
	r, _ := history(t)
	s := open(t, filepath.Join(r.Dir, ".git"))
	head, tag := r.Git("rev-parse", "HEAD"), r.Git("rev-parse", "v1")
	if head == tag {
		t.Fatal("the tag is not annotated")
	}
	c, err := s.ReadCommit(ctx, tag)
	if err != nil || c.ID != head || c.Tree != r.Git("rev-parse", "HEAD^{tree}") || c.Subject != "change 5" ||
		c.Date.Format("2006-01-02") != "2026-01-06" || len(c.Parents) != 1 {
		t.Errorf("commit = %+v, %v", c, err)
	}
	entries, err := s.ReadTree(ctx, c.Tree)
	if err != nil {
		t.Fatal(err)
	}
	if got := gitobj.HashTree(entries); got != c.Tree {
		t.Errorf("HashTree = %s, want %s", got, c.Tree)
	}
	if _, err := s.ReadTree(ctx, head); err == nil {
		t.Error("a commit was read as a tree")
	}
	if _, err := s.ReadCommit(ctx, c.Tree); err == nil {
		t.Error("a tree was read as a commit")
	}
	ids, err := s.Prefix(head[:7])
	if err != nil || len(ids) != 1 || ids[0] != head {
		t.Errorf("Prefix = %v, %v", ids, err)
	}
	refs, err := s.Refs()
	if err != nil || refs["refs/heads/master"] != head || refs["refs/tags/v1"] != tag || refs["HEAD"] != head {
		t.Errorf("Refs = %v, %v", refs, err)
	}
}

// TestHashTreeOrder: git sorts a directory as if its name ended in a slash.
func TestHashTreeOrder(t *testing.T) {
	r := gittest.New(t)
	r.Commit("c", map[string]string{"a/x": "1", "a.c": "2", "a-b": "3", "a0": "4", "ab": "5"})
	s := open(t, filepath.Join(r.Dir, ".git"))
	tree := r.Git("rev-parse", "HEAD^{tree}")
	entries, err := s.ReadTree(ctx, tree)
	if err != nil {
		t.Fatal(err)
	}
	for i, j := 0, len(entries)-1; i < j; i, j = i+1, j-1 {
		entries[i], entries[j] = entries[j], entries[i]
	}
	if got := gitobj.HashTree(entries); got != tree {
		t.Errorf("HashTree of the entries reversed = %s, want %s", got, tree)
	}
}

// TestHostileTree: names that would leave the directory are refused.
func TestHostileTree(t *testing.T) {
	r := gittest.New(t)
	blob := r.In("x", "hash-object", "-w", "--stdin")
	s := open(t, filepath.Join(r.Dir, ".git"))
	for _, name := range []string{"..", ".", "", ".git", ".GIT", "a/b", `a\b`} {
		var raw strings.Builder
		raw.WriteString("100644 " + name + "\x00")
		for i := 0; i < 40; i += 2 {
			var b byte
			fmt.Sscanf(blob[i:i+2], "%02x", &b)
			raw.WriteByte(b)
		}
		id := r.In(raw.String(), "hash-object", "-w", "-t", "tree", "--literally", "--stdin")
		if _, err := s.ReadTree(ctx, id); err == nil {
			t.Errorf("a tree with the name %q was read", name)
		}
	}
	cut := r.In("100644 a\x00short", "hash-object", "-w", "-t", "tree", "--literally", "--stdin")
	if _, err := s.ReadTree(ctx, cut); !errors.Is(err, gitobj.ErrDamaged) {
		t.Errorf("a tree cut short: %v", err)
	}
}

func TestOpenNothing(t *testing.T) {
	if _, err := gitobj.Open(t.TempDir()); err == nil {
		t.Error("a directory without objects was opened")
	}
}
