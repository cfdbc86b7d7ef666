package series

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const pin = "d775b8967a46d8beb110d444aa3b8938179e0dd8"

// upstream reads the files of the tree or repository DOT4FA_UPSTREAM names, at
// the pin when it is a repository.
func upstream(t *testing.T) ReadFunc {
	t.Helper()
	dir := os.Getenv("DOT4FA_UPSTREAM")
	if dir == "" {
		t.Skip("upstream tree: DOT4FA_UPSTREAM is not set")
	}
	if _, err := os.Stat(filepath.Join(dir, "ggml")); err == nil {
		return func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(dir, filepath.FromSlash(name))) }
	}
	if err := exec.Command("git", "-C", dir, "cat-file", "-e", pin+"^{commit}").Run(); err != nil {
		t.Skip("upstream tree: DOT4FA_UPSTREAM is neither a tree nor a local repository with the pin")
	}
	return func(name string) ([]byte, error) { return gitShow(dir, pin, name) }
}

func gitShow(dir, commit, name string) ([]byte, error) {
	out, err := exec.Command("git", "-C", dir, "show", commit+":"+name).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && strings.Contains(string(exit.Stderr), "does not exist") {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	return out, err
}

// TestSeams finds every place of the design's list on the real tree, and applies
// and takes back a marker at each.
func TestSeams(t *testing.T) {
	read := upstream(t)
	s, err := Load(os.DirFS("testdata/seams"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Plan(read, nil)
	if err != nil {
		t.Fatal(err)
	}
	tree := files{}
	for _, e := range s.Edits() {
		data, err := read(e.File)
		if err != nil {
			t.Fatal(err)
		}
		tree[e.File] = string(data)
	}
	checkDiffs(t, p, tree)
	ctx, dir := context.Background(), checkout(t, tree)
	before := snapshot(t, dir)
	if _, err := Apply(ctx, dir, p, nil, Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := Unapply(ctx, dir, nil, nil, Options{}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(before, snapshot(t, dir)); d != "" {
		t.Error(d)
	}
}

// TestSeriesOnUpstream checks the repository's own series at the pin.
func TestSeriesOnUpstream(t *testing.T) {
	read := upstream(t)
	s, err := Load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	s.Hooks.Contains = func(commit string) (bool, error) {
		return false, fmt.Errorf("the tests do not know the history around %s", commit)
	}
	results, err := s.Check(read)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Failed() {
			t.Errorf("%s: %s: %s %+v", r.ID, r.Status, r.Detail, r.Candidates)
		}
	}
}
