package cli

import (
	"encoding/json"
	"errors"
	"unicode"
	"unicode/utf8"

	"dot4fa/internal/page"
)

// printJSON prints a result as indented JSON.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.Out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// table prints rows in columns. The first row is the heading.
func (a *app) table(rows [][]string) error { return page.Columns(a.Out, rows) }

func lowerFirst(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToLower(r)) + s[n:]
}

func asErr[T error](err error, target *T) bool { return errors.As(err, target) }
