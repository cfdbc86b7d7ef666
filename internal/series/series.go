// Package series holds the patch series of dot4fa as edits, each located by
// scope and anchor, and applies it to a source tree and takes it back.
//
// The data flows one way: Load reads patches/*.yaml, Plan locates every edit on
// the pristine files and computes the edited ones, Apply writes them to a work
// tree. patches/README.md is the reference of the format.
package series

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"dot4fa/internal/anchor"
	"dot4fa/internal/fault"
)

// Technique says what an edit does at the place it found.
type Technique string

// The techniques; see patches/README.md.
const (
	InsertBefore Technique = "insert_before"
	InsertAfter  Technique = "insert_after"
	ScopeOpen    Technique = "scope_open"
	ScopeEnd     Technique = "scope_end"
	Replace      Technique = "replace"
	Append       Technique = "append"
	BumpCounter  Technique = "bump_counter"
	NewFile      Technique = "new_file"
)

var techniques = []string{
	string(InsertBefore), string(InsertAfter), string(ScopeOpen), string(ScopeEnd),
	string(Replace), string(Append), string(BumpCounter), string(NewFile),
}

func (t Technique) wantsAnchor() bool {
	return t == InsertBefore || t == InsertAfter || t == Replace || t == BumpCounter
}

func (t Technique) wantsText() bool { return t != BumpCounter }

// Count is how often an anchor must match.
type Count struct{ Min, Max int } // Max < 0: no limit

// Has reports whether n matches satisfy c.
func (c Count) Has(n int) bool { return n >= c.Min && (c.Max < 0 || n <= c.Max) }

func (c Count) String() string {
	switch {
	case c.Max < 0:
		return fmt.Sprintf("%d..", c.Min)
	case c.Min == c.Max:
		return fmt.Sprint(c.Min)
	}
	return fmt.Sprintf("%d..%d", c.Min, c.Max)
}

// Probe makes an edit depend on whether a file holds a token sequence.
type Probe struct {
	File  string
	Has   string // the edit is made only when File holds this
	Lacks string // the edit is made only when File does not hold this

	pattern anchor.Pattern
}

// Edit is one change of one upstream file.
type Edit struct {
	ID       string
	File     string   // slash-separated, relative to the tree
	Scope    []string // outermost first; empty for the whole file
	Anchor   string
	Count    Count
	Do       Technique
	Text     string // template source of what is inserted
	Template string // file under templates/ Text was read from, or ""
	Why      string
	Probes   []Probe // the edit is made only when all of them say so
	Since    string  // commit the tree must contain
	Until    string  // commit the tree must not contain

	Where  string // file:line:col of the edit in the series
	Member int    // index into Series.Members

	scopes   []anchor.Scope
	pattern  anchor.Pattern
	textAt   string // file the text stands in
	textLine int    // line of its first line there
}

// Place is the edit's scope and anchor, for messages.
func (e *Edit) Place() string {
	parts := append([]string{}, e.Scope...)
	if e.Anchor != "" {
		parts = append(parts, e.Anchor)
	}
	if len(parts) == 0 {
		return "(whole file)"
	}
	return strings.Join(parts, " ▸ ")
}

// Member is one file of the series and one exported patch.
type Member struct {
	File       string // base name, "010-ggml-op.yaml"
	Title      string
	Why        string
	RemoveWhen string
	Edits      []*Edit
}

// Series is the loaded patch series, in the order of its file names.
type Series struct {
	Members []Member
	Hooks   Hooks // set before Plan or Check
}

// Edits returns every edit in series order.
func (s *Series) Edits() []*Edit {
	var all []*Edit
	for _, m := range s.Members {
		all = append(all, m.Edits...)
	}
	return all
}

var memberName = regexp.MustCompile(`^[0-9]{3}-[a-z0-9-]+\.yaml$`)

// Load reads patches/*.yaml, and the templates they name from templates/.
func Load(fsys fs.FS) (*Series, error) {
	entries, err := fs.ReadDir(fsys, "patches")
	if err != nil {
		return nil, fault.New(fault.Failure, "cannot read the series: %w", err).At("patches").
			Hintf("run inside a whole working copy, or outside of any: the program carries the series too")
	}
	s := &Series{}
	seen := map[string]*Edit{}
	for _, entry := range entries { // sorted by name
		name := "patches/" + entry.Name()
		switch ext := path.Ext(name); {
		case ext != ".yaml" && ext != ".yml":
			continue
		case !memberName.MatchString(entry.Name()):
			return nil, fault.New(fault.Usage, "the name is not that of a member of the series").At("%s", name).
				Hintf("members are called NNN-name.yaml, in lower case")
		}
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, fault.New(fault.Failure, "cannot read the series: %w", err).At("%s", name).
				Hintf("check that it is a file that can be read")
		}
		m, err := decodeMember(fsys, name, data)
		if err != nil {
			return nil, err
		}
		for _, e := range m.Edits {
			e.Member = len(s.Members)
			if first, ok := seen[e.ID]; ok {
				return nil, fault.New(fault.Usage, "edit id %q is used twice", e.ID).At("%s", e.Where).
					Hintf("the first one is at %s; give this one another id", first.Where)
			}
			seen[e.ID] = e
		}
		s.Members = append(s.Members, *m)
	}
	if len(s.Members) == 0 {
		return nil, fault.New(fault.Failure, "the series has no members").At("patches/").
			Hintf("a member is a file called NNN-name.yaml; patches/README.md describes it")
	}
	return s, nil
}

const stateDir = ".dot4fa"

// cleanPath refuses a path that could leave the tree or reach its metadata.
func cleanPath(p string) error {
	switch {
	case p == "" || p == ".":
		return fmt.Errorf("the path is empty")
	case strings.ContainsRune(p, '\\') || strings.ContainsRune(p, 0) || strings.Contains(p, ":"):
		return fmt.Errorf("path %q: use / between names, and no backslash, colon or NUL", p)
	case !fs.ValidPath(p) || path.Clean(p) != p:
		return fmt.Errorf("path %q must be relative, without . or .. or a trailing /", p)
	}
	for _, part := range strings.Split(p, "/") {
		if low := strings.ToLower(part); low == ".git" || low == stateDir {
			return fmt.Errorf("path %q lies in %s, which is not source", p, part)
		}
	}
	return nil
}
