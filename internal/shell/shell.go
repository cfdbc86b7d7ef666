// Package shell describes a command once, to be run and to be printed.
package shell

import (
	"strings"
)

// Command is a program with its arguments.
type Command struct {
	Env  []string // NAME=value, on top of the environment; shown when printed
	Bare bool     // Env is all of the environment
	Dir  string   // directory to run in; empty means the current one
	Path string
	Args []string
}

// String returns the command as a POSIX shell takes it.
func (c Command) String() string {
	var words []string
	if c.Dir != "" {
		words = append(words, "cd", Quote(c.Dir), "&&")
	}
	if c.Bare {
		words = append(words, "env", "-i")
	}
	for _, e := range c.Env {
		name, value, _ := strings.Cut(e, "=")
		words = append(words, name+"="+Quote(value))
	}
	words = append(words, Quote(c.Path))
	for _, a := range c.Args {
		words = append(words, Quote(a))
	}
	return strings.Join(words, " ")
}

// Quote returns s as one word of a POSIX shell.
func Quote(s string) string {
	if s != "" && strings.IndexFunc(s, special) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// special reports whether the shell may give c a meaning. Letters beyond ASCII
// have none.
func special(c rune) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		return false
	case c > 0x7f:
		return c == 0xa0 || c == 0x2028 || c == 0x2029 || c == 0xfffd
	}
	return !strings.ContainsRune("-_./=:,+@%", c)
}
