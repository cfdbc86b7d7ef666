package cli_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dot4fa/internal/build"
	"dot4fa/internal/lock"
	"dot4fa/internal/upstream"
)

// The tree ids in the lock are those of the files that lie in the work tree,
// before the edits and after.
func TestLockNamesTheTrees(t *testing.T) {
	layOut(t)
	ctx := context.Background()
	ours := func(path string, _ bool) bool {
		return path == "build" || path == lock.Name || path == build.PresetsFile
	}
	before := ""
	for _, step := range []string{"fetch", "apply", "build"} {
		if code, _, stderr := dot4fa(ctx, step, "--recipe", "cpu"); code != 0 {
			t.Fatalf("%s: %s", step, stderr)
		}
		found, err := upstream.HashDir(ctx, "work/cpu", ours)
		if err != nil {
			t.Fatal(err)
		}
		if step == "fetch" {
			if _, err := os.Stat("work/cpu/" + lock.Name); err == nil {
				t.Error("fetch alone writes a lock, of files not made yet")
			}
			before = found
			continue
		}
		l, err := lock.Read("work/cpu/" + lock.Name)
		if err != nil {
			t.Fatal(err)
		}
		if l.Upstream.Before != before || l.Upstream.After != found {
			t.Errorf("after %s the lock has before %s, after %s; the files were %s and are %s",
				step, l.Upstream.Before, l.Upstream.After, before, found)
		}
		if stages := stageNames(l); step == "build" && stages != "fetch apply cmake configure build" {
			t.Errorf("stages after build: %s", stages)
		}
	}

	// A lock that was edited is not believed, and a removed one is made again.
	name := filepath.Join("work/cpu", lock.Name)
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(strings.Replace(string(data), "tag: b2", "tag: b3", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := dot4fa(ctx, "build", "--recipe", "cpu"); code != 1 || !strings.Contains(stderr, "the lock is damaged") || !strings.Contains(stderr, "hint: remove it") {
		t.Errorf("an edited lock: exit code %d\n%s", code, stderr)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := dot4fa(ctx, "build", "--recipe", "cpu"); code != 0 {
		t.Errorf("without a lock: %s", stderr)
	}
	again, err := os.ReadFile(name)
	if err != nil || string(again) != string(data) {
		t.Errorf("the lock made again is another one: %v\n%s", err, again)
	}
}

func stageNames(l *lock.Lock) string {
	var names []string
	for _, s := range l.Stages {
		names = append(names, s.Name)
	}
	return strings.Join(names, " ")
}
