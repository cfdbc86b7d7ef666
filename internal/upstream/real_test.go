package upstream

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"dot4fa/internal/recipe"
)

// TestReal reads the llama.cpp that DOT4FA_UPSTREAM names, at the pin.
func TestReal(t *testing.T) {
	loc := os.Getenv("DOT4FA_UPSTREAM")
	if loc == "" {
		t.Skip("DOT4FA_UPSTREAM does not name a llama.cpp repository")
	}
	rec, err := recipe.Load(os.DirFS("../.."), "rdna3")
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	start := time.Now()
	s, err := Open(ctx, Options{Location: loc, Commit: rec.Upstream.Commit, Tag: rec.Upstream.Tag, Exclude: rec.Upstream.Exclude})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	files, err := s.Files()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("open: %v, %d files, tree %s", time.Since(start), len(files), s.Tree)
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
}
