package cli_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/rogpeppe/go-internal/testscript"
)

// branch NAME REF DIR SUBJECT commits the files of DIR on top of REF, in the
// repository up/, as the branch NAME. What is checked out there stays.
func branch(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: branch NAME REF DIR SUBJECT")
	}
	up := filepath.Join(ts.Getenv("WORK"), "up")
	repo, err := git.PlainOpen(up)
	ts.Check(err)
	tree, err := repo.Worktree()
	ts.Check(err)
	head, err := repo.Head()
	ts.Check(err)
	base, err := repo.ResolveRevision(plumbing.Revision(args[1]))
	ts.Check(err)
	ts.Check(tree.Checkout(&git.CheckoutOptions{Hash: *base, Branch: plumbing.NewBranchReferenceName(args[0]), Create: true}))
	from := ts.MkAbs(args[2])
	ts.Check(filepath.WalkDir(from, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := write(filepath.Join(up, rel), string(data), 0o644); err != nil {
			return err
		}
		_, err = tree.Add(filepath.ToSlash(rel))
		return err
	}))
	who := &object.Signature{Name: "somebody", Email: "somebody@example.invalid", When: time.Date(2026, 8, 9, 12, 0, 0, 0, time.UTC)}
	_, err = tree.Commit(args[3], &git.CommitOptions{Author: who, Committer: who})
	ts.Check(err)
	ts.Check(tree.Checkout(&git.CheckoutOptions{Branch: head.Name()}))
}
