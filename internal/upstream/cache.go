package upstream

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"dot4fa/internal/fault"
)

// cacheRepo is the bare repository one URL is fetched into. It is dot4fa's own:
// everyone who writes to it holds the lock beside it, so that what an ended
// run left half-made can be told from what a running one is making.
type cacheRepo struct {
	dir      string
	loc      location
	git      *git // nil: go-git fetches
	progress Progress
}

func newCache(ctx context.Context, o Options, loc location, p Progress) (*cacheRepo, error) {
	root := o.CacheDir
	if root == "" {
		var err error
		if root, err = DefaultCacheDir(); err != nil {
			return nil, err
		}
	}
	c := &cacheRepo{dir: filepath.Join(root, "upstream", cacheName(loc.url)+".git"), loc: loc, progress: p}
	if o.Git != "none" {
		c.git = findGit(ctx, o.Git)
	}
	return c, nil
}

var reNotName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// cacheName is a readable, unique directory name for a URL.
func cacheName(url string) string {
	sum := sha256.Sum256([]byte(url))
	base := reNotName.ReplaceAllString(strings.TrimSuffix(path.Base(url), ".git"), "-")
	if len(base) > 40 {
		base = base[:40]
	}
	return strings.Trim(base, ".-") + "-" + hex.EncodeToString(sum[:6])
}

func (c *cacheRepo) exists() bool { return isGitDir(c.dir) }

// lock waits until no other dot4fa writes to this cache.
func (c *cacheRepo) lock(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(c.dir), 0o755); err != nil {
		return nil, c.cannotWrite(err)
	}
	l := flock.New(strings.TrimSuffix(c.dir, ".git") + ".lock")
	ok, err := l.TryLock()
	if err == nil && !ok {
		c.progress.Say("waiting for another dot4fa that is fetching %s", c.loc.text)
		ok, err = l.TryLockContext(ctx, 100*time.Millisecond)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil || !ok {
		return nil, c.cannotWrite(err)
	}
	return func() { l.Unlock() }, nil
}

// prepare makes the repository, or clears away what an ended run left in it.
// The lock is held.
func (c *cacheRepo) prepare() error {
	if !c.exists() {
		if _, err := os.Lstat(c.dir); err == nil {
			c.progress.Say("%s is no repository any more: making it anew", c.dir)
			if err := os.RemoveAll(c.dir); err != nil {
				return c.cannotWrite(err)
			}
		}
		return c.create(c.dir)
	}
	for _, pattern := range []string{"*.lock", "objects/pack/tmp_*", "objects/pack/.tmp-*", "objects/tmp_*", "refs/dot4fa/*.lock"} {
		stale, _ := filepath.Glob(filepath.Join(c.dir, filepath.FromSlash(pattern)))
		for _, f := range stale {
			if err := os.RemoveAll(f); err != nil {
				return c.cannotWrite(err)
			}
		}
	}
	return nil
}

// create makes an empty repository under a temporary name and moves it to dir.
func (c *cacheRepo) create(dir string) error {
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".new-*")
	if err != nil {
		return c.cannotWrite(err)
	}
	defer os.RemoveAll(tmp)
	err = os.Chmod(tmp, 0o755)
	for _, d := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags", "refs/dot4fa"} {
		err = errors.Join(err, os.MkdirAll(filepath.Join(tmp, filepath.FromSlash(d)), 0o755))
	}
	// A promisor remote: git then accepts that objects are left out.
	config := fmt.Sprintf("[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tpartialClone = origin\n"+
		"[remote \"origin\"]\n\turl = %s\n\tpromisor = true\n\tpartialclonefilter = blob:none\n", quoteConfig(c.loc.url))
	for name, text := range map[string]string{
		"HEAD":        "ref: refs/heads/none\n",
		"config":      config,
		"description": "cache of dot4fa; may be removed at any time\n",
	} {
		err = errors.Join(err, os.WriteFile(filepath.Join(tmp, name), []byte(text), 0o600))
	}
	if err == nil {
		err = os.Rename(tmp, dir)
	}
	if err != nil {
		return c.cannotWrite(err)
	}
	return nil
}

func quoteConfig(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(s) + `"`
}

func (c *cacheRepo) cannotWrite(err error) error {
	where := filepath.Dir(c.dir)
	e := fault.New(fault.Environment, "cannot write to the cache: %w", err).At("%s", where)
	switch {
	case err == nil:
		return fault.New(fault.Environment, "cannot lock the cache").At("%s", where).Hintf("set DOT4FA_CACHE to a directory on a local disk")
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		return noSpace(where, err)
	case errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS):
		return e.Hintf("set DOT4FA_CACHE to a directory you can write to, or give a local repository with --upstream")
	}
	return e.Hintf("check the directory, or set DOT4FA_CACHE to another one")
}

func noSpace(where string, err error) error {
	return fault.New(fault.Environment, "no space left in the cache: %w", err).At("%s", where).
		Hintf("free some space there or set DOT4FA_CACHE to a directory with about 200 MiB, then run the command again; nothing half made was left behind")
}

// aside moves a repository that is of no use out of the way; restore puts it
// back.
func (c *cacheRepo) aside() (restore, drop func(), err error) {
	old := c.dir + ".damaged"
	if err := os.RemoveAll(old); err != nil {
		return nil, nil, c.cannotWrite(err)
	}
	if err := os.Rename(c.dir, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, c.cannotWrite(err)
	}
	restore = func() {
		os.RemoveAll(c.dir)
		os.Rename(old, c.dir)
	}
	return restore, func() { os.RemoveAll(old) }, nil
}

// remove makes room for a new repository.
func (c *cacheRepo) remove() error {
	if err := os.RemoveAll(c.dir); err != nil {
		return c.cannotWrite(err)
	}
	return nil
}

// refused are git's words for a server that does not have an object or does not
// give it by id; the others name their own kind of fault.
var (
	reRefused = regexp.MustCompile(`(?i)not our ref|unadvertised object|couldn't find remote ref|no such remote ref|remote did not send|reference not found|object not found|support exact sha1`)
	reNetwork = regexp.MustCompile(`(?i)could not resolve|failed to connect|couldn't connect|connection refused|timed out|timeout|network is unreachable|no route to host|unable to connect|name resolution|no such host|i/o timeout|proxy|temporary failure`)
	reBroken  = regexp.MustCompile(`(?i)early eof|unexpected eof|unexpected disconnect|hung up|rpc failed|index-pack|connection reset|broken pipe|pack|pkt-len|empty reply|^eof$|: eof$|transfer closed`)
	reAuth    = regexp.MustCompile(`(?i)authentication|authorization|could not read username|could not read password|terminal prompts disabled|permission denied|host key verification|access denied|http 40[13]|error: 40[13]`)
	reNoRepo  = regexp.MustCompile(`(?i)not found|does not appear to be a git repository|does not exist|no such file|not valid: is this a git repository`)
	reTLS     = regexp.MustCompile(`(?i)certificate|ssl|tls|x509`)
	reLocal   = regexp.MustCompile(`(?i)bad object|bad config|corrupt|loose object|index unavailable|unable to read|could not parse|shallow|not a git repository \(|malformed idx|packfile not found`)
	reSpace   = regexp.MustCompile(`(?i)no space left|disk quota`)
)

// refusedError: the server does not have the object, or does not give it by id.
type refusedError struct{ err error }

func (e *refusedError) Error() string { return e.err.Error() }
func (e *refusedError) Unwrap() error { return e.err }

// doubtError may be the cache's fault and not the server's: with a new cache
// the same may work.
type doubtError struct{ err error }

func (e *doubtError) Error() string { return e.err.Error() }
func (e *doubtError) Unwrap() error { return e.err }

// judge turns an error of talking to the server into one for the user. A
// refusal stays recognisable.
func (c *cacheRepo) judge(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
	msg, all := err.Error(), err.Error()
	var g *gitError
	if errors.As(err, &g) {
		all = g.stderr
	}
	at := func(format string) *fault.Error {
		return fault.New(fault.Environment, format+": %s", strings.ReplaceAll(msg, c.loc.url, c.loc.text)).At("%s", c.loc.text)
	}
	const local = "give a local clone with --upstream DIR (or DOT4FA_UPSTREAM)"
	switch {
	case errors.Is(err, syscall.ENOSPC), reSpace.MatchString(all):
		return noSpace(filepath.Dir(c.dir), err)
	case reLocal.MatchString(all):
		return &doubtError{at("cannot fetch upstream").Hintf("remove %s and run the command again, or %s", c.dir, local)}
	case reNetwork.MatchString(all):
		return at("cannot reach upstream").Hintf("check the network and the proxy settings, or %s", local)
	case reTLS.MatchString(all):
		return at("the server's certificate is not accepted").Hintf("check the clock and the certificates, or %s", local)
	case reAuth.MatchString(all):
		return at("the server asks for credentials").Hintf("check the URL; a repository that needs them is best cloned by hand: %s", local)
	case reRefused.MatchString(all):
		return &refusedError{err}
	case reNoRepo.MatchString(all):
		return at("no git repository there").Hintf("check the URL, or %s", local)
	case reBroken.MatchString(all):
		return at("the connection broke off").Hintf("run the command again, or %s; nothing half made was left behind", local)
	}
	return &doubtError{at("cannot fetch upstream").Hintf("run the command again, or %s", local)}
}
