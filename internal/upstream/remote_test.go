package upstream

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dot4fa/internal/fault"
)

// TestRemote: fetched once, by exact commit; after that no server is asked.
func TestRemote(t *testing.T) {
	each(t, func(t *testing.T, git string) {
		r, ids := upstreamRepo(t)
		srv := serve(t, r)
		for name, url := range map[string]string{"http": srv.url(), "file": fileURL(r.Dir)} {
			if name == "file" {
				link := filepath.Join(t.TempDir(), "up")
				if err := os.Symlink(r.Dir, link); err != nil {
					t.Fatal(err)
				}
				url = fileURL(link)
			}
			t.Run(name, func(t *testing.T) {
				o := Options{Location: url, Commit: ids[1], CacheDir: filepath.Join(t.TempDir(), "cäche dir"), Git: git}
				s := open(t, o)
				if s.Commit != ids[1] || s.Tree != r.Git("rev-parse", ids[1]+"^{tree}") {
					t.Errorf("snapshot = %s %s", s.Commit, s.Tree)
				}
				want := wanted()
				want["ggml/src/ggml.c"] = "int y;\n"
				same(t, listing(t, checkout(t, s)), want)
				if git == "" {
					for _, p := range []string{"models/vocab.gguf", "docs/build.md"} {
						if s.repo.store.Has(r.Git("rev-parse", ids[1]+":"+p)) {
							t.Errorf("the excluded %s was fetched", p)
						}
					}
				}
				hits := srv.hits.Load()
				p := &said{}
				o.Progress = p
				open(t, o)
				if srv.hits.Load() != hits || p.text() != "" {
					t.Errorf("the server was asked again: %q", p.text())
				}
				// Another commit, an excluded file that is needed now, the first again.
				o.Commit = ids[2]
				open(t, o)
				if git == "" {
					o.Exclude = []string{"nothing"}
					if data, err := open(t, o).ReadFile("docs/build.md"); err != nil || string(data) != "how else\n" {
						t.Errorf("ReadFile = %q, %v", data, err)
					}
				}
				o.Exclude, o.Commit = nil, ids[1]
				open(t, o)
				tidy(t, o.CacheDir)
			})
		}
	})
}

// TestBump: a second commit brings what changed, not everything again.
func TestBump(t *testing.T) {
	each(t, func(t *testing.T, git string) {
		if git != "" {
			t.Skip("go-git fetches everything again")
		}
		r, ids := upstreamRepo(t)
		o := Options{Location: serve(t, r).url(), Commit: ids[1], CacheDir: t.TempDir(), Git: git}
		s := open(t, o)
		count := func() int {
			out, err := exec.Command("git", "--git-dir="+s.repo.cache.dir, "cat-file", "--batch-all-objects", "--batch-check", "--unordered").Output()
			if err != nil {
				t.Fatal(err)
			}
			return strings.Count(string(out), "\n")
		}
		inPacks := func() (n int64) {
			packs, _ := filepath.Glob(filepath.Join(s.repo.cache.dir, "objects/pack/*.pack"))
			for _, p := range packs {
				fi, _ := os.Stat(p)
				n += fi.Size()
			}
			return n
		}
		objects, bytes := count(), inPacks()
		o.Commit = ids[2]
		open(t, o)
		// The commit, three trees, one file.
		if d := count() - objects; d > 5 {
			t.Errorf("%d objects more, want at most 5", d)
		}
		t.Logf("first fetch %d bytes in packs, the next commit %d more", bytes, inPacks()-bytes)
	})
}

func TestRemoteErrors(t *testing.T) {
	each(t, func(t *testing.T, git string) {
		r, ids := upstreamRepo(t)
		srv := serve(t, r)
		dead, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		dead.Close()
		locked := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", "Basic")
			w.WriteHeader(401)
		}))
		defer locked.Close()
		page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>log in</html>") }))
		defer page.Close()
		tls := httptest.NewTLSServer(http.NotFoundHandler())
		tls.Config.ErrorLog = log.New(io.Discard, "", 0)
		defer tls.Close()
		none := strings.Repeat("1", 40)
		for name, c := range map[string]struct {
			url, commit string
			code        int
			what, hint  string
		}{
			"unknown commit":     {srv.url(), none, fault.Usage, "does not have commit " + none, "upstream.commit"},
			"not a repository":   {srv.URL + "/other.git", ids[0], fault.Environment, "no git repository there", "--upstream"},
			"no such directory":  {"file:///no/such/dir", ids[0], fault.Environment, "no git repository there", "--upstream"},
			"nobody listens":     {"http://" + dead.Addr().String() + "/x.git", ids[0], fault.Environment, "cannot reach upstream", "DOT4FA_UPSTREAM"},
			"unknown host":       {"https://no-such-host.invalid/x.git", ids[0], fault.Environment, "cannot reach upstream", "DOT4FA_UPSTREAM"},
			"wants credentials":  {locked.URL + "/x.git", ids[0], fault.Environment, "asks for credentials", "--upstream"},
			"a page, not git":    {page.URL + "/x.git", ids[0], fault.Environment, "", "--upstream"},
			"unknown cert":       {tls.URL + "/x.git", ids[0], fault.Environment, "certificate is not accepted", "certificates"},
			"tree, not a commit": {srv.url(), r.Git("rev-parse", "HEAD^{tree}"), fault.Usage, "is a tree, not a commit", "commit's id"},
		} {
			t.Run(name, func(t *testing.T) {
				cache := t.TempDir()
				_, err := Open(ctx, Options{Location: c.url, Commit: c.commit, CacheDir: cache, Git: git})
				expect(t, err, c.code, c.what, c.hint)
				t.Logf("%v | %s", err, fault.Hint(err))
				tidy(t, cache)
			})
		}
	})
}

// TestBrokenConnection: the pack ends half way; the next try works.
func TestBrokenConnection(t *testing.T) {
	each(t, func(t *testing.T, git string) {
		r, ids := upstreamRepo(t)
		srv := serve(t, r)
		o := Options{Location: srv.url(), Commit: ids[0], CacheDir: t.TempDir(), Git: git}
		for _, n := range []int64{1, 100, 1 << 30} {
			srv.cut.Store(n)
			_, err := Open(ctx, o)
			expect(t, err, fault.Environment, "", "run the command again")
			t.Logf("cut at %d: %v", n, err)
		}
		srv.cut.Store(0)
		open(t, o)
		tidy(t, o.CacheDir)
	})
}

// TestCancelledFetch: cancelled half way through the pack, at once and without
// a trace.
func TestCancelledFetch(t *testing.T) {
	each(t, func(t *testing.T, git string) {
		r, ids := upstreamRepo(t)
		srv := serve(t, r)
		srv.stall.Store(true)
		o := Options{Location: srv.url(), Commit: ids[0], CacheDir: t.TempDir(), Git: git}
		c, cancel := context.WithTimeout(ctx, 700*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := Open(c, o)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error = %v", err)
		}
		if d := time.Since(start); d > 6*time.Second {
			t.Errorf("it took %v to stop", d)
		}
		srv.stall.Store(false)
		open(t, o)
		tidy(t, o.CacheDir)
	})
}

// TestNoFilter: a server that cannot filter sends everything; that works too.
func TestNoFilter(t *testing.T) {
	each(t, func(t *testing.T, git string) {
		r, ids := upstreamRepo(t)
		r.Git("config", "uploadpack.allowFilter", "false")
		s := open(t, Options{Location: serve(t, r).url(), Commit: ids[0], CacheDir: t.TempDir(), Git: git})
		same(t, listing(t, checkout(t, s)), wanted())
	})
}

// TestOldServer: one that gives only what a ref points at gives a tag's commit,
// and go-git asks for the tag when it is that commit.
func TestOldServer(t *testing.T) {
	each(t, func(t *testing.T, git string) {
		r, ids := upstreamRepo(t)
		inner := r.Commit("fourth", nil)
		r.Commit("fifth", nil)
		r.Git("config", "uploadpack.allowAnySHA1InWant", "false")
		srv := serve(t, r)
		srv.v0.Store(true)
		o := Options{Location: srv.url(), Commit: inner, Tag: "b2", CacheDir: t.TempDir(), Git: git, Exclude: someExcluded}
		_, err := Open(ctx, o)
		expect(t, err, fault.Usage, "does not have commit "+inner+", or does not give it", "upstream.commit")
		o.Commit = ids[1]
		want := wanted()
		want["ggml/src/ggml.c"] = "int y;\n"
		same(t, listing(t, checkout(t, open(t, o))), want)
	})
}
