// Package exclude decides which paths of upstream's tree are left out, by
// patterns that mean what they mean in a .gitignore file:
//
//	docs/            a directory of this name at any depth, and all below it
//	/docs/           the same at the top only
//	*.gguf           a file or directory of this name at any depth
//	models/*.gguf    a slash before the end ties a pattern to the top
//	**/test/a        ** is any number of directories, none included
//	a/**             everything below a
//	a/**/b           a/b, a/x/b, a/x/y/b
//	?  [a-z]  [!a]   one character, never a slash
//	!models/a.gguf   takes an earlier exclusion back, but not below a directory
//	                 that is itself excluded
//	\!x  \#x         the character itself; "a\ " keeps a trailing space
//
// The last pattern that matches decides. Paths have forward slashes; case
// matters.
package exclude

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// List is a compiled list of patterns. The nil List excludes nothing.
type List struct{ rules []rule }

type rule struct {
	re      *regexp.Regexp
	keep    bool // "!": takes an exclusion back
	dirOnly bool
}

// Parse compiles patterns. Empty ones and comments (#) are skipped.
func Parse(patterns []string) (*List, error) {
	l := &List{}
	for _, p := range patterns {
		r, ok, err := compile(p)
		if err != nil {
			return nil, fmt.Errorf("exclude pattern %q: %w", p, err)
		}
		if ok {
			l.rules = append(l.rules, r)
		}
	}
	return l, nil
}

// Match reports whether a path is excluded, itself or through a directory
// above it. path has forward slashes and no leading one.
func (l *List) Match(path string, isDir bool) bool {
	if l == nil {
		return false
	}
	for i := range len(path) {
		if path[i] == '/' && l.entry(path[:i], true) {
			return true
		}
	}
	return l.entry(path, isDir)
}

// Entry is Match for a caller that walks down and has already left out
// excluded directories: it looks at the path itself only.
func (l *List) Entry(path string, isDir bool) bool {
	return l != nil && l.entry(path, isDir)
}

func (l *List) entry(path string, isDir bool) bool {
	for i := len(l.rules) - 1; i >= 0; i-- {
		r := l.rules[i]
		if (!r.dirOnly || isDir) && r.re.MatchString(path) {
			return !r.keep
		}
	}
	return false
}

func compile(p string) (r rule, ok bool, err error) {
	p = trimSpace(p)
	if p == "" || strings.HasPrefix(p, "#") {
		return r, false, nil
	}
	if rest, neg := strings.CutPrefix(p, "!"); neg {
		r.keep, p = true, rest
	}
	if rest, dir := strings.CutSuffix(p, "/"); dir {
		r.dirOnly, p = true, rest
	}
	anchored := strings.Contains(p, "/")
	p = strings.TrimPrefix(p, "/")
	if p == "" {
		return r, false, nil // "/" matches nothing
	}
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	if !anchored {
		b.WriteString(`(?:.*/)?`)
	}
	if err := translate(&b, p); err != nil {
		return r, false, err
	}
	b.WriteString(`\z`)
	r.re, err = regexp.Compile(b.String())
	return r, err == nil, err
}

// translate writes a pattern as a regular expression.
func translate(b *strings.Builder, p string) error {
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '*':
			j := i
			for j < len(p) && p[j] == '*' {
				j++
			}
			// "**" is special only between slashes or the ends.
			start, end := i == 0 || p[i-1] == '/', j == len(p) || p[j] == '/'
			switch {
			case j-i != 2 || !start || !end:
				b.WriteString(`[^/]*`)
			case j == len(p) && i == 0:
				b.WriteString(`.*`)
			case j == len(p):
				b.WriteString(`.+`)
			default:
				b.WriteString(`(?:.*/)?`)
				j++ // the slash is part of it
			}
			i = j - 1
		case '?':
			b.WriteString(`[^/]`)
		case '[':
			n, err := class(b, p[i:])
			if err != nil {
				return err
			}
			i += n - 1
		case '\\':
			if i++; i == len(p) {
				return fmt.Errorf("ends in a backslash")
			}
			_, n := utf8.DecodeRuneInString(p[i:])
			b.WriteString(regexp.QuoteMeta(p[i : i+n]))
			i += n - 1
		default:
			_, n := utf8.DecodeRuneInString(p[i:])
			b.WriteString(regexp.QuoteMeta(p[i : i+n]))
			i += n - 1
		}
	}
	return nil
}

// class translates a bracket expression at the start of p and returns how long
// it is.
func class(b *strings.Builder, p string) (int, error) {
	i := 1
	neg := i < len(p) && (p[i] == '!' || p[i] == '^')
	if neg {
		i++
	}
	var set strings.Builder
	for first := true; ; first = false {
		if i >= len(p) {
			return 0, fmt.Errorf("[ without ]")
		}
		if p[i] == ']' && !first {
			i++
			break
		}
		if strings.HasPrefix(p[i:], "[:") {
			end := strings.Index(p[i:], ":]")
			if end < 0 {
				return 0, fmt.Errorf("[: without :]")
			}
			set.WriteString(p[i : i+end+2])
			i += end + 2
			continue
		}
		lo, n, err := classChar(p[i:])
		if err != nil {
			return 0, err
		}
		i += n
		hi := lo
		if i+1 < len(p) && p[i] == '-' && p[i+1] != ']' {
			if hi, n, err = classChar(p[i+1:]); err != nil {
				return 0, err
			}
			i += 1 + n
		}
		if hi < lo {
			continue // an empty range matches nothing, as in git
		}
		fmt.Fprintf(&set, `\x{%x}-\x{%x}`, lo, hi)
	}
	switch {
	case set.Len() == 0 && !neg:
		b.WriteString(`[^\x{0}-\x{10FFFF}]`)
	case neg:
		fmt.Fprintf(b, `[^/%s]`, set.String())
	default:
		// A class never matches a slash.
		fmt.Fprintf(b, `[%s]`, set.String())
	}
	return i, nil
}

func classChar(p string) (rune, int, error) {
	n := 0
	if p[0] == '\\' {
		if n++; len(p) == 1 {
			return 0, 0, fmt.Errorf("[ without ]")
		}
	}
	if p[n] == '/' {
		return 0, 0, fmt.Errorf("/ inside [ ]")
	}
	for _, r := range p[n:] {
		return r, n + len(string(r)), nil
	}
	return 0, 0, fmt.Errorf("[ without ]")
}

// trimSpace removes trailing spaces that are not escaped.
func trimSpace(p string) string {
	for strings.HasSuffix(p, " ") {
		cut := strings.TrimSuffix(p, " ")
		if (len(cut)-len(strings.TrimRight(cut, `\`)))%2 == 1 {
			break
		}
		p = cut
	}
	return p
}
