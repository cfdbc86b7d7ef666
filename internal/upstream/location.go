package upstream

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"dot4fa/internal/fault"
	"dot4fa/internal/input"
)

// place is what a location turns out to be.
type place int

const (
	remote    place = iota // a URL: fetched into the cache
	localRepo              // a repository on this machine: read in place
	directory              // files without a repository
)

// location is a place upstream can be read from.
type location struct {
	kind   place
	text   string // as given, without a password: for messages
	url    string // remote
	dir    string // directory: where the files are; localRepo: the directory given
	gitDir string // localRepo: this work tree's git directory (HEAD)
	common string // localRepo: where objects and refs are
}

var reSCP = regexp.MustCompile(`^[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:[^\\]`)

// locate decides what a location is, without a network.
func locate(s string) (location, error) {
	if s == "" {
		return location{}, fault.New(fault.Usage, "no upstream given").Hintf("give --upstream a URL, a repository or a directory, or set upstream.url in the recipe")
	}
	if strings.Contains(s, "://") || reSCP.MatchString(s) {
		return locateURL(s)
	}
	dir, err := filepath.Abs(s)
	if err != nil {
		return location{}, err
	}
	hint := "give a URL (https://…), a repository or a directory with llama.cpp's files; unpack an archive first"
	if host, _, ok := strings.Cut(s, "/"); ok && strings.Contains(host, ".") && !strings.HasPrefix(s, ".") {
		hint = "did you mean https://" + s
	}
	if err := input.Dir(s, hint); err != nil {
		return location{}, err
	}
	return locateDir(s, dir)
}

func locateURL(s string) (location, error) {
	l := location{kind: remote, text: s, url: s}
	if u, err := url.Parse(s); err == nil && u.Host != "" {
		if u.User != nil {
			if _, has := u.User.Password(); has || u.Scheme == "https" || u.Scheme == "http" {
				u.User = url.User("***")
				l.text = strings.Replace(u.String(), "%2A%2A%2A", "***", 1)
			}
		}
	}
	scheme, _, _ := strings.Cut(s, "://")
	if strings.Contains(s, "://") {
		switch scheme {
		case "https", "http", "ssh", "git", "file":
		default:
			return l, fault.New(fault.Usage, "unknown kind of URL %s://", scheme).At("%s", l.text).Hintf("use https, ssh, git or file")
		}
	}
	if strings.ContainsAny(s, " \t\r\n\x00") || strings.HasPrefix(s, "-") {
		return l, fault.New(fault.Usage, "not a URL").At("%s", l.text).Hintf("write spaces as %%20")
	}
	return l, nil
}

// locateDir finds the repository of a directory: bare, with a .git directory,
// or a linked worktree whose .git is a file. A directory somewhere inside a
// work tree is a plain directory.
func locateDir(text, dir string) (location, error) {
	l := location{kind: localRepo, text: text, dir: dir}
	dotGit := filepath.Join(dir, ".git")
	fi, err := os.Stat(dotGit)
	switch {
	case err == nil && fi.IsDir():
		l.gitDir = dotGit
	case err == nil:
		data, err := os.ReadFile(dotGit)
		if err != nil {
			return l, fault.Read(err, dotGit)
		}
		to, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir: ")
		if !ok {
			return l, fault.New(fault.Environment, ".git is not what git writes").At("%s", dotGit).Hintf("give the main repository")
		}
		l.gitDir = resolve(dir, to)
		if !isGitDir(l.gitDir) {
			return l, fault.New(fault.Environment, "the worktree's repository is gone: %s", l.gitDir).At("%s", text).
				Hintf("run git worktree repair, or give the main repository")
		}
	case isGitDir(dir):
		l.gitDir = dir
	default:
		l.kind = directory
		return l, nil
	}
	l.common = l.gitDir
	if data, err := os.ReadFile(filepath.Join(l.gitDir, "commondir")); err == nil {
		l.common = resolve(l.gitDir, strings.TrimSpace(string(data)))
	}
	if !isGitDir(l.common) {
		return l, fault.New(fault.Environment, "not a usable git repository: no objects in %s", l.common).At("%s", text).
			Hintf("give a repository made by git clone, or a URL")
	}
	config, err := os.ReadFile(filepath.Join(l.common, "config"))
	if err == nil && reSHA256.Match(config) {
		return l, fault.New(fault.Environment, "the repository uses SHA-256 ids").At("%s", text).
			Hintf("llama.cpp's ids are SHA-1: give a clone made without --object-format")
	}
	return l, nil
}

var reSHA256 = regexp.MustCompile(`(?im)^\s*objectformat\s*=\s*sha256`)

func resolve(base, p string) string {
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(base, p)
}

// isGitDir reports whether dir looks like a git directory, also one of a
// linked worktree, which has no objects of its own.
func isGitDir(dir string) bool {
	if _, err := os.Stat(filepath.Join(dir, "HEAD")); err != nil {
		return false
	}
	for _, sub := range []string{"objects", "commondir"} {
		if _, err := os.Stat(filepath.Join(dir, sub)); err == nil {
			return true
		}
	}
	return false
}
