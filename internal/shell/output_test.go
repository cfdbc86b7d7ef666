package shell

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func sh(script string) Command { return Command{Path: "/bin/sh", Args: []string{"-c", script}} }

func TestOutput(t *testing.T) {
	ctx := context.Background()
	if out, err := sh("echo out; echo err >&2").Output(ctx); err != nil || string(out) != "out\n" {
		t.Errorf("%q, %v", out, err)
	}
	if out, err := sh("echo out; echo err >&2").Text(ctx); err != nil || out != "out\nerr\n" {
		t.Errorf("%q, %v", out, err)
	}
	t.Setenv("DOT4FA_OF_THE_PARENT", "1")
	bare := sh("echo [$DOT4FA_OF_THE_PARENT$OWN]")
	bare.Env, bare.Bare = []string{"OWN=own"}, true
	if out, err := bare.Output(ctx); err != nil || string(out) != "[own]\n" {
		t.Errorf("%q, %v", out, err)
	}
	if out, err := sh(bare.String()).Output(ctx); err != nil || string(out) != "[own]\n" {
		t.Errorf("%s gives %q, %v", bare, out, err)
	}
}

// A failure says which program, with which arguments, and its last words.
func TestFailed(t *testing.T) {
	ctx := context.Background()
	for name, run := range map[string]func(Command) error{
		"Output": func(c Command) error { _, err := c.Output(ctx); return err },
		"Text":   func(c Command) error { _, err := c.Text(ctx); return err },
	} {
		err := run(sh("for i in 1 2 3 4 5 6; do echo line $i >&2; done; exit 3"))
		var failed *Failed
		if !errors.As(err, &failed) || !Ran(err) {
			t.Fatalf("%s: %v", name, err)
		}
		for _, want := range []string{"/bin/sh -c 'for i", "exit status 3", "\n    line 3\n    line 4\n    line 5\n    line 6"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q says no %q", name, err, want)
			}
		}
		if strings.Contains(err.Error(), "line 2") || !strings.Contains(failed.Said, "line 1\n") {
			t.Errorf("%s: %q, and said %q", name, err, failed.Said)
		}
		err = run(Command{Path: "/no/such/program", Args: []string{"an argument"}})
		if Ran(err) || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "/no/such/program 'an argument': ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if _, err := sh("sleep 30").Output(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("stopped with %v", err)
	}
}

// apart are the files that run a program in another way, and why.
var apart = map[string]string{
	"shell/exec.go":               "this is the way",
	"machine/machine.go":          "the programs of a machine that is looked at, with its environment instead of this one's, or made up for a test",
	"upstream/git.go":             "git with its own environment, a standard input, and progress that is read as it comes",
	"upstream/gittest/gittest.go": "for tests alone",
	"cli/bump.go":                 "the user's editor, which has the terminal and must stay in its process group",
	"hostrun/hostrun.go":          "the harness, with a standard input and two more pipes",
}

// Programs are run in one way: with the whole group stopped when the user stops
// dot4fa, and with errors that say what was run.
func TestOneWay(t *testing.T) {
	used := map[string]bool{}
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if id, ok := call.X.(*ast.Ident); ok && id.Name == "exec" && strings.HasPrefix(call.Sel.Name, "Command") {
				where := strings.TrimPrefix(filepath.ToSlash(name), "../")
				used[where] = true
				if apart[where] == "" {
					t.Errorf("%s: run it with internal/shell, or say here why not", fset.Position(call.Pos()))
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range apart {
		if !used[name] {
			t.Errorf("%s is listed, and runs no program", name)
		}
	}
}
