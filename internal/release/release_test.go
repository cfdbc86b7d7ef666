package release_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"dot4fa/internal/cli"
	"dot4fa/internal/fault"
	"dot4fa/internal/fixture"
	"dot4fa/internal/recipe"
	"dot4fa/internal/release"
	"dot4fa/internal/upstream/gittest"
)

// place is an upstream repository with a recipe pinned to a commit of it.
type place struct {
	upstream, recipe, commit string
	sparse                   []string // what of it is checked out; nil for all
}

// onFixture is the repository made of testdata/fixture.
func onFixture(t *testing.T) place {
	t.Helper()
	repo := fixture.New(t)
	text, err := os.ReadFile(filepath.Join(fixture.Root(t), "testdata", "fixture.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "fixture.yaml")
	text = bytes.ReplaceAll(text, []byte(strings.Repeat("0", 40)), []byte(repo.Commits["base"]))
	if err := os.WriteFile(file, text, 0o666); err != nil {
		t.Fatal(err)
	}
	return place{upstream: repo.Dir, recipe: file, commit: repo.Commits["base"]}
}

// onUpstream is llama.cpp at the pin of the rdna3 recipe, which adds the most files.
func onUpstream(t *testing.T) place {
	t.Helper()
	where := os.Getenv("DOT4FA_UPSTREAM")
	if where == "" {
		t.Skip("DOT4FA_UPSTREAM does not name a llama.cpp repository")
	}
	r, err := recipe.Load(os.DirFS(fixture.Root(t)), "rdna3")
	if err != nil {
		t.Fatal(err)
	}
	return place{upstream: where, recipe: "rdna3", commit: r.Upstream.Commit,
		sparse: []string{"/ggml/", "/src/", "/common/", "/include/", "/tests/", "/tools/llama-bench/"}}
}

func (p place) run(args ...string) (code int, out, log string) {
	root := os.DirFS("../..")
	var stdout, stderr bytes.Buffer
	args = append(args, "--recipe", p.recipe, "--upstream", p.upstream)
	code = cli.Run(context.Background(), root, cli.Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr}, args)
	return code, stdout.String(), stderr.String()
}

func (p place) export(t *testing.T) (dir string, info *release.Info) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "a series")
	if code, _, log := p.run("export", "--out", dir); code != 0 {
		t.Fatalf("export: exit code %d\n%s", code, log)
	}
	info, err := release.ReadInfo(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir, info
}

// clone is a clean checkout of the base that borrows the objects of p.
func (p place) clone(t *testing.T) *gittest.Repo {
	t.Helper()
	r := gittest.New(t)
	objects, err := filepath.Abs(filepath.Join(p.upstream, "objects"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(objects); err != nil {
		objects = filepath.Join(p.upstream, ".git", "objects")
	}
	if err := os.WriteFile(filepath.Join(r.Dir, ".git", "objects", "info", "alternates"), []byte(objects+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if p.sparse != nil { // what is not checked out may be missing from the repository
		r.Git("config", "core.repositoryformatversion", "1")
		r.Git("config", "extensions.partialClone", "origin")
		r.Git("config", "remote.origin.url", p.upstream)
		r.Git("config", "remote.origin.promisor", "true")
		r.Git(append([]string{"sparse-checkout", "set", "--no-cone"}, p.sparse...)...)
	}
	r.Git("checkout", "-q", "--detach", p.commit)
	return r
}

// TestPlainGit: people without dot4fa get, with git am and with git apply,
// exactly the tree that release.json promises, and that is what apply makes.
func TestPlainGit(t *testing.T) {
	for name, on := range map[string]func(*testing.T) place{"fixture": onFixture, "upstream": onUpstream} {
		t.Run(name, func(t *testing.T) {
			p := on(t)
			dir, info := p.export(t)
			var patches []string
			for _, r := range info.Patches {
				patches = append(patches, filepath.Join(dir, r.File))
			}

			r := p.clone(t)
			if got := r.Git("rev-parse", "HEAD^{tree}"); got != info.Base.Tree {
				t.Errorf("the base's tree is %s, release.json says %s", got, info.Base.Tree)
			}
			r.Git(append([]string{"am", "-q"}, patches...)...)
			if got := r.Git("rev-parse", "HEAD^{tree}"); got != info.Tip.Tree {
				t.Errorf("git am makes tree %s, release.json says %s", got, info.Tip.Tree)
			}
			log := r.Git("log", "--reverse", "--format=%s", info.Base.Commit+"..")
			for i, title := range strings.Split(log, "\n") {
				if title != info.Patches[i].Title {
					t.Errorf("commit %d is called %q instead of %q", i, title, info.Patches[i].Title)
				}
			}
			if bodies := r.Git("log", "--format=%b", info.Base.Commit+".."); strings.Count(bodies, "\nCan go when: ") != len(patches) {
				t.Errorf("not every commit says when it can go:\n%s", bodies)
			}

			r = p.clone(t)
			for _, file := range patches {
				r.Git("apply", "--index", "--whitespace=nowarn", file)
			}
			if got := r.Git("write-tree", "--missing-ok"); got != info.Tip.Tree {
				t.Errorf("git apply, one patch after the other, makes tree %s", got)
			}

			r = p.clone(t)
			var all bytes.Buffer
			for _, file := range patches {
				data, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				all.Write(data)
			}
			r.In(all.String(), "am", "-q")
			if got := r.Git("rev-parse", "HEAD^{tree}"); got != info.Tip.Tree {
				t.Errorf("git am of one mailbox makes tree %s", got)
			}

			if code, out, log := p.run("export", "--verify", dir); code != 0 || !strings.Contains(out, info.Tip.Tree) || !strings.Contains(out, "they are what this dot4fa exports") {
				t.Errorf("verify: exit code %d\n%s%s", code, out, log)
			}
			again, _ := p.export(t)
			if _, err := exec.LookPath("diff"); err == nil {
				if out, err := exec.Command("diff", "-r", dir, again).CombinedOutput(); err != nil {
					t.Errorf("two exports differ:\n%s", out)
				}
			}
		})
	}
}

// TestTipIsWhatApplyMakes compares every file of a work tree with git's.
func TestTipIsWhatApplyMakes(t *testing.T) {
	p := onFixture(t)
	dir, info := p.export(t)
	work := filepath.Join(t.TempDir(), "work")
	if code, _, log := p.run("apply", "--work", work); code != 0 {
		t.Fatalf("apply: exit code %d\n%s", code, log)
	}
	r := p.clone(t)
	for _, rec := range info.Patches {
		r.Git("am", "-q", filepath.Join(dir, rec.File))
	}
	for _, name := range strings.Split(r.Git("ls-files"), "\n") {
		want, err := os.ReadFile(filepath.Join(r.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(work, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not the same: %v", name, err)
		}
	}
}

// TestVerifyNames: each way in which a copy can be wrong is named.
func TestVerifyNames(t *testing.T) {
	p := onFixture(t)
	dir, info := p.export(t)
	first, second := info.Patches[0].File, info.Patches[1].File
	read := func(dir, name string) string {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for name, c := range map[string]struct {
		spoil map[string]string // new content by name, "" removes
		want  string
	}{
		"a letter":            {map[string]string{first: strings.Replace(read(dir, first), "+", "+ ", 1)}, first + ": sha256 "},
		"a file is missing":   {map[string]string{second: ""}, second + ": is missing"},
		"a file too many":     {map[string]string{"099-more.patch": "x"}, "099-more.patch: is not part of the release"},
		"one file out of two": {map[string]string{first: read(dir, first) + read(dir, second)}, first + ": holds 2 patches"},
		"line ends":           {map[string]string{first: strings.ReplaceAll(read(dir, first), "\n", "\r\n")}, first + ": its line ends were changed to CRLF"},
		"the tip": {map[string]string{release.InfoFile: strings.Replace(read(dir, release.InfoFile), info.Tip.Tree, info.Base.Tree, 1)},
			"the series makes tree " + info.Tip.Tree},
		"the base": {map[string]string{release.InfoFile: strings.Replace(read(dir, release.InfoFile), `"tree": "`+info.Base.Tree, `"tree": "`+info.Tip.Tree, 1)},
			"has tree " + info.Base.Tree},
		"two at once":     {map[string]string{first: "", "z": "x"}, "2 problems:\n  "},
		"no description":  {map[string]string{release.InfoFile: ""}, "no release can be read there"},
		"another field":   {map[string]string{release.InfoFile: `{"formt": 1}`}, `unknown field "formt"`},
		"a path upstairs": {map[string]string{release.InfoFile: strings.Replace(read(dir, release.InfoFile), `"`+first+`"`, `"../`+first+`"`, 1)}, "cannot be one of its own"},
	} {
		t.Run(name, func(t *testing.T) {
			bad := filepath.Join(t.TempDir(), "copy")
			if err := os.CopyFS(bad, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			for file, text := range c.spoil {
				at := filepath.Join(bad, file)
				var err error
				if text == "" {
					err = os.Remove(at)
				} else {
					err = os.WriteFile(at, []byte(text), 0o666)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			code, out, log := p.run("export", "--verify", bad)
			if code != fault.VerifyFailed || !strings.Contains(log, c.want) {
				t.Errorf("exit code %d, want %d and %q\n%s%s", code, fault.VerifyFailed, c.want, out, log)
			}
		})
	}
}

// TestVerifyAppliesStrictly: where whoever changed a patch also put its new
// sha256 into release.json, the index lines and the trees still tell.
func TestVerifyAppliesStrictly(t *testing.T) {
	p := onFixture(t)
	dir, info := p.export(t)
	for name, c := range map[string]struct{ old, new, want string }{
		"content": {"\n+    GGML_OP_PACK_K_PACKED16,\n", "\n+    GGML_OP_PACK_K_PACKED61,\n", "its index line says"},
		"context": {"\n     GGML_OP_COUNT,\n", "\n     GGML_OP_CUONT,\n", "does not apply"},
		"place":   {"\n@@ -", "\n@@ -1", "does not apply"},
	} {
		t.Run(name, func(t *testing.T) {
			bad := filepath.Join(t.TempDir(), "copy")
			if err := os.CopyFS(bad, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			edit := func(file, old, new string) []byte {
				at := filepath.Join(bad, file)
				data, err := os.ReadFile(at)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Contains(data, []byte(old)) {
					t.Fatalf("%s has no %q", file, old)
				}
				data = bytes.Replace(data, []byte(old), []byte(new), 1)
				if err := os.WriteFile(at, data, 0o666); err != nil {
					t.Fatal(err)
				}
				return data
			}
			first := info.Patches[0]
			edit(release.InfoFile, first.SHA256, sha(edit(first.File, c.old, c.new)))
			code, out, log := p.run("export", "--verify", bad)
			if code != fault.VerifyFailed || !strings.Contains(log, first.File+": ") || !strings.Contains(log, c.want) {
				t.Errorf("exit code %d, want %q\n%s%s", code, c.want, out, log)
			}
		})
	}
}

// TestWriteKeepsForeignFiles: what was not exported is never overwritten.
func TestWriteKeepsForeignFiles(t *testing.T) {
	p := onFixture(t)
	dir, info := p.export(t)
	if code, _, log := p.run("export", "--out", dir); code != 0 {
		t.Errorf("over an earlier export: exit code %d\n%s", code, log)
	}
	for _, name := range []string{"notes.txt", info.Patches[0].File} {
		at := filepath.Join(dir, name)
		if err := os.WriteFile(at, []byte("mine\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		code, _, log := p.run("export", "--out", dir)
		if code != fault.Usage || !strings.Contains(log, name) {
			t.Errorf("exit code %d for a foreign %s\n%s", code, name, log)
		}
		if data, err := os.ReadFile(at); err != nil || string(data) != "mine\n" {
			t.Errorf("%s was changed: %q, %v", name, data, err)
		}
		_ = os.Remove(at)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), ".dot4fa-*")); left != nil {
		t.Errorf("left behind: %v", left)
	}
}
