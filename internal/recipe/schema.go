package recipe

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"dot4fa/internal/page"
)

// WriteSchema prints the reference of all keys as text.
func WriteSchema(w io.Writer) error {
	rows := [][]string{{"KEY", "VALUE", "DEFAULT", "MEANING"}}
	for _, k := range Keys() {
		rows = append(rows, []string{k.Path, k.allowedText(), k.DefaultText(), k.Doc})
	}
	if err := page.Columns(w, rows); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n"+MergeRules)
	return err
}

// MergeRules says in words what extends does.
const MergeRules = `A recipe that extends another:
  a single value replaces the inherited one
  a list replaces the inherited list as a whole; nothing is appended
  cmake, env, kernel and upstream are merged key by key
  a null (~) under cmake or env takes the inherited entry away
  name and summary are not inherited
  upstream.commit and upstream.tag are one pin and are given together
The recipe extended is looked for beside the file first, then among those that
come with dot4fa. At most eight may lie under one another.
`

// DefaultText is the default as it would be written in a recipe, "-" for none.
func (k Key) DefaultText() string {
	switch v := k.Default.(type) {
	case nil:
		return "-"
	case []int:
		s := make([]string, len(v))
		for i, n := range v {
			s[i] = strconv.Itoa(n)
		}
		return "[" + strings.Join(s, ", ") + "]"
	case []string:
		return "[" + strings.Join(v, ", ") + "]"
	default:
		return fmt.Sprint(v)
	}
}

// JSONSchema returns a JSON Schema (2020-12) of a recipe file, for editors. It
// describes one file: what only holds after extends (a backend is set, sizes
// divide each other) is checked by Load.
func JSONSchema() ([]byte, error) {
	root := object("a dot4fa recipe")
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "dot4fa recipe"
	root["required"] = []string{"name"}
	top := root["properties"].(map[string]any)
	for _, k := range Keys() {
		props := top
		if group, _, ok := strings.Cut(k.Path, "."); ok {
			if top[group] == nil {
				top[group] = object(groupDoc[group])
			}
			props = top[group].(map[string]any)["properties"].(map[string]any)
		}
		props[k.Name()] = k.jsonSchema()
	}
	return json.MarshalIndent(root, "", "  ")
}

var groupDoc = map[string]string{
	"upstream": "which llama.cpp",
	"kernel":   "compile-time constants of the device code",
}

func object(doc string) map[string]any {
	return map[string]any{
		"type": "object", "description": doc,
		"additionalProperties": false, "properties": map[string]any{},
	}
}

func (k Key) jsonSchema() map[string]any {
	s := map[string]any{"description": k.Doc}
	if k.Default != nil {
		s["default"] = k.Default
	}
	switch k.Kind {
	case String:
		s["type"], s["minLength"] = "string", 1
		if re, ok := patterns[k.Path]; ok {
			s["pattern"] = re
		}
	case Bool:
		s["type"] = "boolean"
	case Enum:
		s["type"], s["enum"] = "string", k.Allowed
	case Int:
		s["type"] = "integer"
		if v := k.values(); v != nil {
			s["enum"] = v
		} else {
			s["minimum"], s["maximum"] = k.Min, k.Max
		}
	case Ints:
		s["type"], s["uniqueItems"], s["minItems"] = "array", true, 1
		s["items"] = map[string]any{"type": "integer", "enum": k.values()}
	case Enums:
		s["type"], s["uniqueItems"], s["minItems"] = "array", true, 1
		s["items"] = map[string]any{"type": "string", "enum": k.Allowed}
	case Strings:
		s["type"], s["uniqueItems"] = "array", true
		s["items"] = map[string]any{"type": []string{"string", "integer"}}
	case Entries:
		s["type"] = "object"
		s["additionalProperties"] = map[string]any{"type": []string{"string", "number", "boolean", "null"}}
	}
	return s
}

// values lists the numbers an Int or Ints key takes, nil when it has a range.
func (k Key) values() []int {
	var out []int
	for _, a := range k.Allowed {
		n, _ := strconv.Atoi(a)
		out = append(out, n)
	}
	if len(out) == 0 && k.Pow2 {
		for n := 1; n <= k.Max; n *= 2 {
			if n >= k.Min {
				out = append(out, n)
			}
		}
	}
	return out
}

var patterns = map[string]string{
	"name": reName.String(), "extends": reName.String(),
	"upstream.commit": reCommit.String(), "upstream.tag": reTag.String(),
}
