package series

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"dot4fa/internal/anchor"
	"dot4fa/internal/fault"
)

// ReadFunc returns the pristine content of a file of the tree, or an error that
// wraps fs.ErrNotExist.
type ReadFunc = func(path string) ([]byte, error)

// place is one change of one file: bytes [start, end) become something else.
type place struct {
	edit       *Edit
	start, end int
	at         anchor.Point // for techniques that insert lines
	lines      bool         // text goes in as whole lines at at
	fixed      string       // what replaces the bytes when it is not the edit's text
	line       int          // 1-based line of the pristine file it was found on
	helper     bool         // goes with another place of the same edit
}

// rank orders places at one offset: what belongs to the line before comes first.
func (p *place) rank() int {
	switch {
	case p.helper:
		return 0
	case p.end > p.start:
		return 6
	}
	switch p.edit.Do {
	case InsertAfter:
		return 1
	case ScopeOpen:
		return 2
	case InsertBefore:
		return 3
	case ScopeEnd:
		return 4
	}
	return 5
}

// pristine is an upstream file as the edits find it.
type pristine struct {
	name   string
	src    []byte
	absent bool
	parsed *anchor.File
}

func (p *pristine) file() *anchor.File {
	if p.parsed == nil {
		p.parsed = anchor.ParseAs(p.name, p.src)
	}
	return p.parsed
}

// survey locates every edit of a series on one tree.
type survey struct {
	read    ReadFunc
	hooks   Hooks
	files   map[string]*pristine
	places  map[string][]*place
	results []Result
}

func (s *Series) survey(read ReadFunc) (*survey, error) {
	v, err := s.look(read)
	var known *fault.Error
	if err != nil && !errors.As(err, &known) {
		err = fault.New(fault.Failure, "cannot look at upstream: %w", err).Hintf("dot4fa fetch gets it anew; --upstream names another")
	}
	return v, err
}

func (s *Series) look(read ReadFunc) (*survey, error) {
	v := &survey{read: read, hooks: s.Hooks, files: map[string]*pristine{}, places: map[string][]*place{}}
	for _, e := range s.Edits() {
		r := Result{ID: e.ID, Member: s.Members[e.Member].File, File: e.File, Place: e.Place(), edit: e}
		skip, err := v.guarded(e)
		if err != nil {
			return nil, err
		}
		if skip != "" {
			r.Status, r.Detail = Skipped, skip
		} else if err := v.locate(e, &r); err != nil {
			return nil, err
		}
		v.results = append(v.results, r)
	}
	v.conflicts()
	for i := range v.results {
		v.hooks.complete(&v.results[i])
	}
	return v, nil
}

func (v *survey) open(name string) (*pristine, error) {
	if p, ok := v.files[name]; ok {
		return p, nil
	}
	data, err := v.read(name)
	p := &pristine{name: name, src: data, absent: errors.Is(err, fs.ErrNotExist)}
	if err != nil && !p.absent {
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	v.files[name] = p
	return p, nil
}

// locate finds the places of e, or says in r why there are none.
func (v *survey) locate(e *Edit, r *Result) error {
	file, err := v.open(e.File)
	if err != nil {
		return err
	}
	if e.Do == NewFile {
		if !file.absent {
			r.fail(Ambiguous, "upstream has a file of this name")
			return nil
		}
		r.Status = OK
		v.add(e, &place{edit: e})
		return nil
	}
	if file.absent {
		r.fail(Gone, "the file is not in the tree")
		return nil
	}
	f := file.file()
	def, region, ok := inScope(f, e, r)
	if !ok {
		return nil
	}
	r.Status = OK
	switch e.Do {
	case ScopeOpen:
		v.insert(e, f, f.Opening(def), r)
	case ScopeEnd:
		v.insert(e, f, f.Ending(def), r)
	case Append:
		v.insert(e, f, f.End(), r)
	default:
		v.anchored(e, f, region, r)
	}
	return nil
}

func (v *survey) add(e *Edit, p *place) { v.places[e.File] = append(v.places[e.File], p) }

// insert adds the place of whole lines, and the comma the list before them lacks.
func (v *survey) insert(e *Edit, f *anchor.File, at anchor.Point, r *Result) {
	line, _ := f.Pos(at.Off)
	v.insertAt(e, at, line, r)
}

func (v *survey) insertAt(e *Edit, at anchor.Point, line int, r *Result) {
	r.Lines = append(r.Lines, line)
	v.add(e, &place{edit: e, start: at.Off, end: at.End, at: at, lines: true, line: line})
	if at.Comma < 0 {
		return
	}
	for _, p := range v.places[e.File] {
		if p.helper && p.start == at.Comma { // edits come in series order: the first one brings it
			return
		}
	}
	v.add(e, &place{edit: e, start: at.Comma, end: at.Comma, fixed: ",", helper: true, line: line})
}

// inScope narrows the file to the scopes of e, each of which must be there once.
func inScope(f *anchor.File, e *Edit, r *Result) (anchor.Def, anchor.Region, bool) {
	region := f.All()
	var def anchor.Def
	for i, s := range e.scopes {
		defs := f.Scopes(s, region)
		switch len(defs) {
		case 1:
			def, region = defs[0], f.Body(defs[0])
			continue
		case 0:
			if found := f.Scopes(s, f.All()); i > 0 && len(found) > 0 {
				r.fail(Moved, "scope %s is not in %s", s, e.scopes[i-1])
			} else if found := f.Find(e.pattern, f.All()); e.pattern.Len() > 0 && len(found) > 0 {
				r.fail(Moved, "scope %s is not in the file, but the anchor is, %s", s, placesOf(f, found))
			} else {
				r.fail(Gone, "scope %s is not in the file", s)
			}
			if line := f.Unpaired(); line > 0 {
				r.Detail += fmt.Sprintf("; the braces of the file do not pair from line %d on", line)
			}
			r.Candidates = f.NearestScopes(s, 3)
		default:
			r.fail(Ambiguous, "scope %s is there %d times", s, len(defs))
			for _, d := range defs[:min(3, len(defs))] {
				line, _ := f.Pos(f.Token(d.Head).Start)
				r.Candidates = append(r.Candidates, anchor.Candidate{Line: line, Text: f.Title(d), Similarity: 1})
			}
		}
		return def, region, false
	}
	return def, region, true
}

func (v *survey) anchored(e *Edit, f *anchor.File, region anchor.Region, r *Result) {
	found := f.Find(e.pattern, region)
	if e.Do == BumpCounter {
		found = counters(f, e.pattern, found)
	}
	if !e.Count.Has(len(found)) {
		v.miscounted(e, f, region, found, r)
		return
	}
	for _, m := range found {
		start, end := f.Bytes(m)
		line, _ := f.Pos(start)
		switch e.Do {
		case InsertBefore, InsertAfter:
			find := f.Before
			if e.Do == InsertAfter {
				find = f.After
			}
			at, err := find(m)
			if err != nil {
				r.fail(Moved, "%s", err)
				return
			}
			v.insertAt(e, at, line, r)
		case Replace:
			r.Lines = append(r.Lines, line)
			v.add(e, &place{edit: e, start: start, end: end, line: line})
		case BumpCounter:
			i := counterAt(e.pattern, m)
			t := f.Token(i)
			r.Lines = append(r.Lines, line)
			v.add(e, &place{edit: e, start: t.Start, end: t.End, fixed: bumped(f.Text(i)), line: line})
		}
	}
	if len(found) == 0 {
		r.Detail = "no match, as allowed by count " + e.Count.String()
	}
}

func (v *survey) miscounted(e *Edit, f *anchor.File, region anchor.Region, found []anchor.Match, r *Result) {
	in := "the file"
	if n := len(e.Scope); n > 0 {
		in = e.Scope[n-1]
	}
	if len(found) >= e.Count.Min {
		r.fail(Ambiguous, "%d matches in %s instead of %s, %s", len(found), in, e.Count, placesOf(f, found))
		for _, m := range found[:min(3, len(found))] {
			start, _ := f.Bytes(m)
			line, _ := f.Pos(start)
			r.Candidates = append(r.Candidates, anchor.Candidate{Line: line, Text: e.Anchor, Similarity: 1})
		}
		return
	}
	all := f.Find(e.pattern, f.All())
	switch {
	case len(all) > len(found):
		r.fail(Moved, "%d matches in %s instead of %s, but the file has it %s", len(found), in, e.Count, placesOf(f, all))
	default:
		r.fail(Gone, "%d matches in %s instead of %s", len(found), in, e.Count)
	}
	r.Candidates = f.Nearest(e.pattern, region, 3)
	if len(r.Candidates) < 3 {
		for _, c := range f.Nearest(e.pattern, f.All(), 3) {
			if len(r.Candidates) < 3 && !hasLine(r.Candidates, c.Line) {
				r.Candidates = append(r.Candidates, c)
			}
		}
	}
}

func hasLine(cs []anchor.Candidate, line int) bool {
	for _, c := range cs {
		if c.Line == line {
			return true
		}
	}
	return false
}

// placesOf lists the lines of the first few matches.
func placesOf(f *anchor.File, found []anchor.Match) string {
	var lines []string
	last := 0
	for _, m := range found {
		start, _ := f.Bytes(m)
		line, _ := f.Pos(start)
		if line == last {
			continue
		}
		last = line
		if len(lines) == 4 {
			lines = append(lines, "…")
			break
		}
		lines = append(lines, strconv.Itoa(line))
	}
	return "at line " + strings.Join(lines, ", ")
}
