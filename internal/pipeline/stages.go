package pipeline

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"dot4fa/internal/build"
	"dot4fa/internal/fault"
	"dot4fa/internal/lock"
	"dot4fa/internal/progress"
	"dot4fa/internal/recipe"
	"dot4fa/internal/series"
	"dot4fa/internal/shell"
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
	if err := r.Tools(ctx).Require(r.Recipe.Backend); err != nil {
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
	if err := r.Tools(ctx).Require(r.Recipe.Backend); err != nil {
		return nil, err
	}
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
	return d, d.stage("unapply", func() (string, error) {
		// The records in the tree are enough, also for one of another commit.
		change, err := series.Unapply(ctx, r.Work, nil, nil, series.Options{Waiting: r.waiting})
		if err != nil {
			return "", err
		}
		d.Change = change
		if change.Empty() {
			return "", nil
		}
		return fmt.Sprintf("%s restored, %s removed", plural(len(change.Restored), "file"), plural(len(change.Removed), "rendered file")), nil
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
		return fmt.Sprintf("%s, %s", what, plural(len(files), "file")), nil
	})
}

func (r *Run) render(ctx context.Context, d *Done) error {
	return d.stage("render", func() (string, error) {
		files, err := r.Files(ctx)
		if err != nil {
			return "", err
		}
		plan, err := r.Plan(ctx)
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
		files, err := r.Files(ctx)
		if err != nil {
			return "", err
		}
		plan, err := r.Plan(ctx)
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
	if n := len(changed); n > 0 {
		r.Report.Say("dot4fa: note: %s of upstream's %s changed by hand and built as found: %s",
			plural(n, "file"), map[bool]string{true: "is", false: "are"}[n == 1], strings.Join(changed[:min(n, 5)], ", ")+map[bool]string{true: ", …"}[n > 5])
	}
	return err
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
			parts = append(parts, plural(p.n, "file")+" "+p.what)
		}
	}
	if plan != nil {
		parts = append(parts, plural(len(plan.Results), "edit"))
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

func (r *Run) configure(ctx context.Context, d *Done) error {
	return d.stage("configure", func() (string, error) {
		tools := r.Tools(ctx)
		tree := build.TreeOf(r.Work)
		cmd := tree.ConfigureCommand(r.Recipe, tools)
		want, err := r.configuration(ctx, cmd, tools)
		if err != nil {
			return "", err
		}
		l, err := r.readLock()
		if err != nil {
			return "", err
		}
		if l.Fresh(stageConfigure, want.whole) && configured(tree) {
			return "", nil
		}
		stale := !l.Fresh(stageCMake, want.cmake)
		if err := r.record(l, lock.Stage{Name: stageConfigure}, lock.Stage{Name: stageBuild}); err != nil {
			return "", err
		}
		log, err := tree.Configure(ctx, cmd, stale, r.Report)
		if err != nil {
			return "", err
		}
		l.Toolchain = nil
		for _, t := range tools.Tools() {
			l.Toolchain = append(l.Toolchain, lock.Tool{Name: t.Name, Version: t.Version})
		}
		if err := r.record(l, lock.Stage{Name: stageCMake, Fingerprint: want.cmake}, lock.Stage{Name: stageConfigure, Fingerprint: want.whole}); err != nil {
			return "", err
		}
		launcher := "no compiler cache found"
		if t := tools.Launcher; t.Found() {
			launcher = "compiler cache " + filepath.Base(t.Path)
		}
		return fmt.Sprintf("%s, %s, log %s", r.Recipe.Backend, launcher, log), nil
	})
}

// configured reports whether CMake has left what a build starts from.
func configured(t build.Tree) bool {
	for _, name := range []string{"CMakeCache.txt", "build.ninja"} {
		if _, err := os.Stat(filepath.Join(t.Dir, name)); err != nil {
			return false
		}
	}
	return true
}

func (r *Run) build(ctx context.Context, d *Done, o BuildOptions) error {
	targets := r.Recipe.Targets
	if len(o.Targets) > 0 {
		targets = o.Targets
	}
	tree := build.TreeOf(r.Work)
	tools := r.Tools(ctx)
	jobs := build.ChooseJobs(r.Recipe.Backend, o.Jobs)
	d.Jobs = &jobs
	err := d.stage("build", func() (string, error) {
		r.Report.Status("build     %s", jobs)
		done, err := tree.Compile(ctx, tree.CompileCommand(targets, jobs, tools), r.Report)
		if err != nil {
			return "", err
		}
		d.Compiled = &done
		if err := r.recordBuild(targets); err != nil {
			return "", err
		}
		if done.Nothing {
			return "", nil
		}
		return fmt.Sprintf("%s compiled, %s, log %s", plural(done.Units, "unit"), jobs, done.Log), nil
	})
	if err != nil {
		return err
	}
	d.Programs = programs(tree, targets)
	d.Command = runCommand(r.Recipe, d.Programs)
	return nil
}

// recordBuild notes in the lock that targets are built from what it describes.
func (r *Run) recordBuild(targets []string) error {
	l, err := r.readLock()
	if err != nil {
		return err
	}
	var from []lock.Stage
	for _, s := range l.Stages {
		if s.Name != stageBuild {
			from = append(from, s)
		}
	}
	return r.record(l, lock.Stage{Name: stageBuild, Fingerprint: lock.Fingerprint(from, targets)})
}

// programs are the built targets that can be started.
func programs(t build.Tree, targets []string) []string {
	var out []string
	for _, name := range targets {
		for _, ext := range []string{"", ".exe"} {
			file := filepath.Join(t.Bin(), name+ext)
			if info, err := os.Stat(file); err == nil && !info.IsDir() {
				out = append(out, file)
			}
		}
	}
	return out
}

// runCommand is the command that runs the most useful program built, with a
// packed16 K cache, from any directory. MODEL.gguf stands for the user's model.
func runCommand(r *recipe.Recipe, programs []string) string {
	for _, p := range []struct {
		name string
		args []string
	}{
		{"llama-server", []string{"-m", "MODEL.gguf", "-fa", "on", "-ctk", "packed16"}},
		{"llama-cli", []string{"-m", "MODEL.gguf", "-fa", "on", "-ctk", "packed16"}},
		{"llama-bench", []string{"-m", "MODEL.gguf", "-fa", "1", "-ctk", "packed16"}},
		{"llama-perplexity", []string{"-m", "MODEL.gguf", "-f", "TEXT", "-fa", "on", "-ctk", "packed16"}},
		{"test-backend-ops", []string{"-o", "PACK_K_PACKED16"}},
		{"", nil},
	} {
		for _, file := range programs {
			if base := strings.TrimSuffix(filepath.Base(file), ".exe"); base == p.name || p.name == "" {
				cmd := shell.Command{Path: file, Args: p.args}
				for _, k := range sortedKeys(r.Env) {
					cmd.Env = append(cmd.Env, k+"="+r.Env[k])
				}
				return cmd.String()
			}
		}
	}
	return ""
}
