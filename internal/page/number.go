package page

import (
	"fmt"
	"strconv"
)

// Thousands writes a whole number that is not negative with its digits in groups of three: 131,072.
func Thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// GiB writes a number of bytes: 1.5 GiB.
func GiB(bytes int64) string { return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30)) }

// Plural writes a count of things whose plural ends in s: 1 edit, 2 edits.
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
