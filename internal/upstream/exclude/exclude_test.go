package exclude

import (
	"bytes"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		patterns string // separated by commas
		yes, no  string // separated by spaces; a trailing slash is a directory
	}{
		{"models/*.gguf", "models/a.gguf models/.gguf", "models/x/a.gguf a.gguf x/models/a.gguf models/a.ggufx models/"},
		{"docs/", "docs/ docs/a docs/x/y tools/docs/ tools/docs/a", "docs mydocs/ docs2/a"},
		{"/docs/", "docs/ docs/a", "tools/docs/a docs"},
		{"/media/", "media/a.png", "x/media/a.png media"},
		{"*.gguf", "a.gguf x/y/a.gguf", "a.gguf.txt"},
		{"**/test/a", "test/a x/test/a x/y/test/a", "xtest/a test/b"},
		{"a/**", "a/b a/b/c", "a/ a b/a/b"},
		{"a/**/b", "a/b a/x/b a/x/y/b", "a/xb x/a/b"},
		{"a**b", "ab axxb d/axb", "a/b"},
		{"???", "abc d/abc", "ab abcd a/b"},
		{"[a-c]x", "ax bx", "dx x"},
		{"[!a-c]x", "dx", "ax x"},
		{"[]a]x", "]x ax", "bx"},
		{`a\*b`, "a*b", "axb"},
		{`\#x`, "#x", "x"},
		{`\!x`, "!x", "x"},
		{"#x", "", "x #x"},
		{"a ", "a", "b"},
		{"*.gguf,!keep.gguf", "a.gguf", "keep.gguf x/keep.gguf"},
		{"models/,!models/keep.gguf", "models/keep.gguf", "x"},
		{"models/*,!models/keep.gguf", "models/a", "models/keep.gguf"},
		{"ünï*", "ünïx x/ünï", "unix"},
		{"ü[ä-ö]", "üä", "üz"},
		{"a.c", "a.c", "abc"},
		{"", "", "a"},
		{"/", "", "a a/"},
	} {
		l, err := Parse(strings.Split(tt.patterns, ","))
		if err != nil {
			t.Errorf("%s: %v", tt.patterns, err)
			continue
		}
		for want, list := range map[bool]string{true: tt.yes, false: tt.no} {
			for _, p := range strings.Fields(list) {
				name, dir := strings.CutSuffix(p, "/")
				if got := l.Match(name, dir); got != want {
					t.Errorf("%q on %q = %v, want %v", tt.patterns, p, got, want)
				}
			}
		}
	}
}

func TestBadPattern(t *testing.T) {
	for _, p := range []string{"a[", "[a-", `a\`, "[a/b]", `[\`, "[[:alpha]", "[[:nonsense:]]", "a\xff"} {
		if _, err := Parse([]string{"ok", p}); err == nil || !strings.Contains(err.Error(), "exclude pattern") {
			t.Errorf("Parse(%q) = %v, want an error", p, err)
		}
	}
	var none *List
	if none.Match("a", false) || none.Entry("a", true) {
		t.Error("the nil list excludes something")
	}
}

// TestAgainstGit compares with git's own matcher on random patterns and paths.
func TestAgainstGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("no git to compare with")
	}
	dir := t.TempDir()
	if out, err := exec.Command(git, "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v: %s", err, out)
	}
	// A tree in which every name exists as a directory and as a file.
	var files []string
	names := []string{"a", "b", "ab", "a.c", "b*", "-"}
	for _, d := range names {
		for _, e := range names {
			for _, f := range names {
				files = append(files, "d"+d+"/d"+e+"/"+f)
			}
			files = append(files, "d"+d+"/"+e)
		}
		files = append(files, d)
	}
	for _, f := range files {
		p := filepath.Join(dir, filepath.FromSlash(f))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	rng := rand.New(rand.NewSource(1))
	parts := []string{"a", "b", "da", "db", "d", "*", "**", "?", "/", "/", "[ab]", "[!b]", "[a-c]", ".", "c", `\*`, "-", "[]-]"}
	compared, excluded := 0, 0
	for round := range 300 {
		var patterns []string
		for range 1 + rng.Intn(3) {
			var b strings.Builder
			if rng.Intn(4) == 0 {
				b.WriteString("!")
			}
			for range 1 + rng.Intn(5) {
				b.WriteString(parts[rng.Intn(len(parts))])
			}
			patterns = append(patterns, b.String())
		}
		l, err := Parse(patterns)
		if err != nil {
			t.Fatalf("%q: %v", patterns, err)
		}
		if err := os.WriteFile(filepath.Join(dir, ".git", "info", "exclude"), []byte(strings.Join(patterns, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(git, "-C", dir, "check-ignore", "--no-index", "-z", "--stdin")
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		cmd.Stdin = strings.NewReader(strings.Join(files, "\x00") + "\x00")
		out, err := cmd.Output()
		if e, ok := err.(*exec.ExitError); err != nil && (!ok || e.ExitCode() != 1) {
			t.Fatalf("git check-ignore: %v", err)
		}
		ignored := map[string]bool{}
		for f := range bytes.SplitSeq(out, []byte{0}) {
			ignored[string(f)] = true
		}
		for _, f := range files {
			compared++
			if ignored[f] {
				excluded++
			}
			if got := l.Match(f, false); got != ignored[f] {
				t.Errorf("round %d: %q on %q = %v, git says %v", round, patterns, f, got, ignored[f])
			}
		}
	}
	if excluded < compared/20 || excluded > compared*19/20 {
		t.Errorf("%d of %d excluded: the patterns test nothing", excluded, compared)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("a/**/[!b]*.c", "a/x/y.c")
	f.Fuzz(func(t *testing.T, pattern, path string) {
		l, err := Parse([]string{pattern})
		if err == nil {
			l.Match(path, false)
		}
	})
}
