package bootstrap

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"dot4fa/internal/fault"
	"dot4fa/internal/shell"
)

// obtain gets the packages and notes them in rec.
func (o *Options) obtain(ctx context.Context, rec *Record) (err error) {
	if o.Debs != "" {
		err = o.atHand(ctx, rec)
	} else {
		err = o.fetchAll(ctx, rec)
	}
	for _, p := range rec.Files {
		rec.Packages[p.Name] = p.Version
	}
	return err
}

func (o *Options) fetchAll(ctx context.Context, rec *Record) error {
	from, err := findArchive(ctx, o.Mirror, o.Keyring)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.debs(), 0o755); err != nil {
		return writing(err, o.debs())
	}
	for _, a := range o.apts() {
		err := o.step(a.suite, func() (string, error) {
			list, got, err := a.obtain(ctx, from, o.AllowStale, o.debs())
			rec.Files, rec.Download = append(rec.Files, list...), rec.Download+got
			return fmt.Sprintf("%s, %.1f MB downloaded", count(len(list), "package"), float64(got)/1e6), err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// obtain brings the suite's packages into debs, and says how much was downloaded.
func (a apt) obtain(ctx context.Context, from archive, allowStale bool, debs string) ([]Package, int64, error) {
	for _, dir := range a.directories() {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, 0, writing(err, dir)
		}
	}
	for _, f := range a.files(from, allowStale) {
		if err := os.WriteFile(f[0], []byte(f[1]), 0o644); err != nil {
			return nil, 0, writing(err, f[0])
		}
	}
	said, err := a.run(ctx, a.update())
	if err != nil {
		return nil, 0, err
	}
	list, err := a.list(ctx)
	if err != nil {
		return nil, 0, err
	}
	got, err := a.fetch(ctx, debs, list)
	return list, fetched(said) + got, err
}

var (
	reFetched = regexp.MustCompile(`(?m)^Fetched ([0-9.,]+) (k|M|G|)B in `)
	units     = map[string]float64{"": 1, "k": 1e3, "M": 1e6, "G": 1e9}
)

// fetched is how much apt-get says that it has downloaded.
func fetched(said string) int64 {
	m := reFetched.FindStringSubmatch(said)
	if m == nil {
		return 0
	}
	n, err := strconv.ParseFloat(strings.ReplaceAll(m[1], ",", ""), 64)
	if err != nil {
		return 0
	}
	return int64(n * units[m[2]])
}

// atHand takes the packages that lie in a directory.
func (o *Options) atHand(ctx context.Context, rec *Record) error {
	files, _ := filepath.Glob(filepath.Join(o.Debs, "*.deb"))
	for _, name := range files {
		p := Package{File: filepath.Base(name)}
		out, err := run(ctx, shell.Command{Path: "dpkg-deb", Args: []string{"-f", name, "Package", "Version", "Architecture"}})
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return fault.New(fault.Environment, "not a Debian package: %w", err).At("%s", name).Hintf("remove it from %s", o.Debs)
		}
		for line := range strings.Lines(out) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			switch key {
			case "Package":
				p.Name = value
			case "Version":
				p.Version = value
			case "Architecture":
				if value != "amd64" && value != "all" {
					return fault.New(fault.Environment, "the package is for %s, not for amd64", value).At("%s", name).Hintf("download the one for amd64")
				}
			}
		}
		if p.Size, p.SHA256, err = digest(name); err != nil {
			return fault.New(fault.Environment, "cannot read: %w", err).At("%s", name)
		}
		rec.Files = append(rec.Files, p)
	}
	for _, want := range rocmPackages {
		if !strings.HasPrefix(want, "~") && !slices.ContainsFunc(rec.Files, func(p Package) bool { return p.Name == want }) {
			return fault.New(fault.Usage, "package %s is not there", want).At("%s", o.Debs).
				Hintf("dot4fa toolchain bootstrap %s --dry-run prints how to download all of them", o.Dir)
		}
	}
	return nil
}

// Commands returns what Make would run, as a shell takes it: the downloads,
// and then finish, the command that called, on what they left.
func Commands(ctx context.Context, o Options, finish shell.Command) ([]string, error) {
	if r, err := o.present(); r != nil || err != nil {
		return nil, err
	}
	finish.Args = append(finish.Args, "--debs", o.debs())
	for _, s := range o.Suites {
		finish.Args = append(finish.Args, "--suite", s)
	}
	if o.Clang != "" {
		finish.Args = append(finish.Args, "--clang", o.Clang)
	}
	if o.Debs != "" {
		return []string{finish.String()}, nil
	}
	from, err := findArchive(ctx, o.Mirror, o.Keyring)
	if err != nil {
		return nil, err
	}
	out := []string{shell.Command{Path: "mkdir", Args: []string{"-p", o.debs()}}.String()}
	for _, a := range o.apts() {
		out = append(out, shell.Command{Path: "mkdir", Args: append([]string{"-p"}, a.directories()...)}.String())
		for _, f := range a.files(from, o.AllowStale) {
			out = append(out, shell.Command{Path: "printf", Args: []string{"%s", f[1]}}.String()+" > "+shell.Quote(f[0]))
		}
		out = append(out, a.update().String(), "("+a.download(o.debs(), a.want...).String()+")")
	}
	return append(out, finish.String()), nil
}
