package upstream

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"dot4fa/internal/fault"
	"dot4fa/internal/upstream/gittest"
)

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

// TestMixedFetches: git and go-git fetch into one cache in turn, as when git is
// installed or removed in between.
func TestMixedFetches(t *testing.T) {
	for _, order := range [][]string{{"", "none", ""}, {"none", "", "none"}} {
		r, ids := upstreamRepo(t)
		srv := serve(t, r)
		o := Options{Location: srv.url(), CacheDir: t.TempDir(), Exclude: someExcluded}
		for i, git := range order {
			o.Git, o.Commit = git, ids[i]
			s := open(t, o)
			if data, err := s.ReadFile("ggml/src/ggml-cuda/a.cuh"); err != nil || string(data) != "#pragma once\n" {
				t.Errorf("%q, commit %d: %q, %v", order, i, data, err)
			}
		}
		o.Commit = ids[0]
		p := &said{}
		o.Progress = p
		same(t, listing(t, checkout(t, open(t, o))), wanted())
		if p.text() != "" {
			t.Errorf("%q: the first commit was lost: %s", order, p.text())
		}
		tidy(t, o.CacheDir)
	}
}

// TestFindGit: only a git that can fetch lists of objects is used.
func TestFindGit(t *testing.T) {
	for version, want := range map[string]bool{
		"git version 2.39.5": true, "git version 2.30.0": true, "git version 2.47.1 (Apple Git-154)": true, "git version 3.0.0-rc1": true,
		"git version 2.29.9": false, "git version 1.8.3.1": false, "hub 1.0": false, "": false,
	} {
		script := filepath.Join(t.TempDir(), "git")
		if err := os.WriteFile(script, []byte("#!/bin/sh\necho '"+version+"'\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		if got := findGit(ctx, script) != nil; got != want {
			t.Errorf("%q is used: %v, want %v", version, got, want)
		}
	}
	if findGit(ctx, "/no/such/git") != nil {
		t.Error("a git that is not there is used")
	}
}
