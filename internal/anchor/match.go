package anchor

import "fmt"

// Region is a run of tokens, both ends inclusive. An empty one has Last < First.
type Region struct{ First, Last int }

// All is the region of the whole file.
func (f *File) All() Region { return Region{0, len(f.toks) - 1} }

// Body is what lies between the braces of d.
func (f *File) Body(d Def) Region { return Region{d.Open + 1, d.Close - 1} }

// Hole is the token of a Pattern that stands for an integer literal.
const Hole = "$N"

// Pattern is a sequence of tokens to look for.
type Pattern struct {
	text string
	toks []string
}

// String returns the pattern as it was written.
func (p Pattern) String() string { return p.text }

// Len returns the number of tokens.
func (p Pattern) Len() int { return len(p.toks) }

// HoleAt returns the position of Hole among the tokens, or -1.
func (p Pattern) HoleAt() int {
	for i, t := range p.toks {
		if t == Hole {
			return i
		}
	}
	return -1
}

// ParsePattern splits an anchor for C++ into tokens. Blanks and comments do not
// count.
func ParsePattern(text string) (Pattern, error) { return ParsePatternAs("", text) }

// ParsePatternAs is ParsePattern for a file of the given name; see ParseAs.
func ParsePatternAs(name, text string) (Pattern, error) {
	p := Pattern{text: text}
	f := ParseAs(name, []byte(text))
	for i := range f.toks {
		p.toks = append(p.toks, f.Text(i))
	}
	if len(p.toks) == 0 {
		return p, fmt.Errorf("anchor %q has no tokens", text)
	}
	return p, nil
}

// Match is where a Pattern was found: tokens First to Last, both inclusive.
type Match struct{ First, Last int }

// Find returns the matches of p in region r that do not overlap, in order. A
// match lies in one directive or in none.
func (f *File) Find(p Pattern, r Region) []Match {
	var found []Match
	n := len(p.toks)
	if n == 0 {
		return nil // an edit without an anchor
	}
	for i := max(r.First, 0); i+n-1 <= r.Last; i++ {
		if f.matchAt(p, i) {
			found = append(found, Match{i, i + n - 1})
			i += n - 1
		}
	}
	return found
}

func (f *File) matchAt(p Pattern, i int) bool {
	for k, want := range p.toks {
		t := f.toks[i+k]
		if t.Dir != f.toks[i].Dir {
			return false
		}
		if want == Hole && t.Kind == Number {
			continue
		}
		if f.Text(i+k) != want {
			return false
		}
	}
	return true
}

// Bytes returns the byte range of a match.
func (f *File) Bytes(m Match) (start, end int) {
	return f.toks[m.First].Start, f.toks[m.Last].End
}
