package apt

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseSources(t *testing.T) {
	for _, c := range []struct {
		name   string
		text   string
		deb822 bool
		want   Archive // zero: no Debian archive
	}{
		{"one line", "# main\ndeb [arch=amd64 signed-by=/k.gpg] http://m.invalid/debian bookworm main contrib # here\n", false, Archive{"http://m.invalid/debian", "/k.gpg"}},
		{"one line, no options", "deb http://m.invalid/debian/ stable main\n", false, Archive{"http://m.invalid/debian/", ""}},
		{"sources only", "deb-src http://m.invalid/debian stable main\n", false, Archive{}},
		{"security", "deb http://m.invalid/debian-security bookworm-security main\n", false, Archive{}},
		{"another distribution", "deb http://m.invalid/ubuntu noble main universe\n", false, Archive{}},
		{"a vendor's", "deb https://m.invalid/apt cloud-bookworm main\n", false, Archive{}},
		{"not main", "deb http://m.invalid/debian bookworm non-free\n", false, Archive{}},
		{"a CD", "deb cdrom:[Debian]/ bookworm main\n", false, Archive{}},
		{"backports", "deb http://m.invalid/debian bookworm-backports main\n", false, Archive{"http://m.invalid/debian", ""}},
		{"broken", "deb [signed-by=/k\ndeb\n\n", false, Archive{}},
		{"paragraphs", "Types: deb deb-src\n# comment\nURIs: http://m.invalid/debian http://n.invalid/debian\nSuites: trixie trixie-updates\nComponents: main\nSigned-By: /k.gpg\n", true, Archive{"http://m.invalid/debian", "/k.gpg"}},
		{"the second paragraph", "Types: deb\nURIs: http://v.invalid\nSuites: nodistro\nComponents: main\n\nTypes: deb\nuris: http://m.invalid/debian\nSuites:\n forky\nComponents: main\n", true, Archive{"http://m.invalid/debian", ""}},
		{"disabled", "Enabled: no\nTypes: deb\nURIs: http://m.invalid/debian\nSuites: sid\nComponents: main\n", true, Archive{}},
		{"a key in line", "Types: deb\nURIs: http://m.invalid/debian\nSuites: sid\nComponents: main\nSigned-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n AAAA\n", true, Archive{"http://m.invalid/debian", "\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n AAAA"}},
	} {
		var got Archive
		for _, e := range parseSources(c.text, c.deb822) {
			if a, ok := e.debian(); ok {
				got = a
				break
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

type exitError struct{}

func (exitError) Error() string { return "exit status 100" }
func (exitError) ExitCode() int { return 100 }

func TestDiagnose(t *testing.T) {
	for out, want := range map[string]string{
		"Err:1 http://m.invalid forky InRelease\n  Could not resolve 'm.invalid'\nE: Failed to fetch http://m.invalid/dists/forky/InRelease  Could not resolve 'm.invalid'":     "the mirror of suite forky cannot be reached",
		"E: The repository 'http://m.invalid/debian forky Release' does not have a Release file.":                                                                               "the mirror has no suite forky",
		"E: Release file for http://m.invalid/debian/dists/forky/InRelease is expired (invalid since 3d). Updates for this repository will not be applied.":                     "is past its date",
		"W: GPG error: http://m.invalid forky InRelease: The following signatures couldn't be verified because the public key is not available: NO_PUBKEY 0E98\nE: not signed.": "the signature of suite forky cannot be checked",
		"E: Unable to locate package libamdhip64-dev":                            "suite forky lacks a package",
		"E: Write error - write (28: No space left on device)":                   "the disk is full",
		"E: Release file for http://m.invalid is not valid yet (invalid for 2h)": "from the future",
		"E: Something new": "apt-get failed for suite forky",
	} {
		err := Suite{Name: "forky"}.diagnose(out, exitError{})
		if got := err.Error(); !strings.Contains(got, want) {
			t.Errorf("%q is put as %q, want %q", out, got, want)
		}
	}
}

func TestFetched(t *testing.T) {
	for said, want := range map[string]int64{
		"Reading package lists...\nFetched 10.2 MB in 3s (3,271 kB/s)\n": 10_200_000,
		"Fetched 9,829 kB in 2s (4,000 kB/s)":                            9_829_000,
		"Fetched 12 B in 0s (0 B/s)":                                     12,
		"Hit:1 http://m.invalid forky":                                   0,
	} {
		if got := fetched(said); got != want {
			t.Errorf("%q: %d, want %d", said, got, want)
		}
	}
}
