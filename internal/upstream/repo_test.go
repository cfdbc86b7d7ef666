package upstream

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dot4fa/internal/fault"
	"dot4fa/internal/upstream/gittest"
)

func openRepo(t *testing.T, o Options) *Repo {
	t.Helper()
	r, err := OpenRepo(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func TestResolveRef(t *testing.T) {
	each(t, func(t *testing.T, git string) {
		r, ids := upstreamRepo(t)
		r.Git("branch", "side", ids[0])
		r.Git("branch", "b2", ids[0]) // a branch called as a tag
		r.Git("update-ref", "refs/remotes/origin/main", ids[1])
		r.Git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
		want := map[string]string{
			"b1": ids[0], "b2": ids[1], "refs/tags/b2": ids[1], "tags/b1": ids[0], "side": ids[0], "heads/side": ids[0],
			"master": ids[2], "HEAD": ids[2], ids[1]: ids[1], ids[2][:9]: ids[2], strings.ToUpper(ids[2][:9]): ids[2],
			r.Git("rev-parse", "b2"): ids[1], r.Git("rev-parse", "b2")[:8]: ids[1],
		}
		localOnly := map[string]string{"origin": ids[1], "origin/main": ids[1]}
		linked := filepath.Join(t.TempDir(), "linked")
		r.Git("worktree", "add", "-q", "--detach", linked, ids[1])
		srv := serve(t, r)
		for name, o := range map[string]Options{
			"local": {Location: r.Dir}, "linked": {Location: linked}, "remote": {Location: srv.url(), CacheDir: t.TempDir(), Git: git},
		} {
			repo := openRepo(t, o)
			for ref, id := range want {
				if name == "linked" && ref == "HEAD" {
					id = ids[1]
				}
				if name == "remote" && (ref == r.Git("rev-parse", "b2") || ref == r.Git("rev-parse", "b2")[:8]) {
					continue // only a repository knows a tag object by its id
				}
				if got, err := repo.ResolveRef(ctx, ref); err != nil || got != id {
					t.Errorf("%s: ResolveRef(%q) = %s, %v, want %s", name, ref, got, err, id)
				}
			}
			for ref, id := range localOnly {
				if got, err := repo.ResolveRef(ctx, ref); name != "remote" && (err != nil || got != id) {
					t.Errorf("%s: ResolveRef(%q) = %s, %v, want %s", name, ref, got, err, id)
				}
			}
			for ref, c := range map[string]struct{ what, hint string }{
				"b3":        {"unknown ref b3", "did you mean b2"},
				"b99999":    {"unknown ref b99999", "did you mean b2"},
				"mastre":    {"unknown ref mastre", "did you mean master"},
				"xyz/qq":    {"unknown ref xyz/qq", ""},
				"abcdef012": {"starts with abcdef012", ""},
				"":          {"not a ref", ""},
				"-x":        {"not a ref", ""},
				"a b":       {"not a ref", ""},
				"HEAD~1":    {"not a ref", ""},
			} {
				_, err := repo.ResolveRef(ctx, ref)
				expect(t, err, fault.Usage, c.what, c.hint)
			}
		}
		plain := openRepo(t, Options{Location: filepath.Join(r.Dir, "ggml")})
		_, err := plain.ResolveRef(ctx, "b1")
		expect(t, err, fault.Usage, "has no commits", "--upstream")
	})
}

// TestReftable: refs go-git cannot read are said to be so; ids still work.
func TestReftable(t *testing.T) {
	r, ids := upstreamRepo(t)
	if err := os.Mkdir(filepath.Join(r.Dir, ".git/reftable"), 0o755); err != nil {
		t.Fatal(err)
	}
	repo := openRepo(t, Options{Location: r.Dir})
	_, err := repo.ResolveRef(ctx, "b1")
	expect(t, err, fault.Environment, "reftable", "refs migrate")
	if id, err := repo.ResolveRef(ctx, ids[0]); err != nil || id != ids[0] {
		t.Errorf("ResolveRef of an id = %s, %v", id, err)
	}
	open(t, Options{Location: r.Dir, Commit: ids[0]})
}

// TestAmbiguous: commits whose ids start alike are listed.
func TestAmbiguous(t *testing.T) {
	r := gittest.New(t)
	starts := map[string]string{}
	tree := r.Git("write-tree")
	for i := range 2000 {
		id := r.In(fmt.Sprintf("tree %s\nauthor a <a> 0 +0000\ncommitter a <a> %d +0000\n\nx\n", tree, i), "hash-object", "-w", "-t", "commit", "--stdin")
		if other, ok := starts[id[:4]]; ok {
			repo := openRepo(t, Options{Location: r.Dir})
			_, err := repo.ResolveRef(ctx, id[:4])
			expect(t, err, fault.Usage, "is the start of 2 commits", "more digits")
			if !strings.Contains(err.Error(), id) || !strings.Contains(err.Error(), other) {
				t.Errorf("error = %v", err)
			}
			return
		}
		starts[id[:4]] = id
	}
	t.Fatal("2000 commits and no two start alike")
}

func TestTags(t *testing.T) {
	each(t, func(t *testing.T, git string) {
		r, ids := upstreamRepo(t)
		r.Git("tag", "b10", ids[2])
		r.Git("tag", "v-other", ids[2])
		r.Git("tag", "b-tree", r.Git("rev-parse", "HEAD^{tree}"))
		srv := serve(t, r)
		names := func(refs []Ref) string {
			var s []string
			for _, ref := range refs {
				s = append(s, ref.Name)
			}
			return strings.Join(s, " ")
		}
		second := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
		local := openRepo(t, Options{Location: r.Dir})
		tags, err := local.Tags(ctx, "b[0-9]*", time.Time{})
		if err != nil || names(tags) != "b1 b2 b10" || tags[1].Commit != ids[1] || !tags[1].Date.Equal(second) {
			t.Errorf("local: %+v, %v", tags, err)
		}
		if tags, err = local.Tags(ctx, "b*", second); err != nil || names(tags) != "b2 b10" {
			t.Errorf("local, since: %v, %v", names(tags), err)
		}
		remote := openRepo(t, Options{Location: srv.url(), CacheDir: t.TempDir(), Git: git})
		if tags, err = remote.Tags(ctx, "b[0-9]*", time.Time{}); err != nil || names(tags) != "b1 b2 b10" || tags[1].Commit != ids[1] {
			t.Errorf("remote: %+v, %v", tags, err)
		}
		tags, err = remote.Tags(ctx, "b[0-9]*", second)
		if git != "" {
			expect(t, err, fault.Environment, "need git", "install git")
		} else if err != nil || names(tags) != "b2 b10" || !tags[0].Date.Equal(second) {
			t.Errorf("remote, since: %+v, %v", tags, err)
		}
		// Asking for dates must not make the commits look as if they were there.
		s, err := remote.open(ctx, ids[1])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.ReadFile("ggml/src/ggml.c"); err != nil {
			t.Error(err)
		}
		_, err = local.Tags(ctx, "b[", time.Time{})
		expect(t, err, fault.Usage, "bad tag pattern", "")
	})
}

// TestAt reads single files at many commits.
func TestAt(t *testing.T) {
	each(t, func(t *testing.T, git string) {
		r, ids := upstreamRepo(t)
		srv := serve(t, r)
		for name, o := range map[string]Options{"local": {Location: r.Dir}, "remote": {Location: srv.url(), CacheDir: t.TempDir(), Git: git}} {
			o.Exclude = someExcluded
			repo := openRepo(t, o)
			if err := repo.Prefetch(ctx, ids, []string{"ggml/src/ggml.c", "no/such"}); err != nil {
				t.Fatal(err)
			}
			hits := srv.hits.Load()
			for i, want := range []string{"int x;\n", "int y;\n", "int y;\n"} {
				s, err := repo.At(ctx, ids[i])
				if err != nil {
					t.Fatal(err)
				}
				if data, err := s.ReadFile("ggml/src/ggml.c"); err != nil || string(data) != want {
					t.Errorf("%s: commit %d: %q, %v", name, i, data, err)
				}
				if _, err := s.ReadFile("ggml/src/new.c"); i < 2 && !IsNotExist(err) {
					t.Errorf("%s: commit %d: %v", name, i, err)
				}
				if _, err := s.ReadFile("docs/build.md"); fault.Code(err) != fault.Usage {
					t.Errorf("%s: an excluded file: %v", name, err)
				}
			}
			if git == "" && srv.hits.Load() > hits+4 {
				t.Errorf("%s: %d requests after Prefetch", name, srv.hits.Load()-hits)
			}
			// Not prefetched: it comes when it is asked for.
			s, err := repo.At(ctx, ids[2])
			if err != nil {
				t.Fatal(err)
			}
			if data, err := s.ReadFile("ggml/src/new.c"); err != nil || string(data) != "int z;\n" {
				t.Errorf("%s: %q, %v", name, data, err)
			}
			// And the whole commit can still be opened.
			whole, err := repo.open(ctx, ids[0])
			if err != nil {
				t.Fatal(err)
			}
			same(t, listing(t, checkout(t, whole)), wanted())
			if c, err := repo.Commit(ctx, ids[1]); err != nil || c.Subject != "second" || c.Parents[0] != ids[0] {
				t.Errorf("%s: Commit = %+v, %v", name, c, err)
			}
			_, err = repo.At(ctx, strings.Repeat("2", 40))
			if err == nil || fault.Hint(err) == "" {
				t.Errorf("%s: unknown commit: %v", name, err)
			}
		}
	})
}

// TestHistory compares with git on a history with merges.
func TestHistory(t *testing.T) {
	r := gittest.New(t)
	ids := []string{r.Commit("root", map[string]string{"f": "0", "d/g": "0"})}
	ids = append(ids, r.Commit("f", map[string]string{"f": "1"}))
	r.Git("checkout", "-qb", "side", ids[0])
	ids = append(ids, r.Commit("side g", map[string]string{"d/g": "side"}))
	r.Git("checkout", "-q", "master")
	ids = append(ids, r.Commit("g", map[string]string{"h": "x"}))
	r.Git("merge", "-q", "--no-ff", "-m", "merge", "side")
	ids = append(ids, r.Git("rev-parse", "HEAD"), r.Commit("remove", map[string]string{"f": "2"}))
	os.Remove(filepath.Join(r.Dir, "f"))
	ids = append(ids, r.Commit("without f", nil))
	r.Git("checkout", "-q", "--orphan", "alone")
	ids = append(ids, r.Commit("alone", nil))
	repo := openRepo(t, Options{Location: r.Dir})
	for _, a := range ids {
		for _, b := range ids {
			base := "no"
			if r.Git("rev-list", "--count", a, "^"+b) == "0" {
				base = "yes"
			}
			if got, err := repo.IsAncestor(ctx, a, b); err != nil || got != (base == "yes") {
				t.Errorf("IsAncestor(%s, %s) = %v, %v, git says %s", short(a), short(b), got, err, base)
			}
		}
	}
	for _, path := range []string{"f", "d/g", "d", "h", "none"} {
		got, err := repo.Touching(ctx, path, ids[0], ids[6], 0)
		if err != nil {
			t.Fatal(err)
		}
		var have []string
		for _, c := range got {
			have = append(have, c.ID)
		}
		want := strings.Fields(r.Git("log", "--first-parent", "-m", "--format=%H", ids[0]+".."+ids[6], "--", path))
		// -m lists a merge once for each parent it differs from.
		if strings.Join(have, " ") != strings.Join(want, " ") {
			t.Errorf("Touching(%s) = %v, git says %v", path, have, want)
		}
	}
	one, err := repo.Touching(ctx, "f", "", ids[6], 1)
	if err != nil || len(one) != 1 || one[0].Subject != "without f" {
		t.Errorf("with a limit: %+v, %v", one, err)
	}

	shallow := filepath.Join(t.TempDir(), "shallow")
	r.Git("clone", "-q", "--bare", "--depth=1", "--branch", "master", "file://"+strings.ReplaceAll(r.Dir, " ", "%20"), shallow)
	_, err = openRepo(t, Options{Location: shallow}).IsAncestor(ctx, ids[6], ids[6])
	if err != nil {
		t.Error(err)
	}
	_, err = openRepo(t, Options{Location: shallow}).Touching(ctx, "f", ids[0], ids[6], 0)
	expect(t, err, fault.Environment, "history is not complete", "--unshallow")
	_, err = openRepo(t, Options{Location: "https://example.org/x", CacheDir: t.TempDir()}).IsAncestor(ctx, ids[0], ids[6])
	expect(t, err, fault.Environment, "needs upstream's history", "git clone")
	_, err = openRepo(t, Options{Location: filepath.Join(r.Dir, "d")}).IsAncestor(ctx, ids[0], ids[6])
	expect(t, err, fault.Usage, "has no commits", "")
}

func TestDefaultCacheDir(t *testing.T) {
	t.Setenv("DOT4FA_CACHE", "/some/where")
	if d, err := DefaultCacheDir(); err != nil || d != "/some/where" {
		t.Errorf("DefaultCacheDir = %s, %v", d, err)
	}
	t.Setenv("DOT4FA_CACHE", "")
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	_, err := DefaultCacheDir()
	expect(t, err, fault.Environment, "no cache directory", "DOT4FA_CACHE")
}
