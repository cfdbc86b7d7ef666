package seedbench

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestStoredTables: the tables in docs/bench/seed are those of the runs beside them.
func TestStoredTables(t *testing.T) {
	runs, err := filepath.Glob("../../docs/bench/seed/*.json")
	if err != nil || len(runs) == 0 {
		t.Fatalf("no stored runs: %v", err)
	}
	for _, run := range runs {
		data, err := os.ReadFile(run)
		if err != nil {
			t.Fatal(err)
		}
		var r Result
		if err := json.Unmarshal(data, &r); err != nil {
			t.Fatalf("%s: %v", run, err)
		}
		var want bytes.Buffer
		if err := r.Print(&want); err != nil {
			t.Fatal(err)
		}
		tables := strings.TrimSuffix(run, ".json") + ".txt"
		if *update {
			if err := os.WriteFile(tables, want.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if have, err := os.ReadFile(tables); err != nil || !bytes.Equal(have, want.Bytes()) {
			t.Errorf("%s is not what %s gives (%v): go test ./internal/seedbench -run TestStoredTables -update", tables, run, err)
		}
	}
}
