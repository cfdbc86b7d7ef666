// Package provenance checks that nothing of upstream's text is committed here.
// It has no code of its own; the check needs a local upstream.
package provenance

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"dot4fa/internal/recipe"
	"dot4fa/internal/upstream"
)

// run is how many telling lines in a row, the same in both, count as a copy.
const run = 4

var (
	word = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]{2,}`)
	// Naming the sources of a ggml node is the one way to do it, not a text.
	sources = regexp.MustCompile(`^const (struct )?ggml_tensor \* \w+ = \w+->src\[\d\];$`)
)

// telling returns the lines of a text that are long enough to carry somebody's
// expression, white space folded; it leaves out blank lines, includes, the
// naming of a node's sources and lines of fewer than three words.
func telling(text string) (lines []string) {
	for _, line := range strings.Split(text, "\n") {
		line = strings.Join(strings.Fields(line), " ")
		if len(line) < 24 || len(word.FindAllString(line, 3)) < 3 || strings.HasPrefix(line, "#include") || sources.MatchString(line) {
			continue
		}
		lines = append(lines, line)
	}
	return lines
}

// shingles maps each run of telling lines to where it stands.
func shingles(text string, add func(key string, first string)) {
	lines := telling(text)
	for i := 0; i+run <= len(lines); i++ {
		add(strings.Join(lines[i:i+run], "\n"), lines[i])
	}
}

func source(name string) bool {
	switch filepath.Ext(name) {
	case ".c", ".h", ".cpp", ".cu", ".cuh", ".inc", ".tmpl", ".txt", ".cmake", ".yaml", ".yml", ".md", ".sh", ".py", ".txtar":
		return true
	}
	return false
}

func TestNoUpstreamText(t *testing.T) {
	location := os.Getenv("DOT4FA_UPSTREAM")
	if location == "" {
		t.Skip("DOT4FA_UPSTREAM names no local upstream to compare with")
	}
	r, err := recipe.Load(os.DirFS("../.."), "cpu")
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	snap, err := upstream.Open(ctx, upstream.Options{
		Location: location, Commit: r.Upstream.Commit, Exclude: r.Upstream.Exclude,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()

	theirs := map[string]string{}
	files, err := snap.Files()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !source(f.Path) {
			continue
		}
		data, err := snap.ReadFile(f.Path)
		if err != nil {
			t.Fatal(err)
		}
		shingles(string(data), func(key, _ string) { theirs[key] = f.Path })
	}
	if len(theirs) < 10000 {
		t.Fatalf("only %d runs of lines in upstream: the comparison would prove nothing", len(theirs))
	}

	out, err := exec.Command("git", "ls-files", "-z", "../..").Output()
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, name := range strings.Split(strings.TrimRight(string(out), "\x00"), "\x00") {
		if !source(name) {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			continue // deleted in the work tree
		}
		compared++
		var found []string
		shingles(string(data), func(key, first string) {
			if where, ok := theirs[key]; ok {
				found = append(found, fmt.Sprintf("%q as in %s:\n%s", first, where, key))
			}
		})
		if found != nil {
			t.Errorf("%s shares %d runs of %d lines with upstream, from %s", name, len(found), run, strings.Join(found, "\nand "))
		}
	}
	if compared == 0 {
		t.Fatal("no file of this repository was compared")
	}
	t.Logf("%d files compared with %d runs of upstream's lines", compared, len(theirs))
}

// The check sees a copy when there is one.
func TestTellingSeesACopy(t *testing.T) {
	text := "int alpha_one = compute(beta, gamma);\n\n" +
		"static int second_line(int first, int other);\n" +
		"const float third_value = scale * other_value;\n" +
		"return fourth_call(third_value, alpha_one);\n"
	count := 0
	shingles(strings.ReplaceAll(text, "\n", "\n   "), func(key, _ string) { count++ })
	if count != 1 {
		t.Fatalf("%d runs, want 1", count)
	}
}
