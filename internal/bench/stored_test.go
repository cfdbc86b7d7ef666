package bench

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// The pages and pictures that are stored beside a run are what it gives.
func TestStoredRunsAreWhatTheirFiguresGive(t *testing.T) {
	const docs = "../../docs/bench"
	stored, err := filepath.Glob(docs + "/*.json")
	if err != nil || len(stored) == 0 {
		t.Fatalf("no stored runs: %v", err)
	}
	made := map[string]bool{}
	for _, file := range stored {
		r, err := Load(file)
		if err != nil {
			t.Fatal(err)
		}
		made[filepath.Base(file)] = true
		if r.Reference != "" {
			continue // figures from elsewhere: only there to be compared with
		}
		files, err := r.Write(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			name := filepath.Base(f)
			made[name] = true
			want, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if have, _ := os.ReadFile(filepath.Join(docs, name)); !bytes.Equal(have, want) {
				t.Errorf("%s is not what %s gives: dot4fa bench --from docs/bench/%s --out docs/bench", name, filepath.Base(file), filepath.Base(file))
			}
		}
	}
	entries, err := os.ReadDir(docs)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name := e.Name(); name != "README.md" && !made[name] {
			t.Errorf("docs/bench/%s belongs to no stored run", name)
		}
	}
}
