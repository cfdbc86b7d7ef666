package series

import (
	"fmt"
	"strings"

	"dot4fa/internal/anchor"
	"dot4fa/internal/fault"
)

// Status is how an edit stands on a tree.
type Status string

// What Check answers for an edit.
const (
	OK        Status = "ok"
	Moved     Status = "moved"     // its anchor is elsewhere in the file, or no longer where an edit can go
	Ambiguous Status = "ambiguous" // scope or anchor match more often than they may
	Gone      Status = "gone"      // file, scope or anchor is not there
	Skipped   Status = "skipped"   // a probe, since or until excludes this tree
	Conflict  Status = "conflict"  // another edit of the series claims the same place
)

// Result is how one edit stands.
type Result struct {
	ID         string             `json:"id"`
	Member     string             `json:"member"`
	File       string             `json:"file"`
	Place      string             `json:"place"` // scope and anchor
	Status     Status             `json:"status"`
	Detail     string             `json:"detail,omitempty"`
	Lines      []int              `json:"lines,omitempty"` // where it was found
	Candidates []anchor.Candidate `json:"candidates,omitempty"`
	MovedBy    string             `json:"moved_by,omitempty"` // upstream commit, when known
	Next       string             `json:"next,omitempty"`     // command to run next

	edit *Edit
}

func (r *Result) fail(s Status, format string, args ...any) {
	r.Status, r.Detail, r.Lines = s, fmt.Sprintf(format, args...), nil
}

// Failed reports whether the edit cannot be made.
func (r *Result) Failed() bool { return r.Status != OK && r.Status != Skipped }

// Hooks answer what the series cannot know by itself. Each may be nil.
type Hooks struct {
	// Contains reports whether the tree's commit is commit or descends from it.
	Contains func(commit string) (bool, error)
	// MovedBy names the upstream commit that last changed where anchor stands
	// in file, as "hash subject", or "".
	MovedBy func(file, anchor string) string
	// Next is the command that helps most with a failed edit.
	Next func(Result) string
}

func (h Hooks) complete(r *Result) {
	if !r.Failed() || r.Status == Conflict {
		return
	}
	if h.MovedBy != nil {
		text := r.edit.Anchor
		if text == "" && len(r.edit.Scope) > 0 {
			text = r.edit.Scope[len(r.edit.Scope)-1]
		}
		r.MovedBy = h.MovedBy(r.File, text)
	}
	if h.Next != nil {
		r.Next = h.Next(*r)
	}
}

// Check answers for every edit, in series order, how it stands on the tree that
// read shows. It needs no work tree and renders nothing.
func (s *Series) Check(read ReadFunc) ([]Result, error) {
	v, err := s.survey(read)
	if err != nil {
		return nil, err
	}
	return v.results, nil
}

// Report is the error of a plan that cannot be made: the edits that failed.
type Report struct {
	Failed []Result
	Total  int
}

// Error describes every failed edit: where it looked, the nearest candidates,
// the upstream commit and the next command as far as they are known.
func (r *Report) Error() string {
	var b strings.Builder
	if n := len(r.Failed); n == 1 {
		fmt.Fprintf(&b, "edit %s does not apply", r.Failed[0].ID)
	} else {
		fmt.Fprintf(&b, "%d of %d edits do not apply", n, r.Total)
	}
	for _, f := range r.Failed {
		fmt.Fprintf(&b, "\n  %s (%s): %s\n    file   %s\n    place  %s\n    found  %s", f.ID, f.Member, f.Status, f.File, f.Place, f.Detail)
		for _, c := range f.Candidates {
			fmt.Fprintf(&b, "\n    near   %s:%d  %3.0f%%  %s", f.File, c.Line, 100*c.Similarity, c.Text)
		}
		if f.MovedBy != "" {
			fmt.Fprintf(&b, "\n    moved  %s", f.MovedBy)
		}
		if f.Next != "" {
			fmt.Fprintf(&b, "\n    next   %s", f.Next)
		}
	}
	return b.String()
}

// report makes the error of the failed results, or nil.
func report(s *Series, results []Result) error {
	r := &Report{Total: len(results)}
	var first *Edit
	for _, x := range results {
		if x.Failed() {
			r.Failed = append(r.Failed, x)
			if first == nil {
				first = x.edit
			}
		}
	}
	if first == nil {
		return nil
	}
	err := fault.New(fault.EditFails, "%w", error(r)).At("%s", first.Where)
	return err.Hintf("compare the candidates with the edit in patches/%s and change its scope or anchor", s.Members[first.Member].File)
}
