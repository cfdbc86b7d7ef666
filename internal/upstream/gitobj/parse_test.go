package gitobj

import (
	"strings"
	"testing"
)

// FuzzParseTree: no bytes make the parser fail in another way than with an
// error, and a tree of one entry is written back as it was read.
func FuzzParseTree(f *testing.F) {
	id := strings.Repeat("\x12", 20)
	f.Add([]byte("100644 a\x00" + id + "40000 b\x00" + id))
	f.Add([]byte("100644 a"))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := parseTree("x", data)
		if err != nil {
			return
		}
		for _, e := range entries {
			if e.Name == "" || e.Name == ".." || strings.ContainsAny(e.Name, "/\x00") || len(e.ID) != 40 {
				t.Errorf("entry %+v", e)
			}
		}
		if len(entries) == 1 && strings.HasPrefix(string(data), entries[0].Mode+" ") && HashTree(entries) != Hash(Tree, data) {
			t.Errorf("a tree of one entry has another id: %q", data)
		}
	})
}

func FuzzParseCommit(f *testing.F) {
	f.Add("tree " + strings.Repeat("a", 40) + "\nparent " + strings.Repeat("b", 40) + "\ncommitter x <y> 12 +0000\n\nsubject\n\nmore\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseCommit("x", []byte(text))
		if err == nil && !IsID(c.Tree) {
			t.Errorf("commit %+v", c)
		}
	})
}
