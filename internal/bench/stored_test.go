package bench

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// The pages and pictures that are stored beside a run are what it gives.
func TestStoredRunsAreWhatTheirFiguresGive(t *testing.T) {
	for _, dir := range []string{"docs/bench", "docs/bench/whole-model"} {
		t.Run(dir, func(t *testing.T) { storedRuns(t, dir) })
	}
}

func storedRuns(t *testing.T, dir string) {
	docs := "../../" + dir
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
				t.Errorf("%s is not what %s gives: dot4fa bench --from %s/%s --out %s", name, filepath.Base(file), dir, filepath.Base(file), dir)
			}
		}
	}
	entries, err := os.ReadDir(docs)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name := e.Name(); name != "README.md" && !e.IsDir() && !made[name] {
			t.Errorf("%s/%s belongs to no stored run", dir, name)
		}
	}
}
