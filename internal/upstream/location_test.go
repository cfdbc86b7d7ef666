package upstream

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dot4fa/internal/fault"
)

func TestBadLocations(t *testing.T) {
	r, ids := upstreamRepo(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	empty := filepath.Join(dir, "empty")
	broken := filepath.Join(dir, "broken")
	gone := filepath.Join(dir, "gone")
	sha256 := filepath.Join(dir, "sha256")
	os.WriteFile(file, nil, 0o644)
	made := filepath.Join(dir, "made")
	os.MkdirAll(filepath.Join(made, ".dot4fa"), 0o755)
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
		"a work tree":    {Options{Location: made}, fault.Usage, "a work tree that dot4fa made", "dot4fa.lock"},
		"all excluded":   {Options{Location: r.Dir, Commit: ids[0], Exclude: []string{"*"}}, fault.Usage, "no files that are not excluded", "upstream.exclude"},
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
