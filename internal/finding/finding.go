// Package finding is what a look at a machine results in: a check, how it came
// out, what was seen, and the command that mends it.
package finding

import "dot4fa/internal/fault"

// Status says how a check came out.
type Status string

// The outcomes, from good to bad.
const (
	OK   Status = "ok"
	Warn Status = "warn" // it works, but not as well or not as expected
	Fail Status = "fail" // a build or its result cannot work
)

// Finding is the outcome of one check.
type Finding struct {
	Check    string   `json:"check"` // a short name that stays the same
	Status   Status   `json:"status"`
	Evidence string   `json:"evidence"`       // what was seen: paths, versions, variables
	Mend     []string `json:"mend,omitempty"` // ways on, any one will do: commands, with a remark after a #, or where there is none what to do
}

// List is a series of findings.
type List []Finding

// OK adds a check that came out well.
func (l *List) OK(check, evidence string) { l.add(check, OK, evidence) }

// Warn adds a check with a remark.
func (l *List) Warn(check, evidence string, mend ...string) { l.add(check, Warn, evidence, mend...) }

// Fail adds a check that failed.
func (l *List) Fail(check, evidence string, mend ...string) { l.add(check, Fail, evidence, mend...) }

func (l *List) add(check string, s Status, evidence string, mend ...string) {
	*l = append(*l, Finding{check, s, evidence, mend})
}

// Count returns how many findings have a status.
func (l List) Count(s Status) int {
	n := 0
	for _, f := range l {
		if f.Status == s {
			n++
		}
	}
	return n
}

// Err returns the first failure as an Environment fault, nil when there is none.
func (l List) Err() error {
	for _, f := range l {
		if f.Status == Fail {
			e := fault.New(fault.Environment, "%s", f.Evidence)
			for i, m := range f.Mend {
				if i > 0 {
					e.Hint += "; or "
				}
				e.Hint += m
			}
			return e
		}
	}
	return nil
}
