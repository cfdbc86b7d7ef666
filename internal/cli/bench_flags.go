package cli

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dot4fa/internal/fault"
	"dot4fa/internal/input"
	"dot4fa/internal/nearest"
)

// benchFlags are the flags of bench.
type benchFlags struct {
	suites  []string
	shapes  string
	device  string
	repeat  int
	least   time.Duration
	within  time.Duration
	out     string
	from    []string
	compare string
	targets bool
	scalar  string

	model  string
	caches []string
	depths []int
	prompt int
	gen    int

	make    string
	like    string
	layers  int
	weights string
}

// alone refuses flags that say nothing together: those of measuring beside a
// stored run, those of a model of random weights without one, and the reverse.
func (o *benchFlags) alone(cmd *cobra.Command) error {
	measuring := []string{"suite", "shapes", "device", "repeat", "least", "within", "model", "cache", "depth", "prompt", "gen"}
	results := []string{"out", "from", "compare", "targets", "no-matrix"}
	made := []string{"layers-like", "layers", "weights"}
	for _, c := range []struct {
		when bool
		none []string
		why  string
		hint string
	}{
		{o.make != "", append(measuring, results...), "--make-model only writes a model, and --%s says nothing about it", "leave one of the two out"},
		{o.make == "", made, "--%s is for --make-model", "name the file to write with --make-model"},
		{len(o.from) > 0, measuring, "--from takes a stored run as it is, and --%s is for measuring", "leave one of the two out"},
	} {
		for _, name := range c.none {
			if c.when && cmd.Flags().Changed(name) {
				return fault.New(fault.Usage, c.why, name).Hintf("%s", c.hint)
			}
		}
	}
	return nil
}

func (o *benchFlags) check() error {
	for _, s := range o.suites {
		if !slices.Contains(suites, s) {
			hint := ""
			if near := nearest.Hint(s, suites); near != "" {
				hint = near + "? "
			}
			return fault.New(fault.Usage, "there is no suite %s", s).Hintf("%ssuites: %s", hint, strings.Join(suites, ", "))
		}
	}
	switch {
	case len(o.suites) == 0:
		return fault.New(fault.Usage, "--suite is empty").Hintf("suites: %s", strings.Join(suites, ", "))
	case slices.Contains(o.suites, "seed") && (len(o.suites) > 1 || o.compare != "" || o.targets):
		return fault.New(fault.Usage, "the suite seed is run alone, without --compare and --targets").Hintf("run the others by themselves")
	case o.repeat < 1 || o.repeat > 1000:
		return fault.New(fault.Usage, "--repeat must be from 1 to 1000, not %d", o.repeat).Hintf("3 is usual")
	case o.least < time.Millisecond || o.least > time.Minute:
		return fault.New(fault.Usage, "--least must be from 1ms to 1m, not %s", o.least).Hintf("leave it out for 250ms")
	case o.within < 0:
		return fault.New(fault.Usage, "--within is a time from now on, not %s", o.within).Hintf("leave it out for no limit")
	case o.scalar != "" && !o.targets:
		return fault.New(fault.Usage, "--no-matrix is for --targets").Hintf("give both")
	case (slices.Contains(o.suites, "model") || o.model != "") && len(o.from) == 0:
		return o.checkModel()
	}
	return nil
}

func (o *benchFlags) checkModel() error {
	switch {
	case o.model == "":
		return fault.New(fault.Usage, "the suite model needs a model").Hintf("--model FILE; --make-model FILE writes one of random weights")
	case o.prompt < 0 || o.gen < 0 || o.prompt+o.gen == 0:
		return fault.New(fault.Usage, "--prompt %d and --gen %d leave nothing to measure", o.prompt, o.gen).Hintf("leave them out for 512 and 64")
	case len(o.depths) == 0 || slices.Min(o.depths) < 0:
		return fault.New(fault.Usage, "--depth takes numbers from 0").Hintf("for example --depth 0,8192")
	}
	return input.File(o.model, "name a GGUF file with --model")
}
