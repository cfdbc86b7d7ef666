// Package pipeline runs the stages of dot4fa on one work tree:
//
//	fetch ─▶ render ─▶ apply ─▶ configure ─▶ build
//
// Each stage first brings the ones before it up to date and does nothing when
// its own result is already there. What a stage has done is judged by what lies
// in the work tree, never by a memory of having run: a stage that was
// interrupted is simply not done.
package pipeline

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"dot4fa/internal/fault"
	"dot4fa/internal/machine"
	"dot4fa/internal/progress"
	"dot4fa/internal/recipe"
	"dot4fa/internal/render"
	"dot4fa/internal/series"
	"dot4fa/internal/toolchain"
	"dot4fa/internal/upstream"
)

// Options describe a run.
type Options struct {
	Recipe       *recipe.Recipe
	Assets       fs.FS    // kernels/, patches/, recipes/, templates/
	Work         string   // the work tree, absolute
	Upstream     string   // URL, repository or directory; empty for the recipe's URL
	Copy         string   // the working copy Assets come from, "" for embedded ones
	Flags        []string // global flags for printed dot4fa commands
	DryRun       bool     // print commands to Out instead of running stages
	Out          io.Writer
	Report       *progress.Reporter
	Machine      machine.System // where tools are looked for
	TargetsGiven bool           // the GPU targets come from --gpu-targets and not from the recipe
	Version      string         // of dot4fa, for the lock
}

// Run is the state of one dot4fa invocation: what it looked up is looked up once.
type Run struct {
	Options
	snapshot *upstream.Snapshot
	files    []render.File
	edits    *series.Series
	plan     *series.Plan
	tools    *toolchain.Set
}

// New returns a run. Close it.
func New(o Options) *Run { return &Run{Options: o} }

// Close gives open files back.
func (r *Run) Close() error {
	if r.snapshot != nil {
		return r.snapshot.Close()
	}
	return nil
}

// Stage is what became of one stage of a run.
type Stage struct {
	Name    string  `json:"name"`
	Done    bool    `json:"done"` // false: it was up to date already
	Detail  string  `json:"detail,omitempty"`
	Seconds float64 `json:"seconds"`
}

// location is where upstream comes from: what was asked for, else where the work
// tree came from while that is still there, else the recipe's URL.
func (r *Run) location() string {
	if r.Upstream != "" {
		return r.Upstream
	}
	if o, err := r.origin(); err == nil && o != nil && filepath.IsAbs(o.From) {
		if _, err := os.Stat(o.From); err == nil && (o.Commit == "" || o.Commit == r.Recipe.Upstream.Commit) {
			return o.From
		}
	}
	return r.Recipe.Upstream.URL
}

// from is the location as the work tree's records name it: absolute, and
// without a password.
func (r *Run) from() string {
	location := r.location()
	if _, err := os.Stat(location); err == nil {
		if abs, err := filepath.Abs(location); err == nil {
			return abs
		}
	}
	if u, err := url.Parse(location); err == nil && u.User != nil {
		u.User = nil
		return u.String()
	}
	return location
}

// Snapshot returns upstream at the recipe's pin, fetching it on first use.
func (r *Run) Snapshot(ctx context.Context) (*upstream.Snapshot, error) {
	if r.snapshot == nil {
		up := r.Recipe.Upstream
		s, err := upstream.Open(ctx, upstream.Options{
			Location: r.location(), Commit: up.Commit, Tag: up.Tag, Exclude: up.Exclude, Progress: r.Report,
		})
		if err != nil {
			return nil, err
		}
		r.snapshot = s
	}
	return r.snapshot, nil
}

// Files renders the recipe's files and makes sure that upstream has none of
// the same name.
func (r *Run) Files(ctx context.Context) ([]render.File, error) {
	if r.files == nil {
		s, err := r.Snapshot(ctx)
		if err != nil {
			return nil, err
		}
		files, err := render.Render(r.Recipe, r.Assets)
		if err != nil {
			return nil, err
		}
		if err := render.Collisions(files, has(s)); err != nil {
			return nil, err
		}
		r.files = files
	}
	return r.files, nil
}

// Series loads the edits.
func (r *Run) Series() (*series.Series, error) {
	if r.edits == nil {
		edits, err := series.Load(r.Assets)
		if err != nil {
			return nil, err
		}
		edits.Hooks.Next = func(f series.Result) string {
			return r.Command("explain", f.ID).String()
		}
		edits.Hooks.Contains = r.pinContains
		r.edits = edits
	}
	return r.edits, nil
}

// pinContains reports whether the pin is commit or descends from it.
func (r *Run) pinContains(commit string) (bool, error) {
	ctx := context.Background()
	repo, err := r.Repo(ctx)
	if err != nil {
		return false, err
	}
	defer repo.Close()
	return repo.IsAncestor(ctx, commit, r.Recipe.Upstream.Commit)
}

// Repo opens upstream for reading any number of commits. Close it.
func (r *Run) Repo(ctx context.Context) (*upstream.Repo, error) {
	up := r.Recipe.Upstream
	return upstream.OpenRepo(ctx, upstream.Options{
		Location: r.location(), Tag: up.Tag, Exclude: up.Exclude, Progress: r.Report,
	})
}

// Plan returns what the series does to upstream at the pin.
func (r *Run) Plan(ctx context.Context) (*series.Plan, error) {
	if r.plan == nil {
		s, err := r.Snapshot(ctx)
		if err != nil {
			return nil, err
		}
		edits, err := r.Series()
		if err != nil {
			return nil, err
		}
		if r.plan, err = edits.Plan(s.ReadFile, r.Recipe); err != nil {
			return nil, err
		}
	}
	return r.plan, nil
}

// filesAndPlan returns all that a patched tree has and upstream has not.
func (r *Run) filesAndPlan(ctx context.Context) ([]render.File, *series.Plan, error) {
	files, err := r.Files(ctx)
	if err != nil {
		return nil, nil, err
	}
	plan, err := r.Plan(ctx)
	return files, plan, err
}

// Tools returns the programs found on this machine.
func (r *Run) Tools(ctx context.Context) toolchain.Set {
	if r.tools == nil {
		t := toolchain.Find(ctx, r.Machine)
		r.tools = &t
	}
	return *r.tools
}

// has reports whether upstream has a file; an excluded one counts.
func has(s *upstream.Snapshot) func(string) bool {
	return func(path string) bool {
		_, err := s.BlobID(path)
		return err == nil
	}
}

func asRendered(files []render.File) []series.Rendered {
	out := make([]series.Rendered, len(files))
	for i, f := range files {
		out[i] = series.Rendered{Path: f.Path, Data: f.Data, Source: f.Source}
	}
	return out
}

// environment makes a failed file operation an Environment fault.
func environment(err error, at, what string) error {
	var known *fault.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	hint := "check the directory's permissions and the free space"
	if errors.Is(err, fs.ErrPermission) {
		hint = "make it writable, or name another directory with --work"
	}
	return fault.New(fault.Environment, "%s: %w", what, err).At("%s", at).Hintf("%s", hint)
}
