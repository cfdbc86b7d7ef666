// Package bootstrap makes a compile-only HIP prefix from Debian's packages, for
// machines without ROCm: enough to compile and link llama.cpp's HIP backend
// for any GPU target, and nothing to run it with.
//
//	apt, in a directory of its own ─▶ packages ─▶ unpacked root ─▶ stubs, forwarders ─▶ tried with clang and CMake ─▶ DIR
//
// Nothing needs root, nothing outside DIR (and DIR.part while it works) is
// written, and DIR appears when it is complete and has been tried.
package bootstrap

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"dot4fa/internal/apt"
	"dot4fa/internal/fault"
	"dot4fa/internal/progress"
	"dot4fa/internal/toolchain"
)

// Suites are where the packages come from: ROCm from the first, device
// libraries from all of them. trixie has the last bitcode that clang 17 to 20
// reads.
var Suites = []string{"forky", "trixie"}

// Options describe a prefix to make.
type Options struct {
	Dir        string   // where; absolute
	Clang      string   // the clang++ it is for; empty: the newest installed
	Suites     []string // empty: Suites
	Mirror     string   // of Debian; empty: the one in apt's sources
	Keyring    string   // to check the mirror with; empty: Debian's
	AllowStale bool     // accept an index past its date; signatures are checked all the same
	Debs       string   // a directory with the packages, instead of downloading
	Report     *progress.Reporter
}

func (o *Options) suites() []string {
	if len(o.Suites) > 0 {
		return o.Suites
	}
	return Suites
}

// part is where the work is done until the prefix is complete.
func (o *Options) part() string { return o.Dir + ".part" }

func (o *Options) debs() string {
	if o.Debs != "" {
		return o.Debs
	}
	return filepath.Join(o.part(), "debs")
}

// apts are the private apts, one for each suite.
func (o *Options) apts() []apt.Suite {
	var out []apt.Suite
	for i, s := range o.suites() {
		a := apt.Suite{Name: s, Dir: filepath.Join(o.part(), "apt-"+s), Want: []string{bitcodePackages}}
		if i == 0 {
			a.Want = append(slices.Clone(rocmPackages), bitcodePackages)
		}
		out = append(out, a)
	}
	return out
}

// Result is what a run did.
type Result struct {
	Dir     string  `json:"dir"`
	Done    bool    `json:"done"` // false: it was there already
	Record  *Record `json:"record"`
	Seconds float64 `json:"seconds"`
}

// Make makes the prefix, or finds that it is there. It works in DIR.part and
// renames that when all is done; what was downloaded is kept for the next try.
func Make(ctx context.Context, o Options) (*Result, error) {
	start := time.Now()
	if r, err := o.present(ctx); r != nil || err != nil {
		return &Result{Dir: o.Dir, Record: r}, err
	}
	h, err := findHost(ctx, o.Clang)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.part(), 0o755); err != nil {
		return nil, fault.Write(err, o.part())
	}
	unlock, err := o.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if r, err := o.present(ctx); r != nil || err != nil { // another run made it meanwhile
		return &Result{Dir: o.Dir, Record: r}, err
	}
	rec := &Record{Kind: compileOnly, Clang: h.version, Suites: o.suites(), Unchecked: o.AllowStale}
	rec.Root, rec.Compiler, rec.DeviceLibs, rec.Packages = ".", h.clang, deviceLibs, map[string]string{}
	if err := o.obtain(ctx, rec); err != nil {
		return nil, err
	}
	r, err := o.assemble(ctx, h, rec)
	if err != nil {
		return nil, err
	}
	rec.Made = time.Now().UTC().Truncate(time.Second)
	if err := rec.write(r.dir); err != nil {
		return nil, err
	}
	os.Remove(o.Dir) // an empty one
	if err := os.Rename(r.dir, o.Dir); err != nil {
		return nil, fault.Write(err, o.Dir)
	}
	if err := os.RemoveAll(o.part()); err != nil {
		return nil, fault.Write(err, o.part())
	}
	return &Result{Dir: o.Dir, Done: true, Record: rec, Seconds: time.Since(start).Seconds()}, nil
}

// reSuite matches the name of a suite, of which directories are named too.
var reSuite = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.+-]*$`)

// present returns the record of a prefix that is in DIR already, nil when DIR
// is free. What is something else, or was made otherwise, is left alone.
func (o *Options) present(ctx context.Context) (*Record, error) {
	if i := strings.IndexAny(o.Dir, " \t\n'\"\\$;"); i >= 0 {
		return nil, fault.New(fault.Usage, "the directory's name holds %q, which CMake's HIPFLAGS cannot pass to a compiler", o.Dir[i]).At("%s", o.Dir).
			Hintf("name another directory")
	}
	for _, suite := range o.Suites {
		if !reSuite.MatchString(suite) {
			return nil, fault.New(fault.Usage, "%q is no name of a suite", suite).Hintf("for example --suite %s", Suites[0])
		}
	}
	if strings.Contains(o.Dir, ".part/") || strings.HasSuffix(o.Dir, ".part") {
		return nil, fault.New(fault.Usage, "names that end in .part are for prefixes being made").At("%s", o.Dir).Hintf("name another directory")
	}
	entries, err := os.ReadDir(o.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0:
		return nil, nil
	case err != nil:
		return nil, fault.New(fault.Usage, "not a directory that can be read: %w", err).At("%s", o.Dir).Hintf("name a directory that does not exist yet")
	}
	r, err := ReadRecord(o.Dir)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return nil, fault.New(fault.Usage, "the directory is there already and is no prefix of dot4fa").At("%s", o.Dir).
			Hintf("name a directory that does not exist yet")
	}
	if o.Clang != "" {
		if h, err := findClang(ctx, o.Clang); err == nil && h.clang != r.Compiler {
			return nil, o.other("it was made for " + r.Compiler)
		}
	}
	if len(o.Suites) > 0 && !slices.Equal(o.Suites, r.Suites) {
		return nil, o.other("it was made from " + strings.Join(r.Suites, ", "))
	}
	if _, err := os.Stat(r.Compiler); err != nil {
		return nil, o.other("its compiler " + r.Compiler + " is gone")
	}
	return r, nil
}

func (o *Options) other(why string) error {
	return fault.New(fault.Usage, "there is another prefix: %s", why).At("%s", o.Dir).Hintf("name another directory, or remove this one first")
}

func (o *Options) lock(ctx context.Context) (unlock func(), err error) {
	l := flock.New(filepath.Join(o.part(), "lock"))
	ok, err := l.TryLock()
	if err == nil && !ok {
		o.Report.Say("another run is making %s; waiting for it to finish", o.Dir)
		ok, err = l.TryLockContext(ctx, 100*time.Millisecond)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil || !ok {
		return nil, fault.New(fault.Environment, "cannot lock: %w", err).At("%s", o.part()).
			Hintf("name a directory on a disk of this machine")
	}
	return func() { _ = l.Close() }, nil
}

// step runs a part of the work and says how long it took.
func (o *Options) step(name string, do func() (string, error)) error {
	start := time.Now()
	o.Report.Status("%s", name)
	detail, err := do()
	o.Report.Clear()
	if err == nil {
		o.Report.Say("%-9s %s (%s)", name, detail, progress.Duration(time.Since(start)))
	}
	return err
}

// assemble makes a complete root out of the packages and tries it.
func (o *Options) assemble(ctx context.Context, h *host, rec *Record) (*root, error) {
	scratch := filepath.Join(o.part(), "trial")
	if err := trialDir(scratch); err != nil {
		return nil, err
	}
	var r *root
	err := o.step("unpack", func() (detail string, err error) {
		if r, err = unpack(ctx, filepath.Join(o.part(), "root"), o.debs(), rec.Files); err != nil {
			return "", err
		}
		rec.HIP = string(r.hip())
		if r.hip().Less(toolchain.MinHIP) {
			return "", fault.New(fault.Environment, "suite %s has HIP %s, and llama.cpp needs %s or newer", rec.Suites[0], r.hip(), toolchain.MinHIP).
				Hintf("name a newer suite first with --suite")
		}
		if err := r.complete(h.clang); err != nil {
			return "", err
		}
		if rec.Stubs, err = r.makeStubs(ctx, h.clang, scratch); err != nil {
			return "", err
		}
		return "HIP " + rec.HIP + ", import libraries " + strings.Join(rec.Stubs, " "), nil
	})
	if err != nil {
		return nil, err
	}
	err = o.step("verify", func() (string, error) {
		version, err := r.chooseBitcode(ctx, h, scratch)
		if err != nil {
			return "", err
		}
		if err := r.tryCMake(ctx, h, scratch); err != nil {
			return "", err
		}
		rec.Targets = r.targets()
		rec.Verified = []string{
			"a kernel compiles with clang " + h.version + " and the bitcode of LLVM " + version,
			"CMake finds HIP as a language, hip, hipblas and rocblas, and links a library and a program",
		}
		return "clang " + h.version + " reads the bitcode of LLVM " + version + "; CMake finds HIP, hipblas and rocblas, and links", nil
	})
	rec.Disk = r.size()
	return r, err
}
