package verify

import (
	"context"
	"fmt"
	"time"

	"dot4fa/internal/progress"
)

// said limits how often a count is printed where it cannot be rewritten in place.
const said = 30 * time.Second

// ticker reports a count: in place on a terminal, else now and then.
func (o *Options) ticker(format string, args ...any) func(int) {
	what, last := fmt.Sprintf(format, args...), time.Now()
	return func(n int) {
		if o.Report.Terminal() {
			o.Report.Status("%s: %d", what, n)
		} else if time.Since(last) > said {
			last = time.Now()
			o.Report.Say("%s: %d", what, n)
		}
	}
}

// ops runs the op cases on every backend. What passed with these programs before
// is not run again.
func (o *Options) ops(ctx context.Context, s *store, rep *Report, program string) error {
	for _, b := range rep.Backends {
		for _, run := range opRuns(o.Quick) {
			name := key("ops 1", rep.Programs, b, run.op, run.params)
			var res OpResult
			if s.get(name, &res) && res.Problem == "" && res.OK > 0 {
				res.Reused = true
				rep.Ops = append(rep.Ops, res)
				continue
			}
			o.Report.Status("ops  %s on %s", run.op, b.Name)
			start := time.Now()
			res, err := runOps(ctx, program, b, run, o.ticker("ops  %s on %s, cases", run.op, b.Name))
			if err != nil {
				return err
			}
			o.Report.Say("ops  %s on %s: %d OK, %d failed, %d not supported (%s)", run.op, b.Name, res.OK, res.Failed, res.Unsupported, progress.Duration(time.Since(start)))
			rep.Ops = append(rep.Ops, res)
			rep.fail(res.Problem, fmt.Sprintf("ops: %s on %s: ", res.Op, b.Name))
			if res.Problem == "" {
				if err := s.put(name, res); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// state runs the round trip, unless these programs passed it with this model and
// text before.
func (o *Options) state(ctx context.Context, s *store, rep *Report) error {
	program, err := o.Program("test-packed16-state")
	if err != nil {
		return err
	}
	sum, err := sumPrograms(program)
	if err != nil {
		return err
	}
	model, err := sumFile(o.Model, another)
	if err != nil {
		return err
	}
	text, err := sumFile(o.Text, another)
	if err != nil {
		return err
	}
	name := key("state 1", sum, model, text)
	var res StateResult
	if s.get(name, &res) && res.Problem == "" && res.Checks > 0 {
		res.Reused = true
		rep.State = &res
		return nil
	}
	if rep.State, err = runState(ctx, program, o.Model, o.Text, o.ticker("state  checks")); err != nil {
		return err
	}
	o.Report.Say("state  %d checks, %d failed (%s)", rep.State.Checks, rep.State.Failed, progress.Duration(time.Duration(rep.State.Seconds*float64(time.Second))))
	rep.fail(rep.State.Problem, "state: ")
	if rep.State.Problem != "" {
		return nil
	}
	return s.put(name, rep.State)
}

// depth computes the error of attention at depths that small models have not.
func (o *Options) depth(s *store, rep *Report) error {
	bounds, err := LoadBounds()
	if err != nil {
		return err
	}
	largest := 131072
	if o.Quick {
		largest = 16384
	}
	name := key("attention 2", largest)
	if !s.get(name, &rep.Depth) || len(rep.Depth) == 0 {
		count := o.Report.Count("depth")
		rep.Depth = attention(largest, 1, func(n, total int) { count.Step(n, total, fmt.Sprintf("%d cells", n)) })
		if err := s.put(name, rep.Depth); err != nil {
			return err
		}
	}
	rep.Failures = append(rep.Failures, judgeDepth(rep.Depth, bounds.Relative.Factor)...)
	return nil
}
