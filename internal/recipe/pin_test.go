package recipe

import (
	"os"
	"strings"
	"testing"

	"dot4fa/internal/fault"
)

const (
	oldCommit = "0123456789abcdef0123456789abcdef01234567"
	newCommit = "fedcba9876543210fedcba9876543210fedcba98"
)

// TestRewritePin: the file with the pin's two words exchanged, and nothing else.
func TestRewritePin(t *testing.T) {
	for name, text := range map[string]string{
		"plain":         "# top\nname: x\n\nupstream:\n  url: u   # where\n  commit: OLD # pinned\n\n\n  tag:    TAG\n# end",
		"tag first":     "upstream:\n  tag: TAG\n  commit: OLD\nname: x\n",
		"quoted":        "name: x\nupstream:\n  commit: \"OLD\"\n  tag: 'TAG'   \n",
		"flow":          "name: x\nupstream: {commit: OLD, tag: TAG}\n",
		"non-ASCII":     "name: x\nupstream: {url: 'https://é/ü', commit: OLD, tag: \"TAG\"} # ünïcode OLD TAG\n",
		"CRLF":          "name: x\r\nupstream:\r\n  commit: OLD\r\n  tag: TAG\r\n",
		"BOM":           "\ufeffname: x\nupstream: {commit: OLD, tag: TAG}\n",
		"BOM, one line": "\ufeff{name: x, upstream: {commit: OLD, tag: TAG}}\n",
		"no last line":  "name: x\nupstream:\n  commit: OLD\n  tag: TAG",
		"next line":     "name: x\nupstream:\n  commit:\n    OLD\n  tag: TAG\n",
		"decoys":        "# commit: OLD\nname: x\nsummary: 'commit: OLD, tag: TAG'\nupstream:\n  commit: OLD\n  tag: TAG\nenv: {commit: OLD, tag: TAG}\n",
		"document mark": "%YAML 1.1\n---\nname: x\nupstream:\n  commit: OLD\n  tag: TAG\n...\n",
	} {
		t.Run(name, func(t *testing.T) {
			src := strings.NewReplacer("OLD", oldCommit, "TAG", "b10").Replace(text)
			got, err := RewritePin("x.yaml", []byte(src), newCommit, "b12345")
			if err != nil {
				t.Fatal(err)
			}
			// Independent of the parser: put the new words where the old ones of
			// the pin stand.
			want := ""
			switch name {
			case "decoys":
				want = strings.Replace(src, "upstream:\n  commit: "+oldCommit+"\n  tag: b10", "upstream:\n  commit: "+newCommit+"\n  tag: b12345", 1)
			default:
				want = strings.Replace(strings.Replace(src, oldCommit, newCommit, 1), "b10", "b12345", 1)
			}
			if string(got) != want {
				t.Errorf("got\n%q\nwant\n%q", got, want)
			}
			back, err := RewritePin("x.yaml", got, oldCommit, "b10")
			if err != nil || string(back) != src {
				t.Errorf("there and back again: %v\n%q\nwant\n%q", err, back, src)
			}
		})
	}
}

func TestRewriteShippedPin(t *testing.T) {
	src, err := os.ReadFile("../../recipes/base.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got, err := RewritePin("recipes/base.yaml", src, newCommit, "b99999")
	if err != nil {
		t.Fatal(err)
	}
	a, b := strings.Split(string(src), "\n"), strings.Split(string(got), "\n")
	if len(a) != len(b) {
		t.Fatalf("%d lines became %d", len(a), len(b))
	}
	changed := 0
	for i := range a {
		if a[i] != b[i] {
			changed++
		}
	}
	if changed != 2 {
		t.Errorf("%d lines changed, want 2", changed)
	}
}

func TestRewritePinRefuses(t *testing.T) {
	good := "name: x\nupstream: {commit: " + oldCommit + ", tag: b10}\n"
	for name, c := range map[string]struct{ text, commit, tag, want string }{
		"short commit": {good, "fedcba9", "b1", "upstream.commit cannot be"},
		"bad tag":      {good, newCommit, "b 1", "upstream.tag cannot be"},
		"no pin":       {"name: x\nextends: y\n", newCommit, "b1", "has no pin"},
		"block scalar": {"name: x\nupstream:\n  commit: >-\n    " + oldCommit + "\n  tag: b10\n", newCommit, "b1", "cannot be rewritten in place"},
		"explicit tag": {"name: x\nupstream:\n  commit: !!str " + oldCommit + "\n  tag: b10\n", newCommit, "b1", "cannot be rewritten in place"},
		"escapes":      {"name: x\nupstream:\n  commit: " + oldCommit + "\n  tag: \"b\\x31\"\n", newCommit, "b1", "cannot be rewritten in place"},
		"not a recipe": {"- a\n", newCommit, "b1", "want a mapping"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := RewritePin("x.yaml", []byte(c.text), c.commit, c.tag)
			if err == nil || !strings.Contains(err.Error(), c.want) || fault.Hint(err) == "" {
				t.Errorf("error = %v, hint = %q, want %q", err, fault.Hint(err), c.want)
			}
		})
	}
}

func FuzzRewritePin(f *testing.F) {
	f.Add([]byte("name: x\nupstream:\n  commit: "+oldCommit+" # c\n  tag: 'b10'\n"), "b2")
	f.Fuzz(func(t *testing.T, src []byte, tag string) {
		got, err := RewritePin("x.yaml", src, newCommit, tag)
		if err != nil {
			return
		}
		l, err := decode("x.yaml", got)
		if err != nil {
			t.Fatalf("the rewritten file cannot be read: %v", err)
		}
		if l.items["upstream.commit"].value != newCommit || l.items["upstream.tag"].value != tag {
			t.Errorf("pin = %v, %v", l.items["upstream.commit"].value, l.items["upstream.tag"].value)
		}
	})
}
