package apt

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"dot4fa/internal/fault"
	"dot4fa/internal/input"
	"dot4fa/internal/shell"
)

// Suite is an apt for one suite of an archive.
type Suite struct {
	Name string
	Dir  string   // its configuration, indexes and cache
	Want []string // packages, as apt-get takes them: names and patterns
}

// Package is a Debian package.
type Package struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Suite   string `json:"suite,omitempty"` // empty for one that was at hand
	File    string `json:"file"`
	Size    int64  `json:"size"`
	SHA256  string `json:"sha256"`
}

func (a Suite) conf() string { return filepath.Join(a.Dir, "apt.conf") }

// Files returns the configuration, names and contents, in the order in which to write it.
func (a Suite) Files(from Archive, allowStale bool) [][2]string {
	conf := []string{
		`Dir::State "` + filepath.Join(a.Dir, "state") + `";`,
		`Dir::State::status "` + filepath.Join(a.Dir, "status") + `";`,
		`Dir::Cache "` + filepath.Join(a.Dir, "cache") + `";`,
		`Dir::Etc::sourcelist "` + filepath.Join(a.Dir, "archive.sources") + `";`,
		`Dir::Etc::sourceparts "/dev/null";`,
		`Dir::Etc::preferences "/dev/null";`,
		`Dir::Etc::preferencesparts "/dev/null";`,
		`APT::Architecture "amd64";`,
		`APT::Architectures { "amd64"; };`,
		`APT::Sandbox::User "";`,
		`APT::Update::Error-Mode "any";`,
		`Acquire::Languages "none";`,
		`Acquire::Retries "2";`,
		`Acquire::http::Timeout "30";`,
		`Acquire::https::Timeout "30";`,
		// The system's hooks are for the system's apt.
		`#clear APT::Update::Pre-Invoke;`,
		`#clear APT::Update::Post-Invoke;`,
		`#clear APT::Update::Post-Invoke-Success;`,
	}
	if allowStale {
		conf = append(conf, `Acquire::Check-Valid-Until "false";`)
	}
	source := []string{"Types: deb", "URIs: " + from.URI, "Suites: " + a.Name, "Components: main", "Architectures: amd64", "Targets: Packages"}
	if from.SignedBy != "" {
		source = append(source, "Signed-By: "+from.SignedBy)
	}
	return [][2]string{
		{a.conf(), strings.Join(conf, "\n") + "\n"},
		{filepath.Join(a.Dir, "archive.sources"), strings.Join(source, "\n") + "\n"},
		{filepath.Join(a.Dir, "status"), ""},
	}
}

// Directories are those that apt does not make by itself.
func (a Suite) Directories() []string {
	return []string{filepath.Join(a.Dir, "state", "lists", "partial"), filepath.Join(a.Dir, "cache", "archives", "partial")}
}

// Update fetches the suite's index.
func (a Suite) Update() shell.Command { return a.get("", "update") }

// Download fetches packages into dir.
func (a Suite) Download(dir string, names ...string) shell.Command {
	return a.get(dir, append([]string{"download"}, names...)...)
}

func (a Suite) get(dir string, args ...string) shell.Command {
	return shell.Command{Env: []string{"LC_ALL=C.UTF-8"}, Dir: dir, Path: "apt-get", Args: append([]string{"-q", "-c", a.conf()}, args...)}
}

// Obtain brings the packages that the suite is wanted for into debs, and says how
// much was downloaded. What is there already is checked and kept. An index past
// its date is refused, unless allowStale; signatures are checked all the same.
func (a Suite) Obtain(ctx context.Context, from Archive, allowStale bool, debs string) ([]Package, int64, error) {
	for _, dir := range a.Directories() {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, 0, fault.Write(err, dir)
		}
	}
	for _, f := range a.Files(from, allowStale) {
		if err := os.WriteFile(f[0], []byte(f[1]), 0o644); err != nil {
			return nil, 0, fault.Write(err, f[0])
		}
	}
	said, err := a.run(ctx, a.Update())
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

// reURI matches a line of --print-uris: 'URI' file size SHA256:hash.
var reURI = regexp.MustCompile(`(?m)^'([^']*)' (\S+) (\d+) SHA256:([0-9a-f]{64})$`)

// list asks what a download would get.
func (a Suite) list(ctx context.Context) ([]Package, error) {
	out, err := a.run(ctx, a.get("", append([]string{"download", "--print-uris"}, a.Want...)...))
	if err != nil {
		return nil, err
	}
	var list []Package
	for _, m := range reURI.FindAllStringSubmatch(out, -1) {
		p := Package{Suite: a.Name, File: m[2], SHA256: m[4]}
		p.Size, _ = strconv.ParseInt(m[3], 10, 64)
		name, rest, _ := strings.Cut(strings.TrimSuffix(m[2], ".deb"), "_")
		version, _, _ := strings.Cut(rest, "_")
		if v, err := url.PathUnescape(version); err == nil {
			version = v // an epoch's colon
		}
		p.Name, p.Version = name, version
		list = append(list, p)
	}
	for _, name := range a.Want {
		if !strings.HasPrefix(name, "~") && !contains(list, name) || len(list) == 0 {
			return nil, fault.New(fault.Environment, "suite %s has no package %s", a.Name, name).
				Hintf("packages move from suite to suite: name one that has it with --suite")
		}
	}
	return list, nil
}

func contains(list []Package, name string) bool {
	for _, p := range list {
		if p.Name == name {
			return true
		}
	}
	return false
}

// fetch gets the packages of list that are not in dir yet, and checks each.
func (a Suite) fetch(ctx context.Context, dir string, list []Package) (downloaded int64, err error) {
	var names []string
	for _, p := range list {
		if p.check(dir) != nil {
			os.Remove(filepath.Join(dir, p.File))
			names = append(names, p.Name+"="+p.Version)
			downloaded += p.Size
		}
	}
	if len(names) == 0 {
		return 0, nil
	}
	if _, err := a.run(ctx, a.Download(dir, names...)); err != nil {
		return 0, err
	}
	for _, p := range list {
		if err := p.check(dir); err != nil {
			return 0, err
		}
	}
	return downloaded, nil
}

// check compares a downloaded package with what the archive's index says.
func (p Package) check(dir string) error {
	name := filepath.Join(dir, p.File)
	size, sum, err := Digest(name)
	if err != nil {
		return fault.New(fault.Environment, "%s was not downloaded: %w", p.Name, err).At("%s", name).
			Hintf("run the same command again, which downloads what is missing")
	}
	if size != p.Size || sum != p.SHA256 {
		return fault.New(fault.VerifyFailed, "%s %s is not what the archive's index says it is", p.Name, p.Version).At("%s", name).
			Hintf("remove the file and run the same command again")
	}
	return nil
}

// Digest is the size and the SHA-256 of a file.
func Digest(name string) (size int64, sum string, err error) {
	f, err := input.Open(name, "the packages are files: download them again")
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	h := sha256.New()
	if size, err = io.Copy(h, f); err != nil {
		return 0, "", err
	}
	return size, hex.EncodeToString(h.Sum(nil)), nil
}

// run runs apt-get.
func (a Suite) run(ctx context.Context, cmd shell.Command) (string, error) {
	var out strings.Builder
	err := cmd.Run(ctx, &out)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err == nil {
		return out.String(), nil
	}
	return "", a.diagnose(out.String(), err)
}
