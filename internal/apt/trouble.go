package apt

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"dot4fa/internal/fault"
	"dot4fa/internal/shell"
)

// troubles are what apt-get says, what it means and what to do. The first that
// matches counts.
var troubles = []struct {
	says, means, hint string
}{
	{`No space left on device|Disk quota exceeded`, "the disk is full", fault.DiskFull},
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

// diagnose puts what apt-get said in words.
func (a Suite) diagnose(out string, err error) error {
	var said []string
	for _, line := range reTrouble.FindAllString(out, 4) {
		said = append(said, "    "+line)
	}
	if said == nil {
		said = []string{"    " + shell.Last(out, 2)}
	}
	for _, t := range troubles {
		if regexp.MustCompile(t.says).MatchString(out) {
			means := t.means
			if strings.Contains(means, "%s") {
				means = fmt.Sprintf(means, a.Name)
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
		return fault.New(fault.Environment, "apt-get could not start: %w", err).Hintf("check what `command -v apt-get` names and its permissions")
	}
	return fault.New(fault.Environment, "apt-get failed for suite %s\n%s", a.Name, strings.Join(said, "\n")).
		Hintf("if the mirror or its keys are at fault, name others with --mirror and --keyring; packages at hand are taken with --debs")
}
