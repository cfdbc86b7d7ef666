package bootstrap

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dot4fa/internal/apt"
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
	from, err := apt.Find(ctx, o.Mirror, o.Keyring)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.debs(), 0o755); err != nil {
		return fault.Write(err, o.debs())
	}
	for _, a := range o.apts() {
		err := o.step(a.Name, func() (string, error) {
			list, got, err := a.Obtain(ctx, from, o.AllowStale, o.debs())
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

// rocmPackages are what a prefix is made of, as apt-get takes them: HIP, what
// llama.cpp asks CMake for (hip, hipblas, rocblas), and what those ask for. The
// two run-time libraries are found by pattern, since their names hold the
// version; only their symbols are kept. rocBLAS itself would be 4 GB.
var rocmPackages = []string{
	"libamdhip64-dev", "~n^libamdhip64-[0-9.]+$!~v",
	"libhipblas-dev", "~n^libhipblas[0-9.]+$!~v", "libhipblas-common-dev",
	"librocblas-dev", "libamd-comgr-dev", "libhsa-runtime-dev",
}

// bitcodePackages are the device libraries. Their bitcode is read by clangs of
// its own version and some newer ones, so every suite's are tried.
const bitcodePackages = "~n^rocm-device-libs-[0-9]+$!~v"

// atHand takes the packages that lie in a directory.
func (o *Options) atHand(ctx context.Context, rec *Record) error {
	files, _ := filepath.Glob(filepath.Join(o.Debs, "*.deb"))
	for _, name := range files {
		p := apt.Package{File: filepath.Base(name)}
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
		if p.Size, p.SHA256, err = apt.Digest(name); err != nil {
			return fault.Read(err, name)
		}
		rec.Files = append(rec.Files, p)
	}
	for _, want := range rocmPackages {
		if !strings.HasPrefix(want, "~") && !slices.ContainsFunc(rec.Files, func(p apt.Package) bool { return p.Name == want }) {
			return fault.New(fault.Usage, "package %s is not there", want).At("%s", o.Debs).
				Hintf("dot4fa toolchain bootstrap %s --dry-run prints how to download all of them", o.Dir)
		}
	}
	return nil
}

// Commands returns what Make would run, as a shell takes it: the downloads,
// and then finish, the command that called, on what they left.
func Commands(ctx context.Context, o Options, finish shell.Command) ([]string, error) {
	if r, err := o.present(ctx); r != nil || err != nil {
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
	from, err := apt.Find(ctx, o.Mirror, o.Keyring)
	if err != nil {
		return nil, err
	}
	out := []string{shell.Command{Path: "mkdir", Args: []string{"-p", o.debs()}}.String()}
	for _, a := range o.apts() {
		out = append(out, shell.Command{Path: "mkdir", Args: append([]string{"-p"}, a.Directories()...)}.String())
		for _, f := range a.Files(from, o.AllowStale) {
			out = append(out, shell.Command{Path: "printf", Args: []string{"%s", f[1]}}.String()+" > "+shell.Quote(f[0]))
		}
		out = append(out, a.Update().String(), "("+a.Download(o.debs(), a.Want...).String()+")")
	}
	return append(out, finish.String()), nil
}
