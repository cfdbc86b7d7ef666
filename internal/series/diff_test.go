package series

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
	"github.com/google/go-cmp/cmp"
)

// patch applies a unified diff to a tree with go-gitdiff.
func patch(t testing.TB, tree files, diff []byte) files {
	t.Helper()
	out := files{}
	for p, data := range tree {
		out[p] = data
	}
	parsed, _, err := gitdiff.Parse(bytes.NewReader(diff))
	if err != nil {
		t.Fatalf("%v\n%s", err, diff)
	}
	for _, f := range parsed {
		if f.IsNew {
			tree[f.NewName] = ""
		} else if _, ok := tree[f.OldName]; !ok {
			t.Fatalf("the diff names %s, which is not there", f.OldName)
		}
		var b bytes.Buffer
		if err := gitdiff.Apply(&b, bytes.NewReader([]byte(tree[f.NewName])), f); err != nil {
			t.Fatalf("%s: %v\n%s", f.NewName, err, diff)
		}
		out[f.NewName] = b.String()
	}
	return out
}

// image is the tree after the first n members.
func image(p *Plan, tree files, n int) files {
	out := files{}
	for name, data := range tree {
		out[name] = data
	}
	for i := range p.Files {
		if data, ok := p.Files[i].Image(n); ok {
			out[p.Files[i].Path] = string(data)
		}
	}
	return out
}

// checkDiffs makes sure that the diffs of the members lead from each image to
// the next, and the diff of the plan from the first to the last.
func checkDiffs(t testing.TB, p *Plan, tree files) {
	t.Helper()
	if d := cmp.Diff(tree, image(p, tree, 0)); d != "" {
		t.Fatal("the image of no member is not the tree:", d)
	}
	all := image(p, tree, len(p.Members))
	for _, f := range p.Files {
		if all[f.Path] != string(f.Post) {
			t.Fatalf("%s: the image of all members is not the edited file", f.Path)
		}
	}
	if d := cmp.Diff(all, patch(t, image(p, tree, 0), p.Diff())); d != "" {
		t.Fatalf("the diff of the plan: %s\n%s", d, p.Diff())
	}
	for n := range p.Members {
		got := patch(t, image(p, tree, n), p.MemberDiff(n))
		if d := cmp.Diff(image(p, tree, n+1), got); d != "" {
			t.Fatalf("the diff of member %d: %s\n%s", n, d, p.MemberDiff(n))
		}
	}
}

// gitPatch applies a unified diff to a tree with git.
func gitPatch(t *testing.T, tree files, diff []byte) files {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("plain git: git is not installed")
	}
	dir := checkout(t, tree)
	cmd := exec.Command("git", "apply", "--whitespace=nowarn", "-")
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(diff)
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir), "GIT_CONFIG_GLOBAL=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git apply: %v\n%s\n%s", err, out, diff)
	}
	out := files{}
	for name := range snapshot(t, dir) {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
			out[filepath.ToSlash(name)] = string(data)
		}
	}
	return out
}

func TestMemberDiffs(t *testing.T) {
	fsys := fstest.MapFS{}
	for i, edits := range []string{
		"  - {id: a, file: f, why: w, scope: enum e, do: scope_end, text: 'X,'}\n  - {id: n, file: d/n, why: w, do: new_file, text: n}\n",
		"  - {id: b, file: f, why: w, anchor: B, do: insert_after, text: 'Y,'}\n  - {id: c, file: f, why: w, anchor: 'x ==', do: bump_counter}\n",
		"  - {id: e, file: f, why: w, do: append, text: end;}\n  - {id: g, file: f, why: w, anchor: x, do: insert_before, text: 'y;'}\n",
	} {
		fsys[fmt.Sprintf("patches/0%d0-m.yaml", i+1)] = &fstest.MapFile{Data: []byte(head + edits)}
	}
	s, err := Load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	for name, src := range map[string]string{
		"plain":      "enum e {\n  A,\n  B\n};\n\n\n\n\n\nx == 1;\n",
		"no newline": "enum e {\n  A,\n  B\n};\nx == 1;",
		"CRLF":       "enum e {\r\n  A,\r\n  B\r\n};\r\nx == 1;\r\n",
		"one line":   "enum e { A, B\n}; x == 1;",
	} {
		t.Run(name, func(t *testing.T) {
			tree := files{"f": src}
			rs, err := s.Check(tree.read)
			if err != nil {
				t.Fatal(err)
			}
			if name == "one line" { // B and x do not begin a line
				if !rs[5].Failed() {
					t.Errorf("%+v", rs[5])
				}
				return
			}
			p := mustPlan(t, s, tree, nil)
			checkDiffs(t, p, tree)
			for n := range p.Members {
				if d := cmp.Diff(image(p, tree, n+1), gitPatch(t, image(p, tree, n), p.MemberDiff(n))); d != "" {
					t.Errorf("git applies member %d otherwise: %s", n, d)
				}
			}
			if p.File("d/n") == nil || bytes.Contains(p.MemberDiff(1), []byte("d/n")) {
				t.Error("the new file is not in its member alone")
			}
		})
	}
}

func TestDiffText(t *testing.T) {
	s := mustLoad(t, "  - {id: a, file: 'ä b', why: w, anchor: e, do: insert_before, text: x}\n  - {id: b, file: n, why: w, do: new_file, text: y}\n")
	p := mustPlan(t, s, files{"ä b": "a;\nb;\nc;\nd;\ne;\nf;\ng;\nh;\n"}, nil)
	want := `diff --git a/n b/n
new file mode 100644
--- /dev/null
+++ b/n
@@ -0,0 +1 @@
+y
diff --git "a/\303\244 b" "b/\303\244 b"
--- "a/\303\244 b"
+++ "b/\303\244 b"
@@ -2,6 +2,7 @@
 b;
 c;
 d;
+x
 e;
 f;
 g;
`
	if d := cmp.Diff(want, string(p.Diff())); d != "" {
		t.Error(d)
	}
	tree := image(p, files{}, 0)
	if d := cmp.Diff(image(p, tree, 1), gitPatch(t, tree, p.Diff())); d != "" {
		t.Error(d)
	}
}
