package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"dot4fa/internal/fault"
	"dot4fa/internal/hostrun"
	"dot4fa/internal/page"
	"dot4fa/internal/recipe"
	"dot4fa/internal/shell"
	"dot4fa/internal/syntax"
	"dot4fa/internal/upstream"
)

// The tests that a bump can run at the new pin.
const (
	TestExport  = "export"  // the generated series applies to the new base and gives the tip tree it says
	TestKernels = "kernels" // every route's kernels run on the CPU, against float64
	TestGo      = "go"      // dot4fa's own tests of the series on the new upstream, in a working copy
)

// BumpTests are all of them, in the order in which they run.
var BumpTests = []string{TestExport, TestKernels, TestGo}

// BumpTest is what became of one.
type BumpTest struct {
	Name    string  `json:"name"`
	Status  string  `json:"status"` // "ok", "failed" or "not run"
	Detail  string  `json:"detail"`
	Seconds float64 `json:"seconds"`
}

// notRun is why a test cannot be run here: not an outcome, and no pass.
type notRun string

func (e notRun) Error() string { return string(e) }

// test runs one test at the pin to, and reports false when it failed.
func (r *Run) test(ctx context.Context, b *Bump, name string) (bool, error) {
	run := map[string]func(context.Context, *Bump) (string, error){
		TestExport: r.testExport, TestKernels: r.testKernels, TestGo: r.testGo,
	}[name]
	r.Report.Status("bump      test %s", name)
	defer r.Report.Clear()
	start := time.Now()
	detail, err := run(ctx, b)
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	t := BumpTest{Name: name, Status: "ok", Detail: detail, Seconds: float64(time.Since(start).Milliseconds()) / 1000}
	var not notRun
	switch {
	case errors.As(err, &not):
		t.Status, t.Detail = "not run", err.Error()
	case err != nil:
		t.Status, t.Detail = "failed", err.Error()
	}
	b.Tests = append(b.Tests, t)
	return t.Status != "failed", nil
}

// compileAt compiles the units at the new pin. Where there is no compiler for the
// host, that is noted as a test that was not run.
func (r *Run) compileAt(ctx context.Context, repo *upstream.Repo, b *Bump) error {
	start := time.Now()
	t := BumpTest{Name: "compile", Status: "ok"}
	units, err := r.Units(ctx, repo)
	switch {
	case errors.Is(err, errNoCompiler):
		t.Status, t.Detail = "not run", firstLine(err)
	case err != nil:
		return err
	default:
		defer units.Close()
		r.Report.Status("bump      compile %s", b.To)
		b.Check.Units, err = units.Check(ctx, b.To.Commit)
		r.Report.Clear()
		if err != nil {
			return err
		}
		t.Detail = syntax.Summary(b.Check.Units)
		if len(syntax.Bad(b.Check.Units)) > 0 {
			t.Status = "failed"
		}
	}
	t.Seconds = float64(time.Since(start).Milliseconds()) / 1000
	b.Tests = append(b.Tests, t)
	return nil
}

// testExport makes the release at the new pin and checks it as a stranger would.
func (r *Run) testExport(ctx context.Context, b *Bump) (string, error) {
	o := r.Options
	moved := *r.Recipe
	moved.Upstream.Commit, moved.Upstream.Tag = b.To.Commit, b.To.Tag
	o.Recipe = &moved
	at := New(o)
	defer at.Close()
	dir, err := os.MkdirTemp("", "dot4fa-bump-*")
	if err != nil {
		return "", fault.Temporary(err)
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "series")
	info, err := at.Export(ctx, out)
	if err != nil {
		return "", err
	}
	checked, err := at.VerifyExport(ctx, out)
	if err != nil {
		return "", err
	}
	if !checked.Ours {
		return "", fault.New(fault.VerifyFailed, "the export is not the same when it is made again").At("%s", out).Hintf("%s", fault.Ours)
	}
	return fmt.Sprintf("a series of %s, tip tree %.10s", page.Plural(len(info.Patches), "member"), info.Tip.Tree), nil
}

// testKernels runs the recipe's kernels on the CPU.
func (r *Run) testKernels(ctx context.Context, _ *Bump) (string, error) {
	if r.Recipe.Backend == recipe.CPU {
		return "", notRun("recipe " + r.Recipe.Name + " has no kernels")
	}
	cxx, err := hostrun.FindCompiler(ctx)
	if err != nil {
		return "", notRun(firstLine(err))
	}
	dir, err := os.MkdirTemp("", "dot4fa-bump-*")
	if err != nil {
		return "", fault.Temporary(err)
	}
	defer os.RemoveAll(dir)
	done, err := hostrun.SelfCheck(ctx, r.Recipe, r.Assets, hostrun.Options{Compiler: cxx, Dir: dir, Jobs: runtime.GOMAXPROCS(0)})
	if err != nil {
		return "", err
	}
	cases, worst := 0, 0.0
	for _, c := range done {
		cases += c.Cases
		worst = max(worst, c.Worst)
	}
	return fmt.Sprintf("%d routes, %s, worst NMSE %.1e", len(done), page.Plural(cases, "case"), worst), nil
}

// goPackages are the packages whose tests ask a real upstream, when there is one.
var goPackages = []string{"./internal/series", "./internal/release", "./internal/fixture", "./internal/provenance"}

// testGo runs dot4fa's own tests. They read the recipe, so the pin has to be written.
func (r *Run) testGo(ctx context.Context, b *Bump) (string, error) {
	switch {
	case r.Copy == "" || !isFile(filepath.Join(r.Copy, "go.mod")):
		return "", notRun("this is no working copy of dot4fa")
	case !b.Written && b.From != b.To:
		return "", notRun("the pin is not written")
	}
	tool, err := exec.LookPath("go")
	if err != nil {
		return "", notRun("no go on PATH")
	}
	cmd := shell.Command{Path: tool, Args: append([]string{"test"}, goPackages...), Dir: r.Copy}
	if local := r.location(); filepath.IsAbs(local) {
		cmd.Env = append(cmd.Env, "DOT4FA_UPSTREAM="+local)
	}
	var out bytes.Buffer
	if err := cmd.Run(ctx, &out); err != nil {
		return "", fault.New(fault.VerifyFailed, "%s: %w\n%s", cmd.String(), err, shell.Last(out.String(), 20)).
			Hintf("run it by hand: %s", cmd)
	}
	return strings.Join(goPackages, " "), nil
}

// chosenTests puts the tests asked for in their order; an unknown name is an error.
func chosenTests(names []string) ([]string, error) {
	var out []string
	for _, n := range names {
		if !slices.Contains(BumpTests, n) {
			return nil, fault.New(fault.Usage, "there is no test %q", n).Hintf("the tests of a bump are %s", strings.Join(BumpTests, ", "))
		}
	}
	for _, n := range BumpTests {
		if slices.Contains(names, n) {
			out = append(out, n)
		}
	}
	return out, nil
}
