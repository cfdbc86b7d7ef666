package pipeline

import (
	"context"
	"fmt"
	"time"

	"dot4fa/internal/build"
	"dot4fa/internal/doctor"
	"dot4fa/internal/fault"
	"dot4fa/internal/finding"
	"dot4fa/internal/gpu"
	"dot4fa/internal/page"
	"dot4fa/internal/recipe"
	"dot4fa/internal/series"
)

// reachable is how long a server may take to answer before it counts as out of
// reach.
const reachable = 8 * time.Second

// Doctor looks at everything that building and running the recipe here takes.
func (r *Run) Doctor(ctx context.Context) *doctor.Report {
	return doctor.Examine(ctx, doctor.Options{
		Machine: r.Machine,
		Recipe:  r.Recipe,
		Given:   r.TargetsGiven,
		Work:    r.Work,
		Jobs:    build.ChooseJobs(r.Recipe.Backend, 0),
		More: func(ctx context.Context, l *finding.List) {
			r.judgeUpstream(ctx, l)
			r.judgeTree(ctx, l)
		},
	})
}

// judgeUpstream says where llama.cpp would come from, without fetching it.
func (r *Run) judgeUpstream(ctx context.Context, l *finding.List) {
	const check = "upstream"
	pin := r.Recipe.Upstream
	what := fmt.Sprintf("%s (commit %.10s)", pin.Tag, pin.Commit)
	if o, err := r.origin(); err == nil && o != nil && o.Commit == pin.Commit {
		l.OK(check, what+" is in the work tree")
		return
	}
	repo, err := r.Repo(ctx)
	if err != nil {
		l.Fail(check, err.Error(), mends(err, "dot4fa build --upstream URL-or-directory")...)
		return
	}
	defer repo.Close()
	if repo.Has(ctx, pin.Commit) {
		where := r.from()
		if dir := repo.CacheDir(); dir != "" {
			where = dir
		}
		l.OK(check, what+" is in "+where)
		return
	}
	if !repo.Remote() {
		l.Fail(check, fmt.Sprintf("%s does not have %s, or not all of its files", r.from(), what), "git -C "+r.from()+" fetch --tags", "dot4fa build --upstream "+pin.URL)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, reachable)
	defer cancel()
	if err := repo.Reach(ctx); err != nil {
		l.Fail(check, fmt.Sprintf("%s is not in the cache and %s cannot be reached", what, r.from()),
			"dot4fa build --upstream /path/to/llama.cpp  # a copy that has "+pin.Tag, "connect to the network")
		return
	}
	l.OK(check, fmt.Sprintf("%s will be fetched from %s, which answers", what, r.from()))
}

// mends returns the hint of an error, or else the way on.
func mends(err error, otherwise string) []string {
	if hint := fault.Hint(err); hint != "" {
		return []string{hint}
	}
	return []string{otherwise}
}

// judgeTree says how the work tree stands, if there is one.
func (r *Run) judgeTree(ctx context.Context, l *finding.List) {
	const check = "work tree"
	s, err := r.Status(ctx)
	if err == nil {
		err = s.Err()
	}
	switch {
	case err != nil:
		l.Fail(check, err.Error(), mends(err, "dot4fa clean")...)
	case s.State == Absent:
		l.OK(check, "none yet in "+r.Work)
	case s.State == string(series.Partial):
		l.Warn(check, r.Work+" holds only a part of the edits: a run was interrupted", r.Command("apply").String())
	case len(s.Changed) > 0:
		l.Warn(check, fmt.Sprintf("%s: %s of upstream's changed by hand, and built as found: %s", r.Work, page.Plural(len(s.Changed), "file"), s.Changed[0]),
			r.Command("status").String(), r.Command("clean").String())
	case len(s.Missing) == 0 && s.Configured:
		l.OK(check, r.Work+" is built")
	default:
		l.OK(check, fmt.Sprintf("%s is %s; dot4fa build goes on there", r.Work, s.State))
	}
}

// sayGPUs says before a build which GPUs there are and what is built for, and
// what of it will not run here. None of it stops the build: building for another
// machine is as good.
func (r *Run) sayGPUs(ctx context.Context) {
	if r.Recipe.Backend != recipe.HIP {
		return
	}
	found := gpu.Detect(ctx, r.Machine, r.Tools(ctx).ROCm.Bin()...)
	r.Report.Say("%-9s %s", "gpu", found.Plan(r.Recipe, r.TargetsGiven))
	if len(found.GPUs) == 0 && found.Why != gpu.NoDriver && found.Why != gpu.NotAllowed {
		return
	}
	for _, f := range found.Judge(r.Machine, r.Recipe, r.TargetsGiven) {
		if f.Status == finding.OK {
			continue
		}
		r.Report.Say("dot4fa: note: %s", f.Evidence)
		if len(f.Mend) > 0 {
			r.Report.Say("dot4fa: hint: %s", f.Mend[0])
		}
	}
}
