package verify

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "draw the stored report again")

// TestStoredPicture: the picture in docs/results is the one of the report beside it.
func TestStoredPicture(t *testing.T) {
	const report, picture = "../../docs/results/quality-cpu.json", "../../docs/results/quality-cpu.svg"
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
