// Package nearest finds the known name that a mistyped one probably meant.
package nearest

import "strings"

// Name returns the candidate closest to word, or "" when none is close enough
// to be worth suggesting. Case and the difference between '-' and '_' cost
// nothing; of equally close candidates the first wins.
func Name(word string, candidates []string) string {
	w := fold(word)
	best, bestDist := "", len(w)/3+2
	for _, c := range candidates {
		f := fold(c)
		d := distance(w, f)
		if d > 1 && len(w) >= 2 && (strings.HasPrefix(f, w) || strings.HasPrefix(w, f) && len(f) >= 3) {
			d = 1
		}
		if d < bestDist {
			best, bestDist = c, d
		}
	}
	return best
}

// Hint renders Name as the end of a hint: "did you mean X", or "" when
// nothing is close.
func Hint(word string, candidates []string) string {
	if n := Name(word, candidates); n != "" {
		return "did you mean " + n
	}
	return ""
}

func fold(s string) string {
	return strings.ReplaceAll(strings.ToLower(s), "-", "_")
}

// distance is the optimal string alignment distance: insertions, deletions,
// substitutions and swaps of neighbours, each at cost 1.
func distance(a, b string) int {
	ra, rb := []rune(a), []rune(b)
	prev2 := make([]int, len(rb)+1)
	prev := make([]int, len(rb)+1)
	cur := make([]int, len(rb)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(ra); i++ {
		cur[0] = i
		for j := 1; j <= len(rb); j++ {
			cost := 1
			if ra[i-1] == rb[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && ra[i-1] == rb[j-2] && ra[i-2] == rb[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(rb)]
}
