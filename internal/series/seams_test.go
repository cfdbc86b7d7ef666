package series

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSeams(t *testing.T) {
	up := os.Getenv("DOT4FA_UPSTREAM")
	if up == "" {
		t.Skip("upstream tree: DOT4FA_UPSTREAM is not set")
	}
	s, err := Load(os.DirFS("testdata/seams"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Plan(func(p string) ([]byte, error) { return os.ReadFile(filepath.Join(up, p)) }, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", p.Diff())
}
