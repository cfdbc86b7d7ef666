package toolchain

import (
	"regexp"
	"strconv"
	"strings"
)

// Version is a dotted version number as a program or package writes it.
//
// ROCm's does not count in any one way: 7.2.4 is a release of 2026, 7.9 to 7.13
// were previews beside 7.0 to 7.2, and 7.14 was followed by 10.0. The numbers
// are compared one by one and nothing is made of the distance between them.
// HIP's own version shares the first two numbers with its ROCm; its third is a
// change counter (7.2.53211).
type Version string

var reVersion = regexp.MustCompile(`\d+(\.\d+)+`)

// ParseVersion returns the first dotted number in text, "" when there is none.
func ParseVersion(text string) Version { return Version(reVersion.FindString(text)) }

var reTrailing = regexp.MustCompile(`\d+(\.\d+)*$`)

// trailingVersion is the version at the end of a name: of rocm-7.1.1, core-10.0,
// llvm-21 or 15.
func trailingVersion(name string) Version { return Version(reTrailing.FindString(name)) }

// Numbers returns the parts of the version.
func (v Version) Numbers() []int {
	var out []int
	for _, part := range strings.Split(string(v), ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			break
		}
		out = append(out, n)
	}
	return out
}

// Compare orders versions by their numbers; a missing number counts as 0. The
// result is negative, 0 or positive, as in cmp.Compare. An unknown version ("")
// comes before all others.
func (v Version) Compare(w Version) int {
	a, b := v.Numbers(), w.Numbers()
	if len(a) == 0 || len(b) == 0 {
		return len(a) - len(b)
	}
	for i := 0; i < len(a) || i < len(b); i++ {
		var x, y int
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			return x - y
		}
	}
	return 0
}

// sameSeries reports whether the first two numbers are the same.
func (v Version) sameSeries(w Version) bool {
	a, b := v.Numbers(), w.Numbers()
	return len(a) > 1 && len(b) > 1 && a[0] == b[0] && a[1] == b[1]
}

// Less reports whether v comes before w.
func (v Version) Less(w Version) bool { return v.Compare(w) < 0 }
