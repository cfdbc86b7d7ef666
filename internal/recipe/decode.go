package recipe

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"dot4fa/internal/fault"
	"dot4fa/internal/nearest"
)

// maxSize is the size from which a file cannot be a recipe.
const maxSize = 1 << 20

// item is one value of one recipe file, checked on its own.
type item struct {
	key   *Key
	value any // string, bool, int, []int, []string; nil takes an inherited entry away
	pos   Pos
}

// layer is what one file says: values by path; entries of a mapping are paths
// of their own ("cmake.GGML_HIP").
type layer struct {
	file  string
	items map[string]item
}

func bad(pos Pos, format string, args ...any) *fault.Error {
	return fault.New(fault.Usage, format, args...).At("%s", pos)
}

// decode reads one recipe file strictly. file is its name in messages.
func decode(file string, data []byte) (*layer, error) {
	if len(data) > maxSize {
		return nil, bad(Pos{File: file}, "too large for a recipe (%d bytes)", len(data)).
			Hintf("give a recipe file of at most %d bytes", maxSize)
	}
	root, err := parse(file, data)
	if err != nil {
		return nil, err
	}
	l := &layer{file: file, items: map[string]item{}}
	return l, l.mapping("", root)
}

// parse returns the one mapping a recipe file consists of.
func parse(file string, data []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, bad(Pos{file, 1, 1}, "the file is empty").
				Hintf("a recipe has at least a name and extends or backend; see recipe schema")
		}
		return nil, syntaxError(file, data, err)
	}
	if err := dec.Decode(&second); err == nil {
		return nil, bad(Pos{file, second.Line, max(second.Column, 1)}, "a second document").Hintf("a recipe is one document: remove what follows ---")
	} else if !errors.Is(err, io.EOF) {
		return nil, syntaxError(file, data, err)
	}
	root := &doc
	if doc.Kind == yaml.DocumentNode {
		root = doc.Content[0]
	}
	if root.Kind != yaml.MappingNode {
		return nil, bad(Pos{file, max(root.Line, 1), max(root.Column, 1)}, "want a mapping of keys, have %s", nodeKind(root)).
			Hintf("write one key a line, as in: backend: cpu")
	}
	return root, nil
}

var reYAMLLine = regexp.MustCompile(`line (\d+): `)

// syntaxError places the parser's message, which has a line at most.
func syntaxError(file string, data []byte, err error) error {
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	line, col := 1, 1
	if m := reYAMLLine.FindStringSubmatch(msg); m != nil {
		line, _ = strconv.Atoi(m[1])
		msg = strings.Replace(msg, m[0], "", 1)
		if lines := strings.Split(string(data), "\n"); line >= 1 && line <= len(lines) {
			text := lines[line-1]
			col = len(text) - len(strings.TrimLeft(text, " \t")) + 1
		}
	}
	return bad(Pos{file, line, col}, "not YAML: %s", msg).Hintf("check the indentation and quotes on this line and the one before")
}

func nodeKind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	switch n.ShortTag() {
	case "!!null":
		return "nothing"
	case "!!bool":
		return "the boolean " + n.Value
	case "!!int":
		return "the number " + n.Value
	case "!!float":
		return "the fraction " + n.Value
	}
	return strconv.Quote(n.Value)
}

// mapping checks the keys of one level; prefix is "" or "upstream." and the like.
func (l *layer) mapping(prefix string, n *yaml.Node) error {
	seen := map[string]Pos{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		pos := Pos{l.file, k.Line, k.Column}
		if k.Kind != yaml.ScalarNode {
			return bad(pos, "want a key, have %s", nodeKind(k)).Hintf("allowed here: %s", strings.Join(names(prefix), ", "))
		}
		if k.Value == "<<" && k.Style == 0 {
			return bad(pos, "merge keys are not supported").Hintf("put what is shared into a recipe of its own and name it under extends")
		}
		if first, dup := seen[k.Value]; dup {
			return bad(pos, "key %s is given twice", k.Value).Hintf("it was given at line %d already: keep one of the two", first.Line)
		}
		seen[k.Value] = pos
		if v.Kind == yaml.AliasNode || v.Anchor != "" {
			return bad(Pos{l.file, v.Line, v.Column}, "anchors and aliases are not supported").
				Hintf("write the value out, or put it into a recipe of its own and name it under extends")
		}
		path := prefix + k.Value
		if isGroup(path) {
			if v.Kind != yaml.MappingNode {
				return l.wrongType(path, "a mapping of "+strings.Join(names(path+"."), ", "), v)
			}
			if err := l.mapping(path+".", v); err != nil {
				return err
			}
			continue
		}
		key := lookup(path)
		if key == nil {
			allowed := names(prefix)
			e := bad(pos, "unknown key %s", k.Value)
			if near := nearest.Hint(k.Value, allowed); near != "" {
				return e.Hintf("%s? allowed here: %s", near, strings.Join(allowed, ", "))
			}
			return e.Hintf("allowed here: %s", strings.Join(allowed, ", "))
		}
		if err := l.value(key, v); err != nil {
			return err
		}
	}
	return nil
}

// value checks one value against its key and stores it.
func (l *layer) value(key *Key, v *yaml.Node) error {
	pos := Pos{l.file, v.Line, v.Column}
	if key.Kind == Entries {
		return l.entries(key, v)
	}
	if v.Kind == yaml.ScalarNode && v.ShortTag() == "!!null" {
		return l.wrongType(key.Path, key.allowedText(), v)
	}
	var value any
	switch key.Kind {
	case String, Enum:
		if v.Kind != yaml.ScalarNode || v.ShortTag() != "!!str" {
			return l.wrongType(key.Path, key.allowedText(), v)
		}
		if err := key.checkOne(pos, v.Value); err != nil {
			return err
		}
		value = v.Value
	case Bool:
		if v.Kind != yaml.ScalarNode || v.ShortTag() != "!!bool" {
			return l.wrongType(key.Path, "true or false", v)
		}
		value = strings.EqualFold(v.Value, "true")
	case Int:
		n, ok := number(v)
		if !ok {
			return l.wrongType(key.Path, key.allowedText(), v)
		}
		if err := key.checkInt(pos, n); err != nil {
			return err
		}
		value = n
	case Ints, Enums, Strings:
		list, err := l.list(key, v)
		if err != nil {
			return err
		}
		value = list
	}
	l.items[key.Path] = item{key, value, pos}
	return nil
}

// list checks a list's elements: no element twice, none empty.
func (l *layer) list(key *Key, v *yaml.Node) (any, error) {
	if v.Kind != yaml.SequenceNode {
		return nil, l.wrongType(key.Path, key.allowedText(), v)
	}
	if len(v.Content) == 0 && key.Kind != Strings {
		return nil, bad(Pos{l.file, v.Line, v.Column}, "%s must not be empty", key.Path).Hintf("allowed: %s", key.allowedText())
	}
	ints, strs := []int{}, []string{}
	seen := map[string]int{}
	for _, e := range v.Content {
		pos := Pos{l.file, e.Line, e.Column}
		if e.Anchor != "" || e.Kind != yaml.ScalarNode || e.ShortTag() == "!!null" {
			return nil, l.wrongType(key.Path, key.allowedText(), e)
		}
		if key.Kind == Ints {
			n, ok := number(e)
			if !ok {
				return nil, l.wrongType(key.Path, key.allowedText(), e)
			}
			if err := key.checkInt(pos, n); err != nil {
				return nil, err
			}
			ints = append(ints, n)
		} else {
			if key.Kind == Enums && e.ShortTag() != "!!str" {
				return nil, l.wrongType(key.Path, key.allowedText(), e)
			}
			if err := key.checkOne(pos, e.Value); err != nil {
				return nil, err
			}
			strs = append(strs, e.Value)
		}
		if line, dup := seen[e.Value]; dup {
			return nil, bad(pos, "%s has %s twice", key.Path, e.Value).Hintf("it is at line %d already: keep one of the two", line)
		}
		seen[e.Value] = e.Line
	}
	if key.Kind == Ints {
		return ints, nil
	}
	return strs, nil
}

// entries checks a free mapping (cmake, env). Numbers and booleans are written
// as CMake and a shell would: 4, ON, OFF.
func (l *layer) entries(key *Key, v *yaml.Node) error {
	if v.Kind != yaml.MappingNode {
		return l.wrongType(key.Path, "a mapping of names to values", v)
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(v.Content); i += 2 {
		k, e := v.Content[i], v.Content[i+1]
		pos, epos := Pos{l.file, k.Line, k.Column}, Pos{l.file, e.Line, e.Column}
		if k.Kind != yaml.ScalarNode || k.Value == "<<" && k.Style == 0 {
			return bad(pos, "want a name under %s, have %s", key.Path, nodeKind(k)).Hintf("write NAME: value")
		}
		if line, dup := seen[k.Value]; dup {
			return bad(pos, "%s is given twice under %s", k.Value, key.Path).Hintf("it was given at line %d already: keep one of the two", line)
		}
		seen[k.Value] = k.Line
		if e.Kind != yaml.ScalarNode || e.Anchor != "" {
			return l.wrongType(key.Path+"."+k.Value, "a string, a number or a boolean", e)
		}
		var value any = e.Value
		switch e.ShortTag() {
		case "!!null":
			value = nil
		case "!!bool":
			value = map[bool]string{true: "ON", false: "OFF"}[strings.EqualFold(e.Value, "true")]
			if key.Path == "env" {
				value = map[any]string{"ON": "1", "OFF": "0"}[value]
			}
		}
		text, _ := value.(string)
		if why := key.entry(k.Value, text); why != "" && value != nil {
			return bad(pos, "%s %s cannot be set", key.Path, k.Value).Hintf("%s", why)
		}
		l.items[key.Path+"."+k.Value] = item{key, value, epos}
	}
	return nil
}

// number accepts decimal whole numbers only: no 0x, no 0o, no 1_000, no 1e3.
func number(n *yaml.Node) (int, bool) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" {
		return 0, false
	}
	v, err := strconv.Atoi(n.Value)
	return v, err == nil && strconv.Itoa(v) == n.Value
}

func (l *layer) wrongType(path, want string, v *yaml.Node) error {
	return bad(Pos{l.file, v.Line, v.Column}, "%s: want %s, have %s", path, want, nodeKind(v)).
		Hintf("see %s in recipe schema", path)
}
