package bootstrap

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"dot4fa/internal/fault"
	"dot4fa/internal/shell"
)

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

// apt is a private apt for one suite: it reads and writes nothing of the system's.
type apt struct {
	suite string
	dir   string // its configuration, lists and cache
	want  []string
}

func (a apt) conf() string { return filepath.Join(a.dir, "apt.conf") }

// files returns the configuration, in the order in which to write it.
func (a apt) files(from archive, allowStale bool) [][2]string {
	conf := []string{
		`Dir::State "` + filepath.Join(a.dir, "state") + `";`,
		`Dir::State::status "` + filepath.Join(a.dir, "status") + `";`,
		`Dir::Cache "` + filepath.Join(a.dir, "cache") + `";`,
		`Dir::Etc::sourcelist "` + filepath.Join(a.dir, "archive.sources") + `";`,
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
	source := []string{"Types: deb", "URIs: " + from.URI, "Suites: " + a.suite, "Components: main", "Architectures: amd64", "Targets: Packages"}
	if from.SignedBy != "" {
		source = append(source, "Signed-By: "+from.SignedBy)
	}
	return [][2]string{
		{a.conf(), strings.Join(conf, "\n") + "\n"},
		{filepath.Join(a.dir, "archive.sources"), strings.Join(source, "\n") + "\n"},
		{filepath.Join(a.dir, "status"), ""},
	}
}

// directories are those that apt does not make by itself.
func (a apt) directories() []string {
	return []string{filepath.Join(a.dir, "state", "lists", "partial"), filepath.Join(a.dir, "cache", "archives", "partial")}
}

func (a apt) update() shell.Command { return a.get("", "update") }

// download fetches packages into dir.
func (a apt) download(dir string, names ...string) shell.Command {
	return a.get(dir, append([]string{"download"}, names...)...)
}

func (a apt) get(dir string, args ...string) shell.Command {
	return shell.Command{Env: []string{"LC_ALL=C.UTF-8"}, Dir: dir, Path: "apt-get", Args: append([]string{"-q", "-c", a.conf()}, args...)}
}

// reURI matches a line of --print-uris: 'URI' file size SHA256:hash.
var reURI = regexp.MustCompile(`(?m)^'([^']*)' (\S+) (\d+) SHA256:([0-9a-f]{64})$`)

// list asks what a download would get.
func (a apt) list(ctx context.Context) ([]Package, error) {
	out, err := a.run(ctx, a.get("", append([]string{"download", "--print-uris"}, a.want...)...))
	if err != nil {
		return nil, err
	}
	var list []Package
	for _, m := range reURI.FindAllStringSubmatch(out, -1) {
		p := Package{Suite: a.suite, File: m[2], SHA256: m[4]}
		p.Size, _ = strconv.ParseInt(m[3], 10, 64)
		name, rest, _ := strings.Cut(strings.TrimSuffix(m[2], ".deb"), "_")
		version, _, _ := strings.Cut(rest, "_")
		if v, err := url.PathUnescape(version); err == nil {
			version = v // an epoch's colon
		}
		p.Name, p.Version = name, version
		list = append(list, p)
	}
	for _, name := range a.want {
		if !strings.HasPrefix(name, "~") && !contains(list, name) || len(list) == 0 {
			return nil, fault.New(fault.Environment, "suite %s has no package %s", a.suite, name).
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
func (a apt) fetch(ctx context.Context, dir string, list []Package) (downloaded int64, err error) {
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
	if _, err := a.run(ctx, a.download(dir, names...)); err != nil {
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
	size, sum, err := digest(name)
	if err != nil {
		return fault.New(fault.Environment, "%s was not downloaded: %w", p.Name, err).At("%s", name)
	}
	if size != p.Size || sum != p.SHA256 {
		return fault.New(fault.VerifyFailed, "%s %s is not what the archive's index says it is", p.Name, p.Version).At("%s", name).
			Hintf("remove the file and run the same command again")
	}
	return nil
}

func digest(name string) (size int64, sum string, err error) {
	f, err := os.Open(name)
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

// run runs apt-get and puts what went wrong in words.
func (a apt) run(ctx context.Context, cmd shell.Command) (string, error) {
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

// troubles are what apt-get says, what it means and what to do. The first that
// matches counts.
var troubles = []struct {
	says, means, hint string
}{
	{`No space left on device|Disk quota exceeded`, "the disk is full", diskFull},
	{`NO_PUBKEY|signatures couldn't be verified|not signed|Unknown error executing apt-key|EXPKEYSIG`, "the signature of suite %s cannot be checked",
		"install or update Debian's keys (package debian-archive-keyring), or name a keyring with --keyring"},
	{`is expired \(invalid since|Release file .* is expired`, "the mirror's index of suite %s is past its date",
		"use another mirror (--mirror), or take it as it is with --allow-stale: signatures are checked all the same"},
	{`is not valid yet`, "the mirror's index of suite %s is from the future", "set this machine's clock"},
	{`does not have a Release file|404 +Not Found`, "the mirror has no suite %s, or its index is being replaced",
		"suites move: name one that is there with --suite, or another mirror with --mirror"},
	{`Could not resolve|Temporary failure|Could not connect|Connection (refused|failed|timed out)|Network is unreachable|Cannot initiate the connection|Unable to connect`,
		unreachable,
		"without a network, download the packages elsewhere (--dry-run prints how) and name their directory with --debs"},
	{`Unable to locate package|Unable to find|No packages found`, "suite %s lacks a package that a prefix is made of", "packages move from suite to suite: name one that has it with --suite"},
}

var reTrouble = regexp.MustCompile(`(?m)^(E|W|Err:?\d*)[: ].*$`)

// unreachable is the trouble of a machine without a network.
const unreachable = "the mirror of suite %s cannot be reached"

// ErrUnreachable is in the chain of the error of a mirror that cannot be reached.
var ErrUnreachable = errors.New("no network")

func (a apt) diagnose(out string, err error) error {
	var said []string
	for _, line := range reTrouble.FindAllString(out, 4) {
		said = append(said, "    "+line)
	}
	if said == nil {
		said = []string{"    " + lastLines(out, 2)}
	}
	for _, t := range troubles {
		if regexp.MustCompile(t.says).MatchString(out) {
			means := t.means
			if strings.Contains(means, "%s") {
				means = fmt.Sprintf(means, a.suite)
			}
			f := fault.New(fault.Environment, "%s\n%s", means, strings.Join(said, "\n")).Hintf("%s", t.hint)
			if t.means == unreachable {
				f.Err = ErrUnreachable
			}
			return f
		}
	}
	var exit interface{ ExitCode() int }
	if !errors.As(err, &exit) {
		return fault.New(fault.Environment, "apt-get could not start: %w", err)
	}
	return fault.New(fault.Environment, "apt-get failed for suite %s\n%s", a.suite, strings.Join(said, "\n"))
}
