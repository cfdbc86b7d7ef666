package pipeline

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/rogpeppe/go-internal/diff"

	"dot4fa/internal/check"
	"dot4fa/internal/fault"
	"dot4fa/internal/output"
	"dot4fa/internal/recipe"
	"dot4fa/internal/render"
	"dot4fa/internal/series"
	"dot4fa/internal/syntax"
	"dot4fa/internal/upstream"
)

// BumpOptions say where to move the pin.
type BumpOptions struct {
	To      string   // a ref, or "latest" for the newest release tag
	Compile bool     // also compile the units at the new commit
	Tests   []string // of BumpTests, to run at the new pin
	DryRun  bool     // do everything but rewrite the recipe
}

// Bump is what moving the pin means.
type Bump struct {
	From    Pin           `json:"from"`
	To      Pin           `json:"to"`
	Check   check.Commit  `json:"check"` // at To
	Patches []PatchChange `json:"patches,omitempty"`
	File    string        `json:"file,omitempty"`   // recipe file that holds the pin
	Written bool          `json:"written"`          // the pin is rewritten
	Tests   []BumpTest    `json:"tests,omitempty"`  // one that failed keeps the pin where it is
	Failed  []FailedEdit  `json:"failed,omitempty"` // edits that keep the pin where it is
}

// Pin is a commit of upstream's and the release it belongs to.
type Pin struct {
	Commit string `json:"commit"`
	Tag    string `json:"tag"`
}

// String is the release, and the commit, which may be one after it.
func (p Pin) String() string { return fmt.Sprintf("%s (%.10s)", p.Tag, p.Commit) }

// PatchChange is how one patch of the generated series differs.
type PatchChange struct {
	Member string `json:"member"`
	Diff   string `json:"diff"` // empty: the same but for line numbers
}

// FailedEdit is an edit that does not hold, and where it is written.
type FailedEdit struct {
	series.Result
	Where string `json:"where"` // file:line:col of the series
}

// Bump moves the recipe's pin to o.To if the series holds there. Where it does
// not, Failed says which edits are in the way, and nothing is written. When a
// test fails that needs the pin in its place, the pin is put back.
func (r *Run) Bump(ctx context.Context, o BumpOptions) (*Bump, error) {
	tests, err := chosenTests(o.Tests)
	if err != nil {
		return nil, err
	}
	repo, err := r.Repo(ctx)
	if err != nil {
		return nil, err
	}
	defer repo.Close()
	if repo.IsDirectory() {
		return nil, fault.New(fault.Usage, "a plain directory has no commits to move the pin to").At("%s", r.location()).
			Hintf("give a clone of llama.cpp or a URL with --upstream")
	}
	up := r.Recipe.Upstream
	b := &Bump{From: Pin{up.Commit, up.Tag}}
	if b.To, err = pinFor(ctx, repo, o.To, up.Tag); err != nil {
		return nil, err
	}
	edits, err := r.Series()
	if err != nil {
		return nil, err
	}
	checker := check.New(repo, edits)
	commits, err := checker.Check(ctx, []check.Target{{Ref: b.To.Tag, Commit: b.To.Commit}}, 1, r.Report)
	if err != nil {
		return nil, err
	}
	if err := checker.Trace(ctx, up.Commit, &commits[0]); err != nil {
		return nil, err
	}
	b.Check = commits[0]
	where := map[string]string{}
	for _, e := range edits.Edits() {
		where[e.ID] = e.Where
	}
	for _, f := range b.Check.Failed() {
		b.Failed = append(b.Failed, FailedEdit{f, where[f.ID]})
	}
	if b.Failed != nil {
		return b, nil
	}
	if o.Compile {
		if err := r.compileAt(ctx, repo, b); err != nil {
			return nil, err
		}
		if len(syntax.Bad(b.Check.Units)) > 0 {
			return b, nil
		}
	}
	if b.Patches, err = r.differences(ctx, repo, b.From.Commit, b.To.Commit); err != nil {
		return nil, err
	}
	file, src, out, err := r.rewritten(b.To)
	if err != nil {
		return nil, err
	}
	b.File = r.shown(file)
	for _, name := range tests {
		if name == TestGo && !o.DryRun && !bytes.Equal(src, out) {
			if err := replaceFile(file, out); err != nil {
				return nil, err
			}
			b.Written = true
		}
		good, err := r.test(ctx, b, name)
		if err == nil && good {
			continue
		}
		if b.Written {
			if back := replaceFile(file, src); back != nil {
				return nil, back
			}
			b.Written = false
		}
		return b, err
	}
	if b.Written || o.DryRun || bytes.Equal(src, out) {
		return b, nil
	}
	if err := replaceFile(file, out); err != nil {
		return nil, err
	}
	b.Written = true
	return b, nil
}

// TestFailed reports whether a test failed.
func (b *Bump) TestFailed() bool {
	return slices.ContainsFunc(b.Tests, func(t BumpTest) bool { return t.Status == "failed" })
}

// pinFor finds the commit, and the release it belongs to: the tag that names it,
// else the newest release before it.
func pinFor(ctx context.Context, repo *upstream.Repo, to, old string) (Pin, error) {
	tags, err := repo.Tags(ctx, "b[0-9]*", time.Time{})
	if err != nil {
		return Pin{}, err
	}
	if to == "latest" {
		if len(tags) == 0 {
			return Pin{}, fault.New(fault.Usage, "the repository has no release tags").Hintf("name a commit with --to")
		}
		last := tags[len(tags)-1]
		if repo.Remote() { // dates are not known: the highest number
			for _, t := range tags {
				if len(t.Name) > len(last.Name) || len(t.Name) == len(last.Name) && t.Name > last.Name {
					last = t
				}
			}
		}
		return Pin{last.Commit, last.Name}, nil
	}
	id, err := repo.ResolveRef(ctx, to)
	if err != nil {
		return Pin{}, err
	}
	for _, t := range tags {
		if t.Commit == id {
			return Pin{id, t.Name}, nil
		}
	}
	if repo.Remote() {
		return Pin{}, fault.New(fault.Usage, "%s is not a release, and without history the release before it is not known", to).
			Hintf("give a release tag, or a clone with --upstream")
	}
	for i := len(tags) - 1; i >= 0; i-- {
		before, err := repo.IsAncestor(ctx, tags[i].Commit, id)
		if err != nil {
			return Pin{}, err
		}
		if before {
			return Pin{id, tags[i].Name}, nil
		}
	}
	return Pin{id, old}, nil
}

var hunkPlace = regexp.MustCompile(`(?m)^@@ -[0-9,]+ \+[0-9,]+ @@`)

// differences compares the generated series at two commits, patch by patch and
// without line numbers. At the old one the series need not hold.
func (r *Run) differences(ctx context.Context, repo *upstream.Repo, from, to string) ([]PatchChange, error) {
	edits, err := series.Load(r.Assets)
	if err != nil {
		return nil, err
	}
	at := func(commit string) (*series.Plan, error) {
		snap, err := repo.At(ctx, commit)
		if err != nil {
			return nil, err
		}
		edits.Hooks.Contains = func(id string) (bool, error) { return repo.IsAncestor(ctx, id, commit) }
		return edits.Plan(snap.ReadFile, r.Recipe)
	}
	after, err := at(to)
	if err != nil {
		return nil, err
	}
	snap, err := repo.At(ctx, to)
	if err != nil {
		return nil, err
	}
	files, err := render.Render(r.Recipe, r.Assets)
	if err != nil {
		return nil, err
	}
	if err := render.Collisions(files, has(snap)); err != nil {
		return nil, err
	}
	before, err := at(from)
	if err != nil {
		r.Report.Say("dot4fa: note: the series cannot be made at the old pin, so there is nothing to compare with: %s", firstLine(err))
		return nil, nil
	}
	var out []PatchChange
	for i, m := range after.Members {
		text := func(p *series.Plan) []byte { return hunkPlace.ReplaceAll(p.MemberDiff(i), []byte("@@")) }
		d := diff.Diff("old/"+m.File, text(before), "new/"+m.File, text(after))
		out = append(out, PatchChange{m.File, string(d)})
	}
	return out, nil
}

// rewritten is the recipe file that holds the pin, as it is and with the new pin.
func (r *Run) rewritten(to Pin) (file string, src, out []byte, err error) {
	name := r.Recipe.PinFile()
	file = filepath.FromSlash(name)
	if r.Copy != "" {
		if inside := filepath.Join(r.Copy, file); !filepath.IsAbs(file) && isFile(inside) {
			file = inside
		}
	}
	src, err = os.ReadFile(file)
	if err != nil {
		return "", nil, nil, fault.New(fault.Usage, "the pin is in %s, which is built into dot4fa: %w", name, err).
			Hintf("run it in a working copy of dot4fa, or give a recipe file of your own with --recipe")
	}
	out, err = recipe.RewritePin(name, src, to.Commit, to.Tag)
	return file, src, out, err
}

// shown is a path as a user types it.
func (r *Run) shown(file string) string {
	if dir, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(dir, file); err == nil && filepath.IsLocal(rel) {
			return rel
		}
	}
	return file
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

func replaceFile(name string, data []byte) error {
	mode := os.FileMode(0o644)
	if info, err := os.Stat(name); err == nil {
		mode = info.Mode().Perm()
	}
	return output.Write(name, data, mode)
}

func firstLine(err error) string {
	line, _, _ := bytes.Cut([]byte(err.Error()), []byte{'\n'})
	return string(line)
}
