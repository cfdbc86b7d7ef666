package verify

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "draw the stored report again")

// TestStoredPicture: the pictures in docs/results are those of the reports beside them.
func TestStoredPicture(t *testing.T) {
	reports, err := filepath.Glob("../../docs/results/quality-*.json")
	if err != nil || len(reports) == 0 {
		t.Fatalf("no stored reports: %v", err)
	}
	for _, report := range reports {
		picture := strings.TrimSuffix(report, ".json") + ".svg"
		data, err := os.ReadFile(report)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(picture, r.SVG(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if have, err := os.ReadFile(picture); err != nil || !bytes.Equal(have, r.SVG()) {
			t.Errorf("%s is not what %s gives (%v): go test ./internal/verify -run TestStoredPicture -update", picture, report, err)
		}
	}
}
