package release_test

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"os"
)

func sha(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}

var (
	plusFile    = regexp.MustCompile(`(?m)^\+\+\+ b/(.*)$`)
	plusInclude = regexp.MustCompile(`(?m)^\+[ \t]*#[ \t]*include "([^"]*packed16[^"]*)"`)
)

// TestPatchesAreCompleteInOrder: no patch includes a file of ours that only a
// later one brings.
func TestPatchesAreCompleteInOrder(t *testing.T) {
	for name, on := range map[string]func(*testing.T) place{"fixture": onFixture, "upstream": onUpstream} {
		t.Run(name, func(t *testing.T) {
			dir, info := on(t).export(t)
			by, includes := map[string]int{}, 0 // which patch brings a file
			var patches [][]byte
			for i, p := range info.Patches {
				data, err := os.ReadFile(filepath.Join(dir, p.File))
				if err != nil {
					t.Fatal(err)
				}
				patches = append(patches, data)
				for _, m := range plusFile.FindAllSubmatch(data, -1) {
					name := filepath.Base(string(m[1]))
					if _, known := by[name]; !known {
						by[name] = i
					}
				}
			}
			for i, p := range info.Patches {
				data := patches[i]
				for _, m := range plusInclude.FindAllSubmatch(data, -1) {
					includes++
					if name := filepath.Base(string(m[1])); by[name] > i {
						t.Errorf("%s includes %s, which only %s brings", p.File, name, info.Patches[by[name]].File)
					}
				}
				if n := strings.Count(string(data), "\ndiff --git "); n != len(plusFile.FindAll(data, -1)) {
					t.Errorf("%s: %d files, %d diffs", p.File, len(plusFile.FindAll(data, -1)), n)
				}
			}
			if includes == 0 {
				t.Error("no patch includes a file of ours: this test sees nothing")
			}
		})
	}
}
