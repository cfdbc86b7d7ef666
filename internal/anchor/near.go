package anchor

import (
	"sort"
	"strings"
)

// Candidate is a place that resembles what was looked for.
type Candidate struct {
	Line       int     // 1-based
	Text       string  // the tokens found there, or the definition in scope syntax
	Similarity float64 // 0 to 1
}

// Nearest returns up to n places in region r that resemble p most, best first,
// at most one a line.
func (f *File) Nearest(p Pattern, r Region, n int) []Candidate {
	m := len(p.toks)
	if m == 0 || r.Last < r.First {
		return nil
	}
	// Approximate substring search: cost[k] is the least number of edits that
	// turns the first k tokens of p into tokens that end here.
	cost, begin := make([]float64, m+1), make([]int, m+1)
	for k := range cost {
		cost[k], begin[k] = float64(k), r.First
	}
	type pair struct {
		k    int
		text string
	}
	memo := map[pair]float64{}
	best := map[int]Candidate{}
	for i := max(r.First, 0); i <= r.Last; i++ {
		text := f.Text(i)
		diag, diagBegin := cost[0], i
		cost[0], begin[0] = 0, i+1
		for k := 1; k <= m; k++ {
			key := pair{k, text}
			sub, ok := memo[key]
			if !ok {
				sub = 1 - similar(p.toks[k-1], text)
				memo[key] = sub
			}
			c, from := diag+sub, diagBegin
			if d := cost[k] + 1; d < c {
				c, from = d, begin[k]
			}
			if d := cost[k-1] + 1; d < c {
				c, from = d, begin[k-1]
			}
			diag, diagBegin = cost[k], begin[k]
			cost[k], begin[k] = c, from
		}
		s := 1 - cost[m]/float64(m)
		if s < 0.4 || begin[m] > i {
			continue
		}
		start := f.toks[begin[m]]
		line, _ := f.Pos(start.Start)
		if c, ok := best[line]; !ok || s > c.Similarity {
			found := strings.Join(strings.Fields(string(f.src[start.Start:f.toks[i].End])), " ")
			best[line] = Candidate{line, found, s}
		}
	}
	return top(best, n)
}

// NearestScopes returns up to n definitions that resemble s most.
func (f *File) NearestScopes(s Scope, n int) []Candidate {
	best := map[int]Candidate{}
	for _, d := range f.defs {
		title := f.Title(d)
		sim := similar(s.text, title)
		if s.name != "" {
			sim = max(sim, similar(s.name, d.Name))
			if strings.HasSuffix(d.Name, "::"+s.name) {
				sim = max(sim, 0.95)
			}
			if (s.kind == "") != (d.Kind == "func" || d.Kind == "table") {
				sim *= 0.8
			}
		}
		line, _ := f.Pos(f.toks[d.Head].Start)
		if c, ok := best[line]; sim >= 0.4 && (!ok || sim > c.Similarity) {
			best[line] = Candidate{line, title, sim}
		}
	}
	return top(best, n)
}

func top(best map[int]Candidate, n int) []Candidate {
	all := make([]Candidate, 0, len(best))
	for _, c := range best {
		all = append(all, c)
	}
	sort.Slice(all, func(i, j int) bool {
		if all[i].Similarity != all[j].Similarity {
			return all[i].Similarity > all[j].Similarity
		}
		return all[i].Line < all[j].Line
	})
	return all[:min(n, len(all))]
}

// similar is the Dice coefficient of the letter pairs of a and b.
func similar(a, b string) float64 {
	if a == b {
		return 1
	}
	if len(a) < 2 || len(b) < 2 {
		return 0
	}
	pairs := map[string]int{}
	for i := 0; i+2 <= len(a); i++ {
		pairs[a[i:i+2]]++
	}
	shared := 0
	for i := 0; i+2 <= len(b); i++ {
		if pairs[b[i:i+2]] > 0 {
			pairs[b[i:i+2]]--
			shared++
		}
	}
	return 2 * float64(shared) / float64(len(a)+len(b)-2)
}
