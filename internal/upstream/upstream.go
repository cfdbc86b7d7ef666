// Package upstream brings llama.cpp's files: at an exact commit, from a URL, a
// repository on this machine or a plain directory.
//
// A local repository (bare, with a work tree, or a linked worktree) is read in
// place and never written to; uncommitted changes in it play no part. Objects
// that only excluded paths need may be missing from it. A URL is fetched into
// a bare cache, by exact commit, without history, and without the excluded
// files where the server and the system's git know how; once a commit is in
// the cache no network is asked. A plain directory is taken as it is: nothing
// proves which commit its files are (Snapshot.Commit is empty).
//
// Everything read from a repository is hashed on the way, from the commit id
// down to each file.
package upstream

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"dot4fa/internal/fault"
	"dot4fa/internal/shell"
	"dot4fa/internal/upstream/exclude"
	"dot4fa/internal/upstream/gitobj"
)

// Options say what to open.
type Options struct {
	Location string   // URL, local repository or directory
	Commit   string   // 40 hex digits; not used for a directory
	Tag      string   // the release tag Commit belongs to; helps with servers that refuse bare ids
	CacheDir string   // where fetched repositories are kept; empty means DefaultCacheDir
	Exclude  []string // paths never read, see package exclude
	Progress Progress // nil for silence
	Git      string   // the git program; empty means the one on PATH, "none" means go-git only
}

// Progress receives what a user waits for. *progress.Reporter is one.
type Progress interface {
	Say(format string, args ...any)    // a line that stays
	Status(format string, args ...any) // a line that is replaced by the next
}

type silent struct{}

func (silent) Say(string, ...any)    {}
func (silent) Status(string, ...any) {}

// DefaultCacheDir is $DOT4FA_CACHE, or dot4fa under the user's cache directory.
func DefaultCacheDir() (string, error) {
	if d := os.Getenv("DOT4FA_CACHE"); d != "" {
		return filepath.Abs(d)
	}
	d, err := os.UserCacheDir()
	if err != nil {
		return "", fault.New(fault.Environment, "no cache directory: %w", err).Hintf("set DOT4FA_CACHE to a directory")
	}
	return filepath.Join(d, "dot4fa"), nil
}

// Open returns upstream's files at o.Commit, fetching them first where needed.
// When it returns, every file that is not excluded is at hand. Close the
// snapshot when done.
func Open(ctx context.Context, o Options) (*Snapshot, error) {
	r, err := OpenRepo(ctx, o)
	if err != nil {
		return nil, err
	}
	s, err := r.open(ctx, o.Commit)
	if err != nil {
		r.Close()
		return nil, err
	}
	s.ownsRepo = true
	return s, nil
}

// Repo is a place upstream is read from, at any number of commits. It and its
// snapshots are for one goroutine at a time: reading may fetch.
type Repo struct {
	loc      location
	exclude  *exclude.List
	progress Progress
	tag      string
	store    *gitobj.Store // nil for a directory
	cache    *cacheRepo    // nil unless remote
	trees    treeCache
	blobs    blobCache
}

// OpenRepo opens a location. For a URL nothing is fetched yet. o.Commit is not used.
func OpenRepo(ctx context.Context, o Options) (*Repo, error) {
	ex, err := exclude.Parse(o.Exclude)
	if err != nil {
		return nil, fault.New(fault.Usage, "%w", err).Hintf("correct upstream.exclude in the recipe: the patterns are those of a .gitignore")
	}
	loc, err := locate(o.Location)
	if err != nil {
		return nil, err
	}
	r := &Repo{loc: loc, exclude: ex, progress: o.Progress, tag: o.Tag}
	if r.progress == nil {
		r.progress = silent{}
	}
	switch loc.kind {
	case remote:
		if r.cache, err = newCache(ctx, o, loc, r.progress); err != nil {
			return nil, err
		}
		if r.cache.exists() {
			r.store, err = gitobj.Open(r.cache.dir)
		}
	case localRepo:
		r.store, err = gitobj.Open(loc.common)
	}
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot open the repository: %w", err).At("%s", loc.text).
			Hintf("git fsck says what is wrong with a repository; give another one with --upstream")
	}
	return r, nil
}

// Close gives open files back.
func (r *Repo) Close() error {
	if r.store != nil {
		return r.store.Close()
	}
	return nil
}

// Remote reports whether the location is a URL, so that commits may have to be fetched.
func (r *Repo) Remote() bool { return r.loc.kind == remote }

// IsDirectory reports whether the location is a plain directory, which has no commits.
func (r *Repo) IsDirectory() bool { return r.loc.kind == directory }

// open returns the snapshot of a commit with every needed file at hand.
func (r *Repo) open(ctx context.Context, commit string) (*Snapshot, error) {
	if r.loc.kind == directory {
		return r.openDir(ctx)
	}
	if !gitobj.IsID(commit) {
		return nil, fault.New(fault.Usage, "%q is not a full commit id", commit).Hintf("give all 40 hex digits")
	}
	if r.cache == nil {
		s, err := r.whole(ctx, commit)
		return s, r.explain(err, commit)
	}
	var last error
	if r.store != nil {
		s, err := r.whole(ctx, commit)
		if err == nil {
			return s, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if errors.Is(err, gitobj.ErrType) {
			return nil, r.explain(err, commit)
		}
		last = err
	}
	if err := r.fetch(ctx, []string{commit}, last); err != nil {
		return nil, err
	}
	s, err := r.whole(ctx, commit)
	return s, r.explain(err, commit)
}

// whole returns a commit's snapshot after making sure that nothing needed is
// missing. It fetches nothing.
func (r *Repo) whole(ctx context.Context, commit string) (*Snapshot, error) {
	s, err := r.snapshot(ctx, commit)
	if err != nil {
		return nil, err
	}
	if err := s.walk(ctx); err != nil {
		return nil, err
	}
	if len(s.files) == 0 {
		return nil, fault.New(fault.Usage, "commit %s has no files that are not excluded", short(commit)).At("%s", r.loc.text).
			Hintf("check upstream.exclude in the recipe")
	}
	var lack []File
	for _, f := range s.files {
		if !r.store.Has(f.ID) {
			lack = append(lack, f)
		}
	}
	if len(lack) > 0 {
		return nil, &lackError{commit, lack}
	}
	return s, nil
}

// snapshot reads the commit itself.
func (r *Repo) snapshot(ctx context.Context, commit string) (*Snapshot, error) {
	if r.store == nil {
		return nil, fmt.Errorf("%w: %s", gitobj.ErrMissing, commit)
	}
	c, err := r.store.ReadCommit(ctx, commit)
	if err != nil {
		return nil, err
	}
	return &Snapshot{Commit: c.ID, Tree: c.Tree, Date: c.Date, Subject: c.Subject, repo: r}, nil
}

// lackError says which needed files a repository does not have.
type lackError struct {
	commit string
	files  []File
}

func (e *lackError) Error() string {
	s := "the repository lacks " + e.files[0].Path + " (object " + e.files[0].ID[:10] + ")"
	if n := len(e.files) - 1; n > 0 {
		s += fmt.Sprintf(" and %d more files", n)
	}
	return s + " of commit " + short(e.commit)
}

func short(id string) string {
	if len(id) > 10 {
		return id[:10]
	}
	return id
}

// explain turns an error of reading a repository into one for the user.
func (r *Repo) explain(err error, commit string) error {
	var lack *lackError
	var known *fault.Error
	switch {
	case err == nil || errors.As(err, &known) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &lack):
		return fault.New(fault.Environment, "%w", err).At("%s", r.loc.text).
			Hintf("the build needs it: give a complete repository or a URL, or, if it is not needed, add it to upstream.exclude in the recipe")
	case errors.Is(err, gitobj.ErrType):
		return fault.New(fault.Usage, "%w", err).At("%s", r.loc.text).Hintf("give a commit's id")
	case errors.Is(err, gitobj.ErrDamaged):
		if r.cache != nil {
			return fault.New(fault.Environment, "the cached repository is damaged: %w", err).At("%s", r.cache.dir).
				Hintf("remove that directory and run the command again with a network")
		}
		return fault.New(fault.Environment, "the repository is damaged: %w", err).At("%s", r.loc.text).
			Hintf("run git -C %s fsck, or give another repository", shell.Quote(r.loc.text))
	case errors.Is(err, gitobj.ErrMissing):
		if commit == "" || r.store != nil && r.store.Has(commit) {
			return fault.New(fault.Environment, "the repository is incomplete: %w", err).At("%s", r.loc.text).
				Hintf("run git -C %s fsck to see what it lacks, or give a complete repository or a URL", shell.Quote(r.loc.text))
		}
		return fault.New(fault.Environment, "the repository does not have commit %s", commit).At("%s", r.loc.text).
			Hintf("fetch it there (git -C %s fetch <url> %s), or give a URL or a repository that has it", shell.Quote(r.loc.text), commit)
	}
	return fault.New(fault.Environment, "cannot read the repository: %w", err).At("%s", r.loc.text).Hintf("give another repository or a URL")
}

// Snapshot is upstream's files at one commit.
type Snapshot struct {
	Commit  string    // full id; empty for a plain directory, whose commit nothing proves
	Tree    string    // the commit's git tree id; for a directory, that of its files
	Date    time.Time // the commit's date, UTC
	Subject string    // first line of the commit's message

	repo     *Repo
	ownsRepo bool
	walked   bool
	files    []File // not excluded, in path order
	byPath   map[string]int
	content  string
	dir      string // plain directory
	create   creator
}

// Close gives open files back.
func (s *Snapshot) Close() error {
	if s.ownsRepo {
		return s.repo.Close()
	}
	return nil
}
