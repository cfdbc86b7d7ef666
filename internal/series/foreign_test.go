package series

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dot4fa/internal/fault"
)

func TestForeign(t *testing.T) {
	plan := smallPlan(t)
	for _, c := range []struct {
		name   string
		apply  bool // before the change
		change func(t *testing.T, dir string)
		want   string
	}{
		{"edited before", false, func(t *testing.T, dir string) { put(t, dir, "inc/a.h", "mine", 0o644) }, "inc/a.h: it is neither upstream's file nor the edited one"},
		{"edited after", true, func(t *testing.T, dir string) { put(t, dir, "inc/a.h", "mine", 0o644) }, "inc/a.h: it is neither upstream's file nor the edited one"},
		{"removed before", false, func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, "inc/a.h")) }, "inc/a.h: it is missing"},
		{"removed after", true, func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, "inc/a.h")) }, "inc/a.h: it is missing"},
		{"rendered file in the way", false, func(t *testing.T, dir string) { put(t, dir, "top.h", "mine", 0o644) }, "top.h: a file that dot4fa did not write is in the way"},
		{"rendered file edited", true, func(t *testing.T, dir string) { put(t, dir, "top.h", "mine", 0o644) }, "top.h: a file that dot4fa did not write is in the way"},
		{"folder in the way", false, func(t *testing.T, dir string) { os.Mkdir(filepath.Join(dir, "top.h"), 0o755) }, "top.h: it is not a regular file"},
		{"file for a folder", false, func(t *testing.T, dir string) { put(t, dir, "src/new", "mine", 0o644) }, "src/new/ä/k.cuh: a parent of it is not a directory"},
		{"link to a file inside", false, func(t *testing.T, dir string) {
			os.Remove(filepath.Join(dir, "inc/a.h"))
			os.Symlink("../other", filepath.Join(dir, "inc/a.h"))
		}, "inc/a.h: it is a symbolic link"},
		{"dangling link", false, func(t *testing.T, dir string) { os.Symlink("/nowhere", filepath.Join(dir, "top.h")) }, "top.h: it is a symbolic link"},
		{"folder that links outside", false, func(t *testing.T, dir string) {
			out := t.TempDir()
			put(t, out, "a.h", small["inc/a.h"], 0o644)
			os.RemoveAll(filepath.Join(dir, "inc"))
			os.Symlink(out, filepath.Join(dir, "inc"))
		}, "inc/a.h: "},
		{"new folder that links outside", false, func(t *testing.T, dir string) { os.Symlink(t.TempDir(), filepath.Join(dir, "src/new")) }, "src/new/ä/k.cuh: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, dir := context.Background(), checkout(t, small)
			if c.apply {
				if _, err := Apply(ctx, dir, plan, ours, Options{}); err != nil {
					t.Fatal(err)
				}
			}
			c.change(t, dir)
			before := snapshot(t, dir)
			if s := state(t, dir, plan, ours); s != Foreign {
				t.Errorf("the tree is %s", s)
			}
			for verb, run := range map[string]func() error{
				"apply":   func() error { _, err := Apply(ctx, dir, plan, ours, Options{}); return err },
				"unapply": func() error { _, err := Unapply(ctx, dir, plan, ours, Options{}); return err },
			} {
				err := run()
				if fault.Code(err) != fault.EditFails || !strings.Contains(err.Error(), c.want) || fault.Hint(err) == "" {
					t.Errorf("%s: error %v, want %s", verb, err, c.want)
				}
			}
			if d := cmp.Diff(before, snapshot(t, dir)); d != "" {
				t.Error("the tree changed:", d)
			}
		})
	}
}

func TestStateDirectoryIsALink(t *testing.T) {
	for _, name := range []string{stateDir, stateDir + "/pre", stateDir + "/lock"} {
		dir, out := checkout(t, small), t.TempDir()
		if name != stateDir {
			os.Mkdir(filepath.Join(dir, stateDir), 0o755)
		}
		os.Symlink(out, filepath.Join(dir, name))
		if _, err := Apply(context.Background(), dir, smallPlan(t), ours, Options{}); err == nil {
			t.Errorf("%s: no error", name)
		}
		if left, _ := os.ReadDir(out); len(left) > 0 {
			t.Errorf("%s: written outside: %v", name, left)
		}
	}
}

func TestRenderedPathsAreChecked(t *testing.T) {
	dir := checkout(t, small)
	for _, p := range []string{"../x", "/x", "a/../b", ".dot4fa/x", ".git/hooks/x", "inc/a.h"} {
		_, err := Apply(context.Background(), dir, smallPlan(t), []Rendered{{Path: p}}, Options{})
		if fault.Code(err) != fault.Usage {
			t.Errorf("%s: error %v", p, err)
		}
	}
}
