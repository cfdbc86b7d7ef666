package upstream

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"dot4fa/internal/recipe"
	"dot4fa/internal/upstream/gittest"
)

// real returns the repository DOT4FA_UPSTREAM names and the shipped recipe's pin.
func real(t *testing.T) (Options, *recipe.Recipe) {
	t.Helper()
	loc := os.Getenv("DOT4FA_UPSTREAM")
	if loc == "" {
		t.Skip("DOT4FA_UPSTREAM does not name a llama.cpp repository")
	}
	rec, err := recipe.Load(os.DirFS("../.."), "rdna3")
	if err != nil {
		t.Fatal(err)
	}
	return Options{Location: loc, Commit: rec.Upstream.Commit, Tag: rec.Upstream.Tag, Exclude: rec.Upstream.Exclude}, rec
}

// TestRealCheckout makes a work tree of llama.cpp at the pin.
func TestRealCheckout(t *testing.T) {
	o, _ := real(t)
	start := time.Now()
	s, err := Open(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	files, err := s.Files()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("open: %v, %d files, tree %s", time.Since(start), len(files), s.Tree)
	for _, need := range []string{"CMakeLists.txt", "ggml/include/ggml.h", "ggml/src/ggml-cuda/fattn.cu", "src/llama-kv-cache.cpp", "common/arg.cpp"} {
		if _, err := s.BlobID(need); err != nil {
			t.Errorf("%s: %v", need, err)
		}
	}
	dir := filepath.Join(t.TempDir(), "work")
	start = time.Now()
	if err := s.Checkout(ctx, dir); err != nil {
		t.Fatal(err)
	}
	t.Logf("checkout: %v", time.Since(start))
	content, err := s.Content()
	if err != nil {
		t.Fatal(err)
	}
	start = time.Now()
	if id, err := HashDir(ctx, dir, nil); err != nil || id != content {
		t.Errorf("HashDir = %s, %v, want %s", id, err, content)
	}
	t.Logf("hash: %v", time.Since(start))
	// The checkout as a plain directory is the same content.
	plain, err := Open(ctx, Options{Location: dir, Exclude: o.Exclude})
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if plain.Tree != content {
		t.Errorf("as a directory: tree %s, want %s", plain.Tree, content)
	}
}

// TestRealHistory resolves the pin's tag and reads the files of the series at
// a hundred releases.
func TestRealHistory(t *testing.T) {
	o, rec := real(t)
	repo := openRepo(t, o)
	if repo.IsDirectory() {
		t.Skip("DOT4FA_UPSTREAM is a directory, not a repository")
	}
	if id, err := repo.ResolveRef(ctx, rec.Upstream.Tag); err != nil || id != rec.Upstream.Commit {
		t.Errorf("tag %s is %s, %v; the recipe says %s", rec.Upstream.Tag, id, err, rec.Upstream.Commit)
	}
	if id, err := repo.ResolveRef(ctx, rec.Upstream.Commit[:10]); err != nil || id != rec.Upstream.Commit {
		t.Errorf("short id: %s, %v", id, err)
	}
	start := time.Now()
	tags, err := repo.Tags(ctx, "b[0-9]*", time.Time{})
	if err != nil || len(tags) == 0 {
		t.Fatalf("tags: %v, %v", len(tags), err)
	}
	t.Logf("%d tags: %v", len(tags), time.Since(start))
	if len(tags) > 100 {
		tags = tags[len(tags)-100:]
	}
	paths := []string{
		"ggml/include/ggml.h", "ggml/src/ggml.c", "ggml/src/ggml-cpu/ggml-cpu.c", "ggml/src/ggml-cpu/ops.cpp", "ggml/src/ggml-cuda/ggml-cuda.cu",
		"ggml/src/ggml-cuda/fattn.cu", "src/llama-kv-cache.h", "src/llama-kv-cache.cpp", "src/llama-graph.cpp", "src/llama-context.cpp",
		"common/arg.cpp", "tools/llama-bench/llama-bench.cpp", "tests/test-backend-ops.cpp",
	}
	start = time.Now()
	var commits []string
	for _, tag := range tags {
		commits = append(commits, tag.Commit)
	}
	if err := repo.Prefetch(ctx, commits, paths); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, id := range commits {
		s, err := repo.At(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range paths {
			if _, err := s.ReadFile(p); err == nil {
				n++
			} else if !IsNotExist(err) {
				t.Errorf("%s: %v", p, err)
			}
		}
	}
	t.Logf("%d files at %d tags: %v", n, len(tags), time.Since(start))
	if repo.Remote() {
		return
	}
	start = time.Now()
	old := tags[0].Commit
	if yes, err := repo.IsAncestor(ctx, old, tags[len(tags)-1].Commit); err != nil || !yes {
		t.Errorf("IsAncestor = %v, %v", yes, err)
	}
	if yes, err := repo.IsAncestor(ctx, tags[len(tags)-1].Commit, old); err != nil || yes {
		t.Errorf("IsAncestor the other way = %v, %v", yes, err)
	}
	t.Logf("two IsAncestor: %v", time.Since(start))
	start = time.Now()
	list, err := repo.Touching(ctx, "src/llama-kv-cache.cpp", old, tags[len(tags)-1].Commit, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d commits touch llama-kv-cache.cpp since %s: %v", len(list), tags[0].Name, time.Since(start))
}

// TestRealFetch fetches the pin out of the local repository as from a server.
func TestRealFetch(t *testing.T) {
	o, _ := real(t)
	loc, err := locate(o.Location)
	if err != nil || loc.kind != localRepo {
		t.Skip("DOT4FA_UPSTREAM is not a local repository")
	}
	// A view of it that may be served: the repository itself stays as it is.
	// What it lacks, it cannot send.
	view := gittest.New(t)
	view.Git("config", "uploadpack.allowFilter", "true")
	alt := filepath.Join(view.Dir, ".git/objects/info/alternates")
	if err := os.WriteFile(alt, []byte(filepath.Join(loc.common, "objects")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	view.Git("update-ref", "refs/heads/master", o.Commit)
	srv := serve(t, view)
	o.Location, o.CacheDir = srv.url(), t.TempDir()
	start := time.Now()
	s, err := Open(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	t.Logf("fetch over HTTP: %v", time.Since(start))
	var size int64
	packs, _ := filepath.Glob(filepath.Join(s.repo.cache.dir, "objects/pack/*.pack"))
	for _, p := range packs {
		if fi, err := os.Stat(p); err == nil {
			size += fi.Size()
		}
	}
	t.Logf("%d packs, %.1f MB", len(packs), float64(size)/1e6)
	start = time.Now()
	again, err := Open(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
	t.Logf("open from the cache: %v", time.Since(start))
	start = time.Now()
	checkout(t, s)
	t.Logf("checkout from the cache: %v", time.Since(start))
}

// TestRealRecipes: upstream at the pin reads every CMake option the shipped
// recipes set, and has every target they build that is not our own.
func TestRealRecipes(t *testing.T) {
	o, _ := real(t)
	s := open(t, o)
	files, err := s.Files()
	if err != nil {
		t.Fatal(err)
	}
	var cmake strings.Builder
	have := map[string]bool{}
	for _, f := range files {
		have[f.Path] = true
		if strings.HasSuffix(f.Path, "CMakeLists.txt") || strings.HasSuffix(f.Path, ".cmake") {
			data, err := s.ReadFile(f.Path)
			if err != nil {
				t.Fatal(err)
			}
			cmake.Write(data)
		}
	}
	for _, name := range []string{"cpu", "rdna3", "cuda"} {
		r, err := recipe.Load(os.DirFS("../.."), name)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range r.Cache() {
			if strings.HasPrefix(e.Key, "CMAKE_") {
				continue
			}
			if !regexp.MustCompile(`\b` + e.Key + `\b`).MatchString(cmake.String()) {
				t.Errorf("recipe %s sets %s, which upstream does not read", name, e.Key)
			}
		}
		for _, target := range r.Targets {
			if target == "test-packed16-state" {
				continue // made by the series
			}
			if !have["tests/"+target+".cpp"] && !regexp.MustCompile(`set\(TARGET\s+`+target+`\)`).MatchString(cmake.String()) {
				t.Errorf("recipe %s builds %s, which upstream does not have", name, target)
			}
		}
	}
}
