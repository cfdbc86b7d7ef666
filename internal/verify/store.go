package verify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"dot4fa/internal/fault"
	"dot4fa/internal/input"
	"dot4fa/internal/output"
)

// store keeps what was measured, under a name made of everything it depends on:
// a run that was interrupted goes on where it stopped, and what was measured with
// other binaries, another model or text is never taken.
type store struct {
	dir   string
	fresh bool // take nothing from it
}

func openStore(dir string, fresh bool) (*store, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fault.New(fault.Environment, "cannot keep results: %w", err).At("%s", dir).Hintf("make it writable")
	}
	return &store{dir, fresh}, nil
}

// lock keeps other runs on the same results away until unlock. A run that finds it
// held says so and waits.
func (s *store) lock(ctx context.Context, say func(format string, args ...any)) (unlock func(), err error) {
	file := s.file("lock")
	l := flock.New(file)
	ok, err := l.TryLock()
	if err == nil && !ok {
		say("another verify holds %s; waiting for it", file)
		_, err = l.TryLockContext(ctx, 200*time.Millisecond)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot lock the results: %w", err).At("%s", file).Hintf("check the permissions")
	}
	return func() { l.Unlock() }, nil
}

// key names a result by what it depends on.
func key(parts ...any) string {
	h := sha256.New()
	enc := json.NewEncoder(h)
	for _, p := range parts {
		if err := enc.Encode(p); err != nil {
			panic("verify: key: " + err.Error())
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:32]
}

// get reads a result. One that cannot be read is measured again.
func (s *store) get(key string, v any) bool {
	if s.fresh {
		return false
	}
	data, err := os.ReadFile(filepath.Join(s.dir, key+".json"))
	return err == nil && json.Unmarshal(data, v) == nil
}

func (s *store) put(key string, v any) error {
	return writeJSON(filepath.Join(s.dir, key+".json"), v)
}

// Write writes the report as JSON, whole or not at all.
func (r *Report) Write(file string) error { return writeJSON(file, r) }

func writeJSON(file string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return output.Write(file, append(data, '\n'), 0o666)
}

// file names something else that is kept.
func (s *store) file(name string) string { return filepath.Join(s.dir, name) }

// another is what to do about a model or a text that cannot be opened.
const another = "name a file with --model or --text"

// sumFile is the sha256 of a file; hint is what to do when it cannot be opened.
func sumFile(name, hint string) (string, error) {
	f, err := input.Open(name, hint)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fault.Read(err, name)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// sumPrograms is one sum of a program and of the libraries that lie beside it.
func sumPrograms(program string) (string, error) {
	dir := filepath.Dir(program)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fault.Read(err, dir)
	}
	names := []string{filepath.Base(program)}
	for _, e := range entries {
		name := e.Name()
		if e.Type().IsRegular() && (strings.Contains(name, ".so") || strings.HasSuffix(name, ".dylib") || strings.HasSuffix(name, ".dll")) {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	h := sha256.New()
	for _, name := range names {
		sum, err := sumFile(filepath.Join(dir, name), "build it again: dot4fa build")
		if err != nil {
			return "", err
		}
		fmt.Fprintln(h, name, sum)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
