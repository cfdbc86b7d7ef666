package series

import (
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"dot4fa/internal/nearest"
)

// didYouMean is nearest.Hint as the beginning of a hint.
func didYouMean(word string, known []string) string {
	if near := nearest.Hint(word, known); near != "" {
		return near + "? "
	}
	return ""
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
