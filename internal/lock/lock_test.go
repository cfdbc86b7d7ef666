package lock

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dot4fa/internal/fault"
)

var (
	sha1a = strings.Repeat("a", 40)
	sha2a = strings.Repeat("a", 64)
	sha2b = strings.Repeat("b", 64)
)

func sample() *Lock {
	return &Lock{
		Format: Format,
		Tool:   "v1",
		Recipe: Recipe{"cpu", sha2a},
		Upstream: Upstream{
			From: "https://example.org/ü: #x", Commit: sha1a, Tag: "b1", Tree: sha1a, Before: sha1a, After: sha1a,
		},
		Files:     []Item{{"ggml/src/a.cuh", sha2a}, {"ggml/src/b.cuh", sha2b}},
		Edits:     []Item{{"c.name", sha2a}, {"h.op", sha2b}},
		Toolchain: []Tool{{"cmake", "3.25.1"}, {"cxx", "GNU 12.2.0: \"x\"\n"}},
		Stages:    []Stage{{"fetch", sha2b}, {"apply", sha2a}},
	}
}

func TestRoundTrip(t *testing.T) {
	file := filepath.Join(t.TempDir(), "wörk tree", Name)
	if err := os.Mkdir(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	want := sample()
	if err := want.Write(file); err != nil {
		t.Fatal(err)
	}
	got, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("read back differs:\n%s", d)
	}
	// The order in memory does not show in the file; writing the same again
	// does not touch it.
	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	got.Files[0], got.Files[1] = got.Files[1], got.Files[0]
	if err := got.Write(file); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(before, after) {
		t.Error("writing an equal lock made a new file")
	}
	entries, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(entries) != 1 {
		t.Errorf("left beside the lock: %v, %v", entries, err)
	}
}

func TestEmptyLists(t *testing.T) {
	file := filepath.Join(t.TempDir(), Name)
	l := &Lock{Recipe: Recipe{"x", sha2a}, Upstream: Upstream{Tree: sha1a, Before: sha1a}}
	if err := l.Write(file); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(file); err != nil || got.Upstream.Commit != "" || len(got.Stages) != 0 {
		t.Errorf("Read = %+v, %v", got, err)
	}
}

// TestDamage: no byte of a lock can be changed, lost or added without Read
// noticing.
func TestDamage(t *testing.T) {
	data, err := sample().Bytes()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), Name)
	check := func(what string, damaged []byte) {
		t.Helper()
		if err := os.WriteFile(file, damaged, 0o644); err != nil {
			t.Fatal(err)
		}
		l, err := Read(file)
		if err == nil || l != nil {
			t.Errorf("%s: believed", what)
			return
		}
		var e *fault.Error
		if !errors.As(err, &e) || e.Hint == "" || e.Where != file {
			t.Errorf("%s: %v", what, err)
		}
	}
	for i := range data {
		changed := append([]byte(nil), data...)
		changed[i] ^= 1
		check("a byte changed", changed)
		if i%7 == 0 {
			check("cut short", data[:i])
		}
	}
	check("empty", nil)
	check("one byte more", append(append([]byte(nil), data...), '\n'))
	check("twice", append(append([]byte(nil), data...), data...))
	check("conflict markers", append([]byte("<<<<<<< ours\n"), data...))
	if _, err := Read(filepath.Join(t.TempDir(), Name)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no lock: %v", err)
	}
}

// seal gives text a right sum, so that only its content is wrong.
func seal(text string) []byte {
	return []byte(text + "sum: " + SumBytes([]byte(text)) + "\n")
}

func TestWrongContent(t *testing.T) {
	data, err := sample().Bytes()
	if err != nil {
		t.Fatal(err)
	}
	body := string(data[:strings.LastIndex(string(data), "sum: ")])
	for name, c := range map[string]struct{ old, new, want string }{
		"unknown field":   {"tool: v1\n", "tool: v1\ncolour: red\n", "colour"},
		"newer format":    {"format: 1\n", "format: 2\nwhat: ever\n", "format 2"},
		"older format":    {"format: 1\n", "format: 0\n", "format is 0"},
		"field twice":     {"tool: v1\n", "tool: v1\ntool: v2\n", "already defined"},
		"bad hash":        {"hash: " + sha2a, "hash: abc", "recipe.hash"},
		"bad tree":        {"tree: " + sha1a, "tree: x", "upstream.tree"},
		"same file twice": {"id: ggml/src/b.cuh", "id: ggml/src/a.cuh", "bad entry"},
		"path outside":    {"id: ggml/src/a.cuh", "id: ../a.cuh", "not a path"},
		"absolute path":   {"id: ggml/src/a.cuh", "id: /etc/a", "not a path"},
		"stage twice":     {"name: apply", "name: fetch", "bad entry"},
		"bad fingerprint": {"fingerprint: " + sha2b, "fingerprint: no", "bad entry"},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(body, c.old) {
				t.Fatalf("the sample has no %q", c.old)
			}
			_, err := parse(seal(strings.Replace(body, c.old, c.new, 1)))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error = %v, want %q", err, c.want)
			}
		})
	}
	if _, err := parse(seal(body)); err != nil {
		t.Errorf("the sample itself is refused: %v", err)
	}
}

func TestWriteRefusesNonsense(t *testing.T) {
	file := filepath.Join(t.TempDir(), Name)
	l := sample()
	if err := l.Write(file); err != nil {
		t.Fatal(err)
	}
	l.Upstream.Tree = "x"
	if err := l.Write(file); err == nil {
		t.Error("a lock that could not be read again was written")
	}
	if _, err := Read(file); err != nil {
		t.Errorf("the old lock is gone: %v", err)
	}
	err := sample().Write(filepath.Join(t.TempDir(), "none", Name))
	if fault.Code(err) != fault.Environment || fault.Hint(err) == "" {
		t.Errorf("no directory: %v", err)
	}
}

func TestStages(t *testing.T) {
	l := sample()
	l.Stages = nil
	var none *Lock
	if none.Fresh("fetch", sha2a) || l.Fresh("fetch", sha2a) || l.Fresh("fetch", "") {
		t.Error("fresh without ever being done")
	}
	for _, s := range []string{"fetch", "apply", "build"} {
		l.Done(s, sha2a)
	}
	l.Done("apply", sha2a) // nothing changed
	if !l.Fresh("build", sha2a) {
		t.Error("doing the same again makes later stages stale")
	}
	l.Done("apply", sha2b)
	if l.Fresh("build", sha2a) || l.Fresh("apply", sha2a) || !l.Fresh("apply", sha2b) || !l.Fresh("fetch", sha2a) {
		t.Errorf("stages = %v", l.Stages)
	}
	l.Forget("fetch")
	if len(l.Stages) != 0 {
		t.Errorf("stages = %v", l.Stages)
	}
	l.Forget("nothing")
}

func TestFingerprint(t *testing.T) {
	a := Fingerprint("x", map[string]int{"a": 1, "b": 2})
	if a != Fingerprint("x", map[string]int{"b": 2, "a": 1}) {
		t.Error("depends on the order of a map")
	}
	for i, other := range []string{Fingerprint(), Fingerprint("x"), Fingerprint("x", "y"), Fingerprint("xy"), Fingerprint("x", map[string]int{"a": 1})} {
		if other == a {
			t.Errorf("case %d has the same fingerprint", i)
		}
	}
	if Fingerprint("a", "b") == Fingerprint("ab") || Fingerprint([]string{"a"}, "b") == Fingerprint([]string{"a", "b"}) {
		t.Error("parts run into each other")
	}
}

func FuzzParse(f *testing.F) {
	data, _ := sample().Bytes()
	f.Add(string(data[:strings.LastIndex(string(data), "sum: ")]))
	f.Fuzz(func(t *testing.T, body string) {
		l, err := parse(seal(body))
		if err != nil {
			return
		}
		again, err := l.Bytes()
		if err != nil {
			t.Fatalf("read but cannot be written: %v", err)
		}
		if _, err := parse(again); err != nil {
			t.Fatalf("written but cannot be read: %v", err)
		}
	})
}
