package series

import (
	"maps"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"dot4fa/internal/anchor"
)

var integer = regexp.MustCompile(`^(0|[1-9][0-9']*)([uUlLzZ]*)$`)

// counterAt is the token of the integer a bump_counter match is about.
func counterAt(p anchor.Pattern, m anchor.Match) int {
	if h := p.HoleAt(); h >= 0 {
		return m.First + h
	}
	return m.Last + 1
}

// counters keeps the matches that have a decimal integer in their place.
func counters(f *anchor.File, p anchor.Pattern, found []anchor.Match) []anchor.Match {
	var kept []anchor.Match
	for _, m := range found {
		if i := counterAt(p, m); i < f.Len() && bumped(f.Text(i)) != "" {
			kept = append(kept, m)
		}
	}
	return kept
}

// bumped is the integer literal one greater than lit, with its suffix, or "".
func bumped(lit string) string {
	m := integer.FindStringSubmatch(lit)
	if m == nil {
		return ""
	}
	n, err := strconv.ParseUint(strings.ReplaceAll(m[1], "'", ""), 10, 62)
	if err != nil {
		return ""
	}
	return strconv.FormatUint(n+1, 10) + m[2]
}

// conflicts orders the places of each file and fails edits that claim one place.
func (v *survey) conflicts() {
	for _, name := range slices.Sorted(maps.Keys(v.places)) {
		ps := v.places[name]
		sort.SliceStable(ps, func(i, j int) bool {
			if ps[i].start != ps[j].start {
				return ps[i].start < ps[j].start
			}
			return ps[i].rank() < ps[j].rank()
		})
		end, owner := -1, (*place)(nil)
		for i, p := range ps {
			if p.start < end {
				v.claim(owner, p)
			}
			if i > 0 && p.start == ps[i-1].start && p.rank() == ps[i-1].rank() {
				v.claim(ps[i-1], p)
			}
			if p.end > end {
				end, owner = p.end, p
			}
		}
	}
}

func (v *survey) claim(a, b *place) {
	for i := range v.results {
		r := &v.results[i]
		if r.edit != b.edit {
			continue
		}
		if a.edit == b.edit {
			r.fail(Ambiguous, "the anchor matches twice on line %d", b.line)
		} else {
			r.fail(Conflict, "two edits claim one anchor: %s and %s, at line %d", a.edit.ID, b.edit.ID, max(b.line, 1))
		}
	}
}
