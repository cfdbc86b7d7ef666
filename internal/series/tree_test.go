package series

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dot4fa/internal/fault"
)

// checkout writes a tree to a new folder whose name has a blank and letters
// outside ASCII, and returns the folder.
func checkout(t testing.TB, tree files) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "work träe")
	for name, data := range tree {
		put(t, dir, name, data, 0o644)
	}
	return dir
}

func put(t testing.TB, dir, name, data string, mode fs.FileMode) {
	t.Helper()
	p := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(data), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(p, mode); err != nil {
		t.Fatal(err)
	}
}

// snapshot lists every file outside the state directory with mode and content,
// and every folder.
func snapshot(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, p)
		if name == stateDir {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		all[name] = info.Mode().String()
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			all[name] += " " + string(data)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var (
	small = files{
		"inc/a.h":      "enum e {\n  A,\n  COUNT\n};\n",
		"src/ü b.cpp":  "void f() {\r\n    x;\r\n}\r\n",
		"src/last.cpp": "end;",
		"other":        "not edited",
	}
	ours = []Rendered{{Path: "src/new/ä/k.cuh", Data: []byte("kernel\n")}, {Path: "top.h", Data: []byte("top\n")}}
)

func smallPlan(t testing.TB) *Plan {
	t.Helper()
	return mustPlan(t, mustLoad(t, `
  - {id: a, file: inc/a.h, why: w, anchor: COUNT, do: insert_before, text: "X,"}
  - {id: b, file: "src/ü b.cpp", why: w, scope: f, do: scope_open, text: "y;"}
  - {id: c, file: src/last.cpp, why: w, do: append, text: "z;"}
  - {id: n, file: tests/t.cpp, why: w, do: new_file, text: "n;"}
`), small, nil)
}

func state(t testing.TB, dir string, p *Plan, rendered []Rendered) TreeState {
	t.Helper()
	s, _, err := State(dir, p, rendered)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestApplyUnapply(t *testing.T) {
	ctx, plan, dir := context.Background(), smallPlan(t), checkout(t, small)
	put(t, dir, "inc/a.h", small["inc/a.h"], 0o600)
	put(t, dir, "src/last.cpp", small["src/last.cpp"], 0o755)
	before := snapshot(t, dir)
	if s := state(t, dir, plan, ours); s != Clean {
		t.Fatalf("fresh tree is %s", s)
	}
	c, err := Apply(ctx, dir, plan, ours, Options{DryRun: true})
	if err != nil || len(c.Written) != 6 {
		t.Fatalf("dry run: %+v, %v", c, err)
	}
	if d := cmp.Diff(before, snapshot(t, dir)); d != "" {
		t.Fatal("a dry run changed the tree:", d)
	}
	if c, err = Apply(ctx, dir, plan, ours, Options{}); err != nil {
		t.Fatal(err)
	}
	want := &Change{Written: []string{"inc/a.h", "src/last.cpp", "src/new/ä/k.cuh", "src/ü b.cpp", "tests/t.cpp", "top.h"}}
	if d := cmp.Diff(want, c); d != "" {
		t.Error(d)
	}
	applied := snapshot(t, dir)
	for _, f := range plan.Files {
		if got := applied[filepath.FromSlash(f.Path)]; !strings.HasSuffix(got, " "+string(f.Post)) {
			t.Errorf("%s holds %q", f.Path, got)
		}
	}
	if !strings.HasPrefix(applied["src/last.cpp"], "-rwxr-xr-x") || !strings.HasPrefix(applied["inc/a.h"], "-rw-------") {
		t.Error("the mode of an edited file changed")
	}
	info, _ := os.Stat(filepath.Join(dir, "inc/a.h"))
	if s := state(t, dir, plan, ours); s != Applied {
		t.Errorf("applied tree is %s", s)
	}
	if c, err = Apply(ctx, dir, plan, ours, Options{}); err != nil || !c.Empty() {
		t.Errorf("second apply: %+v, %v", c, err)
	}
	if again, _ := os.Stat(filepath.Join(dir, "inc/a.h")); !again.ModTime().Equal(info.ModTime()) {
		t.Error("the second apply touched a file")
	}
	if c, err = Unapply(ctx, dir, nil, nil, Options{DryRun: true}); err != nil || len(c.Restored) != 3 || len(c.Removed) != 3 {
		t.Errorf("dry run: %+v, %v", c, err)
	}
	if c, err = Unapply(ctx, dir, plan, ours, Options{}); err != nil {
		t.Fatal(err)
	}
	want = &Change{Restored: []string{"inc/a.h", "src/last.cpp", "src/ü b.cpp"}, Removed: []string{"src/new/ä/k.cuh", "tests/t.cpp", "top.h"}}
	if d := cmp.Diff(want, c); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(before, snapshot(t, dir)); d != "" {
		t.Error("unapply left a difference:", d)
	}
	if c, err = Unapply(ctx, dir, plan, ours, Options{}); err != nil || !c.Empty() {
		t.Errorf("second unapply: %+v, %v", c, err)
	}
	left, _ := os.ReadDir(filepath.Join(dir, stateDir))
	if len(left) != 1 || left[0].Name() != "lock" {
		t.Errorf("the state directory holds %v", left)
	}
}

// TestInterrupted stops apply and unapply before each change on disk in turn. What
// is left can be completed and taken back, and a stopped run says how.
func TestInterrupted(t *testing.T) {
	plan := smallPlan(t)
	older := mustPlan(t, mustLoad(t, `
  - {id: a, file: inc/a.h, why: w, anchor: COUNT, do: insert_before, text: "OLD,"}
  - {id: o, file: other, why: w, do: append, text: "old"}
  - {id: m, file: was/here.cpp, why: w, do: new_file, text: "old"}
`), small, nil)
	stop := errors.New("stopped")
	for _, from := range []string{"clean", "older", "unapply"} {
		for n := 0; ; n++ {
			dir := checkout(t, small)
			before := snapshot(t, dir)
			ctx := context.Background()
			run := func(o Options) error {
				if from == "unapply" {
					_, err := Unapply(ctx, dir, plan, ours, o)
					return err
				}
				_, err := Apply(ctx, dir, plan, ours, o)
				return err
			}
			switch from {
			case "older":
				if _, err := Apply(ctx, dir, older, nil, Options{}); err != nil {
					t.Fatal(err)
				}
			case "unapply":
				if _, err := Apply(ctx, dir, plan, ours, Options{}); err != nil {
					t.Fatal(err)
				}
			}
			left := n
			err := run(Options{step: func() error {
				if left == 0 {
					return stop
				}
				left--
				return nil
			}})
			if err == nil {
				if n < 8 {
					t.Fatalf("%s: only %d steps", from, n)
				}
				break
			}
			if !errors.Is(err, stop) || fault.Hint(err) == "" {
				t.Fatalf("%s, step %d: %v", from, n, err)
			}
			if s := state(t, dir, plan, ours); s == Foreign {
				t.Fatalf("%s, step %d: the tree is foreign", from, n)
			}
			if n%2 == 0 { // complete it, then take it back
				if err := run(Options{}); err != nil {
					t.Fatalf("%s, step %d: completing: %v", from, n, err)
				}
				want := Applied
				if from == "unapply" {
					want = Clean
				}
				if s := state(t, dir, plan, ours); s != want {
					t.Fatalf("%s, step %d: completed tree is %s", from, n, s)
				}
			}
			if _, err := Unapply(ctx, dir, nil, nil, Options{}); err != nil {
				t.Fatalf("%s, step %d: taking back: %v", from, n, err)
			}
			if d := cmp.Diff(before, snapshot(t, dir)); d != "" {
				t.Fatalf("%s, step %d: %s", from, n, d)
			}
			if tmp, _ := os.ReadDir(filepath.Join(dir, stateDir, "tmp")); len(tmp) > 0 {
				t.Fatalf("%s, step %d: temporary files are left: %v", from, n, tmp)
			}
		}
	}
}

func TestCanceled(t *testing.T) {
	dir := checkout(t, small)
	ctx, cancel := context.WithCancel(context.Background())
	n := 0
	_, err := Apply(ctx, dir, smallPlan(t), ours, Options{step: func() error {
		if n++; n == 12 {
			cancel()
		}
		return nil
	}})
	if fault.Code(err) != fault.Interrupted || fault.Hint(err) == "" {
		t.Errorf("error %v", err)
	}
	if s := state(t, dir, smallPlan(t), ours); s != Partial {
		t.Errorf("the tree is %s", s)
	}
}

func TestAnotherPlan(t *testing.T) {
	ctx, dir := context.Background(), checkout(t, small)
	before := snapshot(t, dir)
	one := mustPlan(t, mustLoad(t, `
  - {id: a, file: inc/a.h, why: w, anchor: COUNT, do: insert_before, text: "OLD,"}
  - {id: o, file: other, why: w, do: append, text: old}
`), small, nil)
	if _, err := Apply(ctx, dir, one, []Rendered{{Path: "gone/x", Data: []byte("1")}, {Path: "top.h", Data: []byte("old")}}, Options{}); err != nil {
		t.Fatal(err)
	}
	two := smallPlan(t)
	if s := state(t, dir, two, ours); s != Partial {
		t.Errorf("the tree is %s", s)
	}
	c, err := Apply(ctx, dir, two, ours, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"other"}, c.Restored); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"gone/x"}, c.Removed); d != "" {
		t.Error(d)
	}
	if s := state(t, dir, two, ours); s != Applied {
		t.Errorf("the tree is %s", s)
	}
	if _, err := os.Stat(filepath.Join(dir, "gone")); err == nil {
		t.Error("an empty folder is left")
	}
	if _, err := Unapply(ctx, dir, nil, nil, Options{}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(before, snapshot(t, dir)); d != "" {
		t.Error(d)
	}
}

func TestAnotherCommit(t *testing.T) {
	ctx, dir := context.Background(), checkout(t, small)
	if _, err := Apply(ctx, dir, smallPlan(t), nil, Options{}); err != nil {
		t.Fatal(err)
	}
	moved := files{}
	for p, data := range small {
		moved[p] = "// moved\n" + data
	}
	s := mustLoad(t, "  - {id: a, file: inc/a.h, why: w, anchor: COUNT, do: insert_before, text: \"X,\"}\n")
	_, err := Apply(ctx, dir, mustPlan(t, s, moved, nil), nil, Options{})
	if fault.Code(err) != fault.EditFails || !strings.Contains(err.Error(), "another upstream commit") {
		t.Errorf("error %v", err)
	}
	if _, err := Unapply(ctx, dir, nil, nil, Options{}); err != nil {
		t.Fatal(err)
	}
	s = mustLoad(t, "  - {id: a, file: inc/a.h, why: w, do: append, text: x}\n  - {id: b, file: src/last.cpp, why: w, do: append, text: x}\n")
	_, err = Apply(ctx, dir, mustPlan(t, s, moved, nil), nil, Options{})
	if fault.Code(err) != fault.EditFails || !strings.Contains(fault.Hint(err), "another commit") {
		t.Errorf("error %v, hint %s", err, fault.Hint(err))
	}
}

func TestRecordsAreLost(t *testing.T) {
	ctx, plan, dir := context.Background(), smallPlan(t), checkout(t, small)
	before := snapshot(t, dir)
	apply := func() {
		t.Helper()
		if _, err := Apply(ctx, dir, plan, ours, Options{}); err != nil {
			t.Fatal(err)
		}
	}
	back := func() {
		t.Helper()
		if _, err := Unapply(ctx, dir, plan, ours, Options{}); err != nil {
			t.Fatal(err)
		}
		delete(before, "src/new")
		delete(before, "src/new/ä")
		delete(before, "tests")
		after := snapshot(t, dir)
		for _, d := range []string{"src/new/ä", "src/new", "tests"} { // nobody knows any more who made them
			delete(after, d)
		}
		if d := cmp.Diff(before, after); d != "" {
			t.Error(d)
		}
	}
	apply()
	os.RemoveAll(filepath.Join(dir, stateDir))
	if s := state(t, dir, plan, ours); s != Applied {
		t.Errorf("without records the tree is %s", s)
	}
	back()

	apply()
	os.RemoveAll(filepath.Join(dir, stateDir, "pre"))
	if _, err := Unapply(ctx, dir, nil, nil, Options{}); fault.Code(err) != fault.EditFails {
		t.Errorf("without pre-images: %v", err)
	}
	back() // the plan knows them

	apply()
	put(t, dir, manifestFile, "{", 0o644)
	if _, err := Unapply(ctx, dir, plan, ours, Options{}); fault.Code(err) != fault.EditFails || !strings.Contains(err.Error(), "applied.json") {
		t.Errorf("with a damaged manifest: %v", err)
	}
	put(t, dir, manifestFile, `{"files":[{"path":"../../x","pre":"","post":["`+sum(nil)+`"]}]}`, 0o644)
	if _, err := Unapply(ctx, dir, plan, ours, Options{}); fault.Code(err) != fault.EditFails {
		t.Errorf("with a manifest that leaves the tree: %v", err)
	}
}

func TestNoTree(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	if _, err := Apply(context.Background(), dir, smallPlan(t), ours, Options{}); err == nil || fault.Hint(err) == "" {
		t.Errorf("error %v", err)
	}
	if _, _, err := State(dir, smallPlan(t), ours); err == nil {
		t.Error("a tree that is not there has a state")
	}
}

func TestReadOnlyTree(t *testing.T) {
	dir := checkout(t, small)
	for _, d := range []string{"inc", "src", "."} {
		d = filepath.Join(dir, d)
		os.Chmod(d, 0o555)
		t.Cleanup(func() { os.Chmod(d, 0o755) })
	}
	if f, err := os.Create(filepath.Join(dir, "probe")); err == nil {
		f.Close()
		t.Skip("read-only tree: this user may write everywhere")
	}
	_, err := Apply(context.Background(), dir, smallPlan(t), ours, Options{})
	if fault.Code(err) != fault.Environment || fault.Hint(err) == "" {
		t.Errorf("error %v", err)
	}
}

func TestWriteFaults(t *testing.T) {
	for err, code := range map[error]int{
		fs.ErrPermission:                           fault.Environment,
		&fs.PathError{Op: "open", Err: eROFS}:      fault.Environment,
		fault.New(fault.EditFails, "already told"): fault.EditFails,
		errors.New("anything"):                     fault.Failure,
	} {
		if got := writeFault(err, "d"); fault.Code(got) != code || !errors.Is(got, err) {
			t.Errorf("%v becomes %v", err, got)
		}
	}
}

func TestSecondRunWaits(t *testing.T) {
	plan, dir := smallPlan(t), checkout(t, small)
	inside, release := make(chan struct{}), make(chan struct{})
	done := make(chan error, 2)
	go func() {
		first := true
		_, err := Apply(context.Background(), dir, plan, ours, Options{step: func() error {
			if first {
				first = false
				close(inside)
				<-release
			}
			return nil
		}})
		done <- err
	}()
	<-inside
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if _, err := Apply(ctx, dir, plan, ours, Options{}); fault.Code(err) != fault.Interrupted {
		t.Errorf("giving up gives %v", err)
	}
	go func() {
		c, err := Apply(context.Background(), dir, plan, ours, Options{Waiting: func(lock string) {
			if !strings.HasSuffix(lock, "lock") {
				t.Errorf("the lock is called %s", lock)
			}
			close(release)
		}})
		if err == nil && !c.Empty() {
			err = errors.New("the second run found something to do")
		}
		done <- err
	}()
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestChangedMeanwhile(t *testing.T) {
	plan, dir := smallPlan(t), checkout(t, small)
	n := 0
	_, err := Apply(context.Background(), dir, plan, nil, Options{step: func() error {
		if n++; n == 9 { // while the first file is written
			put(t, dir, "src/last.cpp", "mine", 0o644)
		}
		return nil
	}})
	if fault.Code(err) != fault.EditFails || !strings.Contains(err.Error(), "src/last.cpp was changed") {
		t.Errorf("error %v", err)
	}
	if data, _ := os.ReadFile(filepath.Join(dir, "src/last.cpp")); string(data) != "mine" {
		t.Errorf("it now holds %q", data)
	}
}
