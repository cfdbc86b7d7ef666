package pipeline

import (
	"context"
	"fmt"
	"strings"
	"time"

	"dot4fa/internal/build"
	"dot4fa/internal/fault"
	"dot4fa/internal/loader"
	"dot4fa/internal/page"
	"dot4fa/internal/progress"
	"dot4fa/internal/series"
)

// Done is the result of a run: what its stages did.
type Done struct {
	Work   string  `json:"work"`
	Recipe string  `json:"recipe"`
	Commit string  `json:"commit"`
	Tag    string  `json:"tag"`
	Stages []Stage `json:"stages"`

	Change   *series.Change  `json:"change,omitempty"`   // what apply or unapply did to the tree
	Jobs     *build.Jobs     `json:"jobs,omitempty"`     // of build
	Compiled *build.Compiled `json:"compiled,omitempty"` // of build
	Programs []string        `json:"programs,omitempty"` // of build
	Command  string          `json:"command,omitempty"`  // runs the result

	Container   string         `json:"container,omitempty"`    // the image it was built in
	Libraries   *loader.Report `json:"libraries,omitempty"`    // what the programs load
	CompileOnly bool           `json:"compile_only,omitempty"` // the programs cannot run on this machine

	report *progress.Reporter
}

// Nothing reports whether every stage was up to date.
func (d *Done) Nothing() bool {
	for _, s := range d.Stages {
		if s.Done {
			return false
		}
	}
	return true
}

func (r *Run) begin() *Done {
	up := r.Recipe.Upstream
	return &Done{Work: r.Work, Recipe: r.Recipe.Name, Commit: up.Commit, Tag: up.Tag, report: r.Report}
}

// stage runs one stage and records what it did. Its detail is empty when there
// was nothing to do.
func (d *Done) stage(name string, do func() (string, error)) error {
	start := time.Now()
	detail, err := do()
	if err != nil {
		return err
	}
	took := time.Since(start)
	d.Stages = append(d.Stages, Stage{name, detail != "", detail, float64(took.Milliseconds()) / 1000})
	if detail != "" {
		d.report.Say("%-9s %s (%s)", name, detail, progress.Duration(took))
	}
	return nil
}

// Fetch makes the work tree.
func (r *Run) Fetch(ctx context.Context) (*Done, error) {
	return r.locked(ctx, r.fetch)
}

// Render writes the files that upstream does not have. A tree that holds the
// edits already keeps them.
func (r *Run) Render(ctx context.Context) (*Done, error) {
	return r.locked(ctx, r.fetch, r.render)
}

// Apply brings the work tree to the state that recipe and series describe.
func (r *Run) Apply(ctx context.Context) (*Done, error) {
	return r.locked(ctx, r.fetch, r.apply)
}

// Configure runs CMake when something that decides its outcome has changed.
func (r *Run) Configure(ctx context.Context) (*Done, error) {
	if err := r.Tools(ctx).Require(r.Recipe); err != nil {
		return nil, err
	}
	return r.locked(ctx, r.fetch, r.apply, r.configure)
}

// BuildOptions override the recipe for one build.
type BuildOptions struct {
	Targets []string // CMake targets instead of the recipe's
	Jobs    int      // compile jobs; 0 chooses by cores and free memory
}

// Build does everything and ends with the command that runs the result.
func (r *Run) Build(ctx context.Context, o BuildOptions) (*Done, error) {
	if err := r.Tools(ctx).Require(r.Recipe); err != nil {
		return nil, err
	}
	r.sayGPUs(ctx)
	return r.locked(ctx, r.fetch, r.apply, r.remark, r.configure, func(ctx context.Context, d *Done) error {
		return r.build(ctx, d, o)
	})
}

// Unapply gives the work tree its upstream content back and removes what was
// rendered.
func (r *Run) Unapply(ctx context.Context) (*Done, error) {
	o, err := r.origin()
	if err != nil {
		return nil, err
	}
	d := r.begin()
	if o == nil {
		return nil, fault.New(fault.Usage, "there is no work tree").At("%s", r.Work).Hintf("name it with --work")
	}
	d.Commit, d.Tag = o.Commit, o.Tag
	unlock, err := r.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	l, err := r.readLock()
	if err != nil {
		return nil, err
	}
	return d, d.stage("unapply", func() (string, error) {
		// The records in the tree are enough, also for one of another commit.
		change, err := series.Unapply(ctx, r.Work, nil, nil, series.Options{Waiting: r.waiting})
		if err != nil {
			return "", err
		}
		d.Change = change
		if err := r.recordUnapplied(l); err != nil || change.Empty() {
			return "", err
		}
		return fmt.Sprintf("%s restored, %s removed", page.Plural(len(change.Restored), "file"), page.Plural(len(change.Removed), "rendered file")), nil
	})
}

type stageFunc func(context.Context, *Done) error

func (r *Run) locked(ctx context.Context, stages ...stageFunc) (*Done, error) {
	unlock, err := r.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	d := r.begin()
	for _, s := range stages {
		if err := ctx.Err(); err != nil {
			return d, context.Cause(ctx)
		}
		if err := s(ctx, d); err != nil {
			return d, err
		}
	}
	return d, nil
}

func (r *Run) waiting(lock string) { r.Report.Say("another run holds %s; waiting for it", lock) }

func (r *Run) fetch(ctx context.Context, d *Done) error {
	return d.stage("fetch", func() (string, error) {
		o, err := r.ownTree(ctx)
		if o != nil || err != nil {
			return "", err
		}
		s, err := r.Snapshot(ctx)
		if err != nil {
			return "", err
		}
		if err := r.checkout(ctx, s); err != nil {
			return "", err
		}
		files, err := s.Files()
		if err != nil {
			return "", err
		}
		what := "llama.cpp " + r.Recipe.Upstream.Tag + ", commit " + s.Commit
		if s.Commit == "" {
			what = "llama.cpp from " + r.from()
		}
		return fmt.Sprintf("%s, %s", what, page.Plural(len(files), "file")), nil
	})
}

func (r *Run) render(ctx context.Context, d *Done) error {
	return d.stage("render", func() (string, error) {
		files, plan, err := r.filesAndPlan(ctx)
		if err != nil {
			return "", err
		}
		if edited, err := r.holdsEdits(plan); err != nil {
			return "", err
		} else if !edited {
			plan = nil
		}
		return r.change(ctx, d, plan, asRendered(files))
	})
}

func (r *Run) apply(ctx context.Context, d *Done) error {
	return d.stage("apply", func() (string, error) {
		files, plan, err := r.filesAndPlan(ctx)
		if err != nil {
			return "", err
		}
		detail, err := r.change(ctx, d, plan, asRendered(files))
		if err != nil {
			return "", err
		}
		return detail, r.recordTree(plan, files)
	})
}

// remark says which of upstream's other files were changed by hand: they are
// built, and the lock does not know them.
func (r *Run) remark(ctx context.Context, _ *Done) error {
	plan, err := r.Plan(ctx)
	if err != nil {
		return err
	}
	files, err := r.Files(ctx)
	if err != nil {
		return err
	}
	_, ours, err := series.State(r.Work, plan, asRendered(files))
	if err != nil {
		return err
	}
	changed, err := r.changedByHand(ours)
	if err != nil || len(changed) == 0 {
		return err
	}
	is, list := "are", strings.Join(changed[:min(len(changed), 5)], ", ")
	if len(changed) == 1 {
		is = "is"
	}
	if len(changed) > 5 {
		list += ", …"
	}
	r.Report.Say("dot4fa: note: %s of upstream's %s changed by hand and built as found: %s", page.Plural(len(changed), "file"), is, list)
	return nil
}

func (r *Run) change(ctx context.Context, d *Done, plan *series.Plan, files []series.Rendered) (string, error) {
	change, err := series.Apply(ctx, r.Work, plan, files, series.Options{Waiting: r.waiting})
	if err != nil {
		return "", err
	}
	d.Change = change
	if change.Empty() {
		return "", nil
	}
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{len(change.Written), "written"}, {len(change.Restored), "restored"}, {len(change.Removed), "removed"}} {
		if p.n > 0 {
			parts = append(parts, page.Plural(p.n, "file")+" "+p.what)
		}
	}
	if plan != nil {
		parts = append(parts, page.Plural(len(plan.Results), "edit"))
	}
	return strings.Join(parts, ", "), nil
}

// holdsEdits reports whether some edited file is not as upstream has it.
func (r *Run) holdsEdits(plan *series.Plan) (bool, error) {
	state, _, err := series.State(r.Work, plan, nil)
	if err != nil {
		return false, err
	}
	if state == series.Clean {
		return false, nil
	}
	_, files, err := series.State(r.Work, plan, nil)
	for _, f := range files {
		if plan.File(f.Path) != nil && f.State != series.Clean {
			return true, err
		}
	}
	return false, err
}
