package hostrun

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"dot4fa/internal/fault"
	"dot4fa/internal/recipe"
)

// Checked is how the kernels of one route did in a SelfCheck.
type Checked struct {
	Route string  `json:"route"`
	Cases int     `json:"cases"`
	Worst float64 `json:"worst_nmse"` // against float64, from the dequantised Q, K and V
}

// checks are the cases of a SelfCheck by route: each takes another turn through
// masks, sinks, sequences and edges of nk. The tests' matrix is the thorough one.
var checks = []struct {
	route string
	cases []string
}{
	{"short decode", []string{"nk=257 gqa=6 mask=causal", "nk=1023 gqa=4 mask=holes sinks=1"}},
	{"long decode", []string{"nk=2049 gqa=6 mask=causal cta=2", "nk=1025 gqa=8 mask=shuffled cta=1 sinks=1"}},
	{"verify", []string{"nq=4 nk=640 gqa=6 mask=causal cta=2", "nq=8 nk=300 gqa=1 kv=2 mask=sequences", "nq=3 nk=512 gqa=2 mask=dead"}},
	{"prefill", []string{"route=prefill nq=33 nk=320 gqa=2 mask=causal", "route=prefill nq=9 nk=257 gqa=6 mask=window"}},
	{"prefill mma", []string{"route=mma nq=33 nk=320 gqa=2 mask=causal", "route=mma nq=9 nk=257 gqa=6 mask=window sms=8"}},
}

// SelfCheck compiles the kernels of r for its largest head size with one V type
// and runs every route of them on the CPU, watched for races, bad memory and
// uninitialised reads. A case that misses the contract's tolerance is an error.
func SelfCheck(ctx context.Context, r *recipe.Recipe, assets fs.FS, o Options) ([]Checked, error) {
	one := *r
	d := slices.Max(r.Kernel.HeadSizes)
	v := r.Kernel.VTypes[len(r.Kernel.VTypes)-1]
	one.Kernel.HeadSizes, one.Kernel.VTypes = []int{d}, []string{v}
	o.Traced, o.Defines = true, append(o.Defines, AMD...)
	p, err := CompileKernels(ctx, &one, assets, KernelOptions{Options: o})
	if err != nil {
		return nil, err
	}
	var cases []Case
	for _, c := range checks {
		for _, text := range c.cases {
			cases = append(cases, Case(fmt.Sprintf("d=%d v=%s order=%d %s", d, v, len(cases)+1, text)))
		}
	}
	outcomes, err := p.RunCases(ctx, cases, o.Jobs)
	if err != nil {
		return nil, advise(err)
	}
	var done []Checked
	at := 0
	for _, c := range checks {
		sum := Checked{Route: c.route, Cases: len(c.cases)}
		for range c.cases {
			if err := cases[at].Judge(outcomes[at]); err != nil {
				return nil, advise(err)
			}
			sum.Worst = max(sum.Worst, outcomes[at].NMSE)
			at++
		}
		done = append(done, sum)
	}
	return done, nil
}

// advise says of a case that failed how to find out whether the text of the
// kernels or the compiler is wrong.
func advise(err error) error {
	var f *fault.Error
	if errors.As(err, &f) && f.Hint == "" {
		f.Hintf("if it passes with another compiler ($CXX names a clang++), the kernels are right and this one is not")
	}
	return err
}
