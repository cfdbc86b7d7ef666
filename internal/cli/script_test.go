package cli_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/tools/txtar"

	"dot4fa/internal/cli"
	"dot4fa/internal/isa"
	"dot4fa/internal/machine"
)

// The scripts run dot4fa as a process of its own. Where they do not run in a
// working copy of their own, its assets are this repository's.
func TestMain(m *testing.M) {
	root, err := filepath.Abs("../..")
	if err != nil {
		panic(err)
	}
	if os.Getenv(rootVar) == "" {
		os.Setenv(rootVar, root)
	}
	testscript.Main(m, map[string]func(){
		"dot4fa": func() { os.Exit(cli.Main(os.DirFS(os.Getenv(rootVar)))) },
	})
}

const rootVar = "DOT4FA_TEST_ROOT"

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup:               setup,
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "root":
				return os.Geteuid() == 0, nil
			case "clang": // fit for isa
				_, err := isa.FindCompiler(context.Background(), machine.Host(), "")
				return err == nil, nil
			}
			return false, errors.New("unknown condition")
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":   exits,
			"replace": replace,
			"commit":  commit,
			"same":    same,
			"branch":  branch,
		},
	})
}

// setup lays out what every script starts from, as testdata/fixture.txtar has it:
// a working copy with a small series (copy/), a repository that stands for
// upstream (up/) with the tags b1, b2 (the pin) and b3, and programs that stand
// for CMake, Ninja and the compilers (bin/).
func setup(env *testscript.Env) error {
	dot4fa, err := lookIn(env.Getenv("PATH"), "dot4fa")
	if err != nil {
		return err
	}
	env.Setenv("DOT4FA_BIN", filepath.Dir(dot4fa))
	chmod, err := exec.LookPath("chmod")
	if err != nil {
		return err
	}
	env.Setenv("DOT4FA_CHMOD", chmod)
	env.Setenv("BIN", filepath.Join(env.WorkDir, "bin"))
	env.Setenv("TOOLS", filepath.Dir(dot4fa)+string(os.PathListSeparator)+filepath.Join(env.WorkDir, "bin"))
	env.Setenv(rootVar, os.Getenv(rootVar))
	env.Setenv("DOT4FA_CACHE", filepath.Join(env.WorkDir, "cache"))
	for _, name := range []string{"DOT4FA_UPSTREAM", "CC", "CXX", "HIPCXX", "CUDACXX", "ROCM_PATH", "HIP_PATH", "CUDA_PATH", "CUDA_HOME"} {
		env.Setenv(name, "")
	}
	fixture, err := txtar.ParseFile("testdata/fixture.txtar")
	if err != nil {
		return err
	}
	return lay(env.WorkDir, fixture)
}

// lay writes the fixture under work.
func lay(work string, fixture *txtar.Archive) error {
	pin, err := makeUpstream(work, fixture)
	if err != nil {
		return err
	}
	fill := strings.NewReplacer("@COMMIT@", pin, "@WORK@", work).Replace
	for _, f := range fixture.Files {
		if strings.HasPrefix(f.Name, "up") {
			continue
		}
		mode := os.FileMode(0o644)
		if strings.HasPrefix(f.Name, "bin/") {
			mode = 0o755
		}
		if err := write(filepath.Join(work, f.Name), fill(string(f.Data)), mode); err != nil {
			return err
		}
	}
	return nil
}

func lookIn(path, name string) (string, error) {
	for _, dir := range filepath.SplitList(path) {
		if file := filepath.Join(dir, name); isFile(file) {
			return file, nil
		}
	}
	return "", exec.ErrNotFound
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && !info.IsDir()
}

func write(name, data string, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(data), mode)
}

// makeUpstream makes the repository up/ out of the directories up1, up2 and up3
// of the fixture, one commit each; a later one overlays the earlier. It returns
// the commit of b2.
func makeUpstream(work string, fixture *txtar.Archive) (string, error) {
	dir := filepath.Join(work, "up")
	repo, err := git.PlainInit(dir, false)
	if err != nil {
		return "", err
	}
	tree, err := repo.Worktree()
	if err != nil {
		return "", err
	}
	pin := ""
	for n := 1; n <= 3; n++ {
		for _, f := range fixture.Files {
			rel, ok := strings.CutPrefix(f.Name, "up"+strconv.Itoa(n)+"/")
			if !ok {
				continue
			}
			if err := write(filepath.Join(dir, rel), string(f.Data), 0o644); err != nil {
				return "", err
			}
			if _, err := tree.Add(rel); err != nil {
				return "", err
			}
		}
		who := &object.Signature{Name: "upstream", Email: "upstream@example.invalid", When: time.Date(2026, 8, n, 12, 0, 0, 0, time.UTC)}
		id, err := tree.Commit("change "+strconv.Itoa(n), &git.CommitOptions{Author: who, Committer: who})
		if err != nil {
			return "", err
		}
		if _, err := repo.CreateTag("b"+strconv.Itoa(n), id, nil); err != nil {
			return "", err
		}
		if n == 2 {
			pin = id.String()
		}
	}
	return pin, nil
}

// exits CODE COMMAND... runs a command and checks its exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARG...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%s: %v", args[1], err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// replace OLD NEW FILE replaces text that must be there.
func replace(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: replace OLD NEW FILE")
	}
	file := ts.MkAbs(args[2])
	old := ts.ReadFile(args[2])
	unescape := strings.NewReplacer(`\n`, "\n").Replace
	if !strings.Contains(old, unescape(args[0])) {
		ts.Fatalf("%s does not hold %q", args[2], args[0])
	}
	ts.Check(os.WriteFile(file, []byte(strings.ReplaceAll(old, unescape(args[0]), unescape(args[1]))), 0o644))
}

// commit VAR sets VAR to the fixture's pinned commit.
func commit(ts *testscript.TestScript, neg bool, args []string) {
	repo, err := git.PlainOpen(filepath.Join(ts.Getenv("WORK"), "up"))
	ts.Check(err)
	id, err := repo.ResolveRevision(plumbing.Revision(args[1]))
	ts.Check(err)
	ts.Setenv(args[0], id.String())
}

// same A B checks that two directories hold the same files, leaving .git,
// .dot4fa, build and the lock out of account.
func same(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: [!] same DIR DIR")
	}
	a, b := files(ts, ts.MkAbs(args[0])), files(ts, ts.MkAbs(args[1]))
	var differ []string
	for name := range a {
		if b[name] != a[name] {
			differ = append(differ, name)
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			differ = append(differ, name)
		}
	}
	if (len(differ) == 0) == neg {
		ts.Fatalf("%s and %s differ in %v", args[0], args[1], differ)
	}
}

func files(ts *testscript.TestScript, dir string) map[string]string {
	out := map[string]string{}
	ts.Check(filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		switch rel {
		case ".git", ".dot4fa", "build":
			return filepath.SkipDir
		case "dot4fa.lock":
			return nil
		}
		if d.IsDir() {
			return nil
		}
		data, err := os.ReadFile(name)
		out[rel] = string(data)
		return err
	}))
	return out
}
