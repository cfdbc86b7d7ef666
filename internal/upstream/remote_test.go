package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"dot4fa/internal/fault"
	"dot4fa/internal/upstream/gittest"
)

// said keeps what a user is told.
type said struct {
	mu    sync.Mutex
	lines []string
}

func (s *said) Say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}
func (s *said) Status(string, ...any) {}
func (s *said) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "\n")
}

// server serves a repository over HTTP as a forge does, with faults on request.
type server struct {
	*httptest.Server
	hits  atomic.Int32 // requests
	cut   atomic.Int64 // answers with a pack end after so many bytes; 0: never
	stall atomic.Bool  // answers with a pack stop half way
	v0    atomic.Bool  // the server speaks the old protocol
	away  atomic.Bool  // connections are closed without an answer
}

func serve(t *testing.T, r *gittest.Repo) *server {
	t.Helper()
	out, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Skip("git is not installed")
	}
	backend := filepath.Join(strings.TrimSpace(string(out)), "git-http-backend")
	if _, err := os.Stat(backend); err != nil {
		t.Skip("git has no http-backend")
	}
	s := &server{}
	stop := make(chan struct{})
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		s.hits.Add(1)
		if s.away.Load() {
			panic(http.ErrAbortHandler)
		}
		env := append(gittest.Env(), "GIT_PROJECT_ROOT="+filepath.Dir(r.Dir), "GIT_HTTP_EXPORT_ALL=1")
		if s.v0.Load() {
			req.Header.Del("Git-Protocol")
		} else if p := req.Header.Get("Git-Protocol"); p != "" {
			env = append(env, "GIT_PROTOCOL="+p)
		}
		// /x.git is the repository, whatever its directory is called.
		req.URL.Path = "/" + filepath.Base(r.Dir) + "/.git" + strings.TrimPrefix(req.URL.Path, "/x.git")
		h := &cgi.Handler{Path: backend, Env: env, Stderr: io.Discard, Logger: log.New(io.Discard, "", 0)}
		if strings.HasSuffix(req.URL.Path, "git-upload-pack") && (s.cut.Load() > 0 || s.stall.Load()) {
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, req)
			body := rec.Body.Bytes()
			if strings.Contains(string(body), "PACK") {
				w.Header().Set("Content-Type", rec.Header().Get("Content-Type"))
				half := len(body) / 2
				if n := int(s.cut.Load()); n > 0 && n < half {
					half = n
				}
				w.Write(body[:half])
				w.(http.Flusher).Flush()
				if s.stall.Load() {
					select {
					case <-req.Context().Done():
					case <-stop:
					}
				}
				panic(http.ErrAbortHandler)
			}
			for k, v := range rec.Header() {
				w.Header()[k] = v
			}
			w.WriteHeader(rec.Code)
			w.Write(body)
			return
		}
		h.ServeHTTP(w, req)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(func() { close(stop); s.Close() })
	return s
}

func (s *server) url() string { return s.URL + "/x.git" }

// each runs a test with the system's git and with go-git alone.
func each(t *testing.T, f func(t *testing.T, git string)) {
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	t.Setenv("HTTP_PROXY", "")
	t.Setenv("http_proxy", "")
	t.Setenv("NO_PROXY", "127.0.0.1,localhost")
	for name, git := range map[string]string{"git": "", "go-git": "none"} {
		t.Run(name, func(t *testing.T) { f(t, git) })
	}
}

func fileURL(dir string) string { return "file://" + dir }

// tidy checks that a cache holds nothing half-made.
func tidy(t *testing.T, cache string) {
	t.Helper()
	filepath.WalkDir(cache, func(p string, e os.DirEntry, err error) error {
		name := filepath.Base(p)
		if err == nil && (strings.HasPrefix(name, "tmp_") || strings.HasPrefix(name, ".new-") || strings.HasSuffix(name, ".damaged") ||
			strings.HasSuffix(name, ".lock") && strings.Contains(p, ".git"+string(filepath.Separator))) {
			t.Errorf("left in the cache: %s", p)
		}
		return nil
	})
}

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

// TestKilledFetch: git is killed in the middle and leaves its lock and
// temporary files; the next run clears them away.
func TestKilledFetch(t *testing.T) {
	r, ids := upstreamRepo(t)
	real, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	marker := filepath.Join(dir, "killed")
	script := filepath.Join(dir, "git")
	text := "#!/bin/sh\ncase \"$*\" in *' fetch '*)\nif [ ! -e '" + marker + "' ]; then\n: > '" + marker + "'\n" +
		"for a in \"$@\"; do case \"$a\" in --git-dir=*) d=${a#--git-dir=};; esac; done\n" +
		": > \"$d/shallow.lock\"; : > \"$d/config.lock\"; echo half > \"$d/objects/pack/tmp_pack_x1\"\nkill -9 $$\nfi;;\nesac\nexec '" + real + "' \"$@\"\n"
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	o := Options{Location: serve(t, r).url(), Commit: ids[0], CacheDir: filepath.Join(dir, "cache"), Git: script, Exclude: someExcluded}
	// The first try is killed, the second, made by Open itself because nothing
	// says that the first was hopeless, works.
	s, err := Open(ctx, o)
	if err != nil {
		t.Logf("first: %v", err)
		if s, err = Open(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	defer s.Close()
	if _, err := os.Stat(marker); err != nil {
		t.Fatal("git was never killed")
	}
	same(t, listing(t, checkout(t, s)), wanted())
	tidy(t, o.CacheDir)
}

// TestDamagedCache: however the cache is damaged, it is noticed, said, and
// fetched again; without a server it is said what to do and nothing is lost.
func TestDamagedCache(t *testing.T) {
	each(t, func(t *testing.T, git string) {
		pack := func(t *testing.T, dir, ext string, f func(p string, data []byte)) {
			files, _ := filepath.Glob(filepath.Join(dir, "objects/pack/*"+ext))
			if len(files) == 0 {
				t.Fatal("no packs in the cache")
			}
			for _, p := range files {
				os.Chmod(p, 0o644)
				data, err := os.ReadFile(p)
				if err != nil {
					t.Fatal(err)
				}
				f(p, data)
			}
		}
		for name, damage := range map[string]func(t *testing.T, dir string){
			"bytes of a pack": func(t *testing.T, dir string) {
				pack(t, dir, ".pack", func(p string, data []byte) {
					for i := 40; i < len(data)-20; i += 16 {
						data[i] ^= 0xff
					}
					os.WriteFile(p, data, 0o644)
				})
			},
			"a pack cut short": func(t *testing.T, dir string) {
				pack(t, dir, ".pack", func(p string, data []byte) { os.WriteFile(p, data[:len(data)/2], 0o644) })
			},
			"a pack of zeros": func(t *testing.T, dir string) {
				pack(t, dir, ".pack", func(p string, data []byte) { os.WriteFile(p, make([]byte, len(data)), 0o644) })
			},
			"no pack":  func(t *testing.T, dir string) { pack(t, dir, ".pack", func(p string, _ []byte) { os.Remove(p) }) },
			"no index": func(t *testing.T, dir string) { pack(t, dir, ".idx", func(p string, _ []byte) { os.Remove(p) }) },
			"an index of zeros": func(t *testing.T, dir string) {
				pack(t, dir, ".idx", func(p string, data []byte) { os.WriteFile(p, make([]byte, len(data)), 0o644) })
			},
			"empty index": func(t *testing.T, dir string) {
				pack(t, dir, ".idx", func(p string, _ []byte) { os.WriteFile(p, nil, 0o644) })
			},
			"no objects":   func(t *testing.T, dir string) { os.RemoveAll(filepath.Join(dir, "objects")) },
			"no HEAD":      func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, "HEAD")) },
			"empty config": func(t *testing.T, dir string) { os.WriteFile(filepath.Join(dir, "config"), nil, 0o644) },
			"bad config":   func(t *testing.T, dir string) { os.WriteFile(filepath.Join(dir, "config"), []byte("[["), 0o644) },
			"bad shallow":  func(t *testing.T, dir string) { os.WriteFile(filepath.Join(dir, "shallow"), []byte("x\n"), 0o644) },
			"a file instead": func(t *testing.T, dir string) {
				os.RemoveAll(dir)
				os.WriteFile(dir, []byte("x"), 0o644)
			},
		} {
			t.Run(name, func(t *testing.T) {
				r, ids := upstreamRepo(t)
				srv := serve(t, r)
				o := Options{Location: srv.url(), Commit: ids[1], CacheDir: t.TempDir(), Git: git, Exclude: someExcluded}
				s := open(t, o)
				want := listing(t, checkout(t, s))
				s.Close()
				damage(t, s.repo.cache.dir)

				// With the server away: files that are right, or an error with a way on.
				srv.away.Store(true)
				dir := filepath.Join(t.TempDir(), "work")
				s, err := Open(ctx, o)
				if err == nil {
					err = s.Checkout(ctx, dir)
					s.Close()
				}
				if err == nil {
					same(t, listing(t, dir), want)
				} else {
					expect(t, err, fault.Environment, "", "")
					t.Logf("server away: %v | %s", err, fault.Hint(err))
				}
				srv.away.Store(false)

				p := &said{}
				o.Progress = p
				if s, err = Open(ctx, o); err != nil {
					t.Fatalf("%v | %s", err, fault.Hint(err))
				}
				defer s.Close()
				same(t, listing(t, checkout(t, s)), want)
				tidy(t, o.CacheDir)
				t.Logf("said: %q", p.text())
			})
		}
	})
}

// TestTwoAtOnce: two runs want the same commit; one fetches, both get it.
func TestTwoAtOnce(t *testing.T) {
	each(t, func(t *testing.T, git string) {
		r, ids := upstreamRepo(t)
		o := Options{Location: serve(t, r).url(), Commit: ids[0], CacheDir: t.TempDir(), Git: git, Exclude: someExcluded}
		p := &said{}
		o.Progress = p
		var wg sync.WaitGroup
		for range 3 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				s, err := Open(ctx, o)
				if err != nil {
					t.Errorf("%v", err)
					return
				}
				s.Close()
			}()
		}
		wg.Wait()
		if n := strings.Count(p.text(), "fetching"); n < 1 || strings.Count(p.text(), "fetching "+short(ids[0])) > 1 {
			t.Errorf("fetched more than once:\n%s", p.text())
		}
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

func TestCacheNotWritable(t *testing.T) {
	r, ids := upstreamRepo(t)
	file := filepath.Join(t.TempDir(), "file")
	os.WriteFile(file, nil, 0o644)
	_, err := Open(ctx, Options{Location: serve(t, r).url(), Commit: ids[0], CacheDir: filepath.Join(file, "cache")})
	expect(t, err, fault.Environment, "cannot write to the cache", "DOT4FA_CACHE")
}

// TestFullDisk uses a small file system of its own, where that is allowed.
func TestFullDisk(t *testing.T) {
	r := gittest.New(t)
	noise := make([]byte, 600<<10)
	f, err := os.Open("/dev/urandom")
	if err != nil {
		t.Skip("no /dev/urandom")
	}
	io.ReadFull(f, noise)
	f.Close()
	id := r.Commit("large", map[string]string{"a": string(noise[:300<<10]), "b": string(noise[300<<10:])})
	mount := func(t *testing.T, data string) string {
		dir := t.TempDir()
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, data); err != nil {
			t.Skipf("cannot mount a small file system: %v", err)
		}
		t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
		return dir
	}
	each(t, func(t *testing.T, git string) {
		cache := mount(t, "size=500k")
		o := Options{Location: serve(t, r).url(), Commit: id, CacheDir: cache, Git: git}
		_, err := Open(ctx, o)
		expect(t, err, fault.Environment, "no space left in the cache", "free some space")
		// With more space the same cache works.
		if err := syscall.Mount("tmpfs", cache, "tmpfs", syscall.MS_REMOUNT, "size=8m"); err != nil {
			t.Fatal(err)
		}
		open(t, o)
		tidy(t, cache)
	})
	t.Run("checkout", func(t *testing.T) {
		dir := mount(t, "size=400k")
		s := open(t, Options{Location: r.Dir, Commit: id})
		work := filepath.Join(dir, "work")
		expect(t, s.Checkout(ctx, work), fault.Environment, "no space left", "free some space")
		nothingLeft(t, work)
	})
	t.Run("read-only", func(t *testing.T) {
		dir := mount(t, "size=4m")
		if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
			t.Skipf("cannot make it read-only: %v", err)
		}
		s := open(t, Options{Location: r.Dir, Commit: id})
		expect(t, s.Checkout(ctx, filepath.Join(dir, "work")), fault.Environment, "cannot write", "--work")
		_, err := Open(ctx, Options{Location: serve(t, r).url(), Commit: id, CacheDir: filepath.Join(dir, "c")})
		expect(t, err, fault.Environment, "cannot write to the cache", "DOT4FA_CACHE")
	})
}
