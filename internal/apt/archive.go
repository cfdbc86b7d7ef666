// Package apt fetches packages from Debian with an apt of its own: configuration,
// indexes and caches lie in a directory, the system's are not touched and no root
// is needed.
package apt

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"
	"unicode"

	"dot4fa/internal/fault"
	"dot4fa/internal/input"
	"dot4fa/internal/shell"
)

// MirrorEnv names the Debian archive to take packages from, as --mirror does.
const MirrorEnv = "DOT4FA_DEBIAN_MIRROR"

// Archive is a Debian archive as apt's sources name it.
type Archive struct {
	URI      string
	SignedBy string // a keyring or a key; empty for what apt trusts anyway
}

// Find returns the archive to use: the one asked for, else the one in
// this machine's own apt configuration.
func Find(ctx context.Context, mirror, keyring string) (Archive, error) {
	if mirror == "" {
		mirror = os.Getenv(MirrorEnv)
	}
	if u, err := url.Parse(mirror); err != nil || mirror != "" && u.Scheme == "" || strings.ContainsFunc(mirror, unicode.IsSpace) {
		return Archive{}, fault.New(fault.Usage, "the mirror %q is not a URL", mirror).Hintf("for example --mirror http://HOST/debian")
	}
	configured, err := configuredArchive(ctx)
	if err != nil {
		return Archive{}, err
	}
	a := configured
	if mirror != "" {
		a = Archive{URI: mirror, SignedBy: configured.SignedBy}
	}
	if a.URI == "" {
		return Archive{}, fault.New(fault.Environment, "this machine's apt sources name no Debian archive").
			Hintf("name one with --mirror URL or $%s; its signature is checked with Debian's keyring (package debian-archive-keyring, or --keyring FILE)", MirrorEnv)
	}
	if keyring != "" {
		if a.SignedBy, err = filepath.Abs(keyring); err != nil {
			return Archive{}, err
		}
		if err := input.File(keyring, "name a file with the archive's keys"); err != nil {
			return Archive{}, err
		}
		if strings.ContainsFunc(a.SignedBy, unicode.IsSpace) {
			return Archive{}, fault.New(fault.Usage, "apt takes no keyring with a space in its name").At("%s", keyring).
				Hintf("copy the file to a place without one")
		}
	}
	for _, name := range debianKeyrings {
		if _, err := os.Stat(name); err == nil && a.SignedBy == "" {
			a.SignedBy = name
		}
	}
	return a, nil
}

// debianKeyrings are where package debian-archive-keyring has its keys.
var debianKeyrings = []string{"/usr/share/keyrings/debian-archive-keyring.pgp", "/usr/share/keyrings/debian-archive-keyring.gpg"}

// configuredArchive reads the sources that apt itself reads.
func configuredArchive(ctx context.Context) (Archive, error) {
	var out strings.Builder
	cmd := shell.Command{Path: "apt-config", Args: []string{"shell", "LIST", "Dir::Etc::sourcelist/f", "PARTS", "Dir::Etc::sourceparts/d"}}
	if err := cmd.Run(ctx, &out); err != nil {
		return Archive{}, fault.New(fault.Environment, "apt's configuration cannot be read: %w", err).Hintf("does apt-config dump work?")
	}
	var files []string
	for _, m := range reAssigned.FindAllStringSubmatch(out.String(), -1) {
		if info, err := os.Stat(m[1]); err == nil && info.IsDir() {
			for _, ext := range []string{"*.list", "*.sources"} {
				names, _ := filepath.Glob(filepath.Join(m[1], ext))
				files = append(files, names...)
			}
		} else {
			files = append(files, m[1])
		}
	}
	sort.Strings(files)
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			continue // apt, too, only remarks on it
		}
		for _, e := range parseSources(string(data), filepath.Ext(name) == ".sources") {
			if a, ok := e.debian(); ok {
				return a, nil
			}
		}
	}
	return Archive{}, nil
}

var reAssigned = regexp.MustCompile(`(?m)^\w+='(.*)'$`)

// entry is one line, or one paragraph, of apt's sources.
type entry struct {
	types, uris, suites, components []string
	signedBy                        string
	disabled                        bool
}

// parseSources reads apt's sources: in paragraphs (deb822), or one a line.
func parseSources(text string, deb822 bool) []entry {
	var out []entry
	if !deb822 {
		for line := range strings.Lines(text) {
			line, _, _ = strings.Cut(line, "#")
			if e, ok := parseLine(strings.TrimSpace(line)); ok {
				out = append(out, e)
			}
		}
		return out
	}
	var kept []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			kept = append(kept, strings.TrimRight(line, "\r\n\t "))
		}
	}
	for paragraph := range strings.SplitSeq(strings.Join(kept, "\n"), "\n\n") {
		var e entry
		var name string
		values := map[string]string{}
		for line := range strings.SplitSeq(paragraph, "\n") {
			if strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") {
				values[name] += "\n" + line
				continue
			}
			key, value, _ := strings.Cut(line, ":")
			name = strings.ToLower(key)
			values[name] = strings.TrimSpace(value)
		}
		e.types, e.uris = strings.Fields(values["types"]), strings.Fields(values["uris"])
		e.suites, e.components = strings.Fields(values["suites"]), strings.Fields(values["components"])
		e.signedBy = values["signed-by"]
		e.disabled = slices.Contains([]string{"no", "false", "off", "0", "without", "disable"}, strings.ToLower(values["enabled"]))
		out = append(out, e)
	}
	return out
}

// parseLine reads "deb [signed-by=…] URI suite component …".
func parseLine(line string) (entry, bool) {
	var e entry
	kind, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	if strings.HasPrefix(rest, "[") {
		options, after, ok := strings.Cut(rest[1:], "]")
		if !ok {
			return e, false
		}
		for _, o := range strings.Fields(options) {
			if v, ok := strings.CutPrefix(o, "signed-by="); ok {
				e.signedBy = v
			}
		}
		rest = after
	}
	f := strings.Fields(rest)
	if len(f) < 2 {
		return e, false
	}
	e.types, e.uris, e.suites, e.components = []string{kind}, f[:1], f[1:2], f[2:]
	return e, true
}

// reSuite matches the suites of Debian's main archive by name, and no other
// distribution's.
var reSuite = regexp.MustCompile(`^(bookworm|trixie|forky|duke|sid|oldstable|stable|testing|unstable)(-updates|-backports)?$`)

// debian reports whether e is Debian's main archive, and where it is.
func (e entry) debian() (Archive, bool) {
	if e.disabled || !slices.Contains(e.types, "deb") || !slices.Contains(e.components, "main") || !slices.ContainsFunc(e.suites, reSuite.MatchString) {
		return Archive{}, false
	}
	for _, uri := range e.uris {
		if !strings.HasPrefix(uri, "cdrom:") {
			return Archive{URI: uri, SignedBy: e.signedBy}, true
		}
	}
	return Archive{}, false
}
