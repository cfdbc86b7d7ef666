package series

import (
	"regexp"
	"sort"
	"strings"

	"go.yaml.in/yaml/v3"
)

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// didYouMean is a phrase naming the known word nearest to word, or "".
func didYouMean(word string, known []string) string {
	best, least := "", max(2, len(word)/3)+1
	for _, k := range known {
		if n := distance(strings.ToLower(word), k); n < least {
			best, least = k, n
		}
	}
	if best == "" {
		return ""
	}
	return "did you mean " + best + "? "
}

// distance is the Levenshtein distance in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diag := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			c := diag
			if a[i-1] != b[j-1] {
				c = min(diag, row[j], row[j-1]) + 1
			}
			diag, row[j] = row[j], c
		}
	}
	return row[len(b)]
}

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.SequenceNode:
		return "a list"
	case yaml.MappingNode:
		return "a mapping"
	case yaml.AliasNode:
		return "an alias"
	}
	switch n.Tag {
	case "!!int", "!!float":
		return "the number " + n.Value
	case "!!bool":
		return "the truth value " + n.Value
	case "!!null":
		return "nothing"
	case "!!str":
		return "text"
	}
	return n.Tag
}

var yamlLine = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?`)

// yamlError splits a syntax error of the YAML package into line:col and text.
func yamlError(err error) (where, what string) {
	text := err.Error()
	m := yamlLine.FindStringSubmatch(text)
	where = "1:1"
	if m[1] != "" {
		where = m[1] + ":1"
	}
	return where, strings.TrimPrefix(text, m[0])
}
