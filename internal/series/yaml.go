package series

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"dot4fa/internal/fault"

	"go.yaml.in/yaml/v3"
)

// decoder reads one file strictly: every fault has a line and a column, and an
// unknown name gets the nearest known one.
type decoder struct {
	fsys fs.FS
	name string
	key  string // being read
}

func (d *decoder) fault(n *yaml.Node, format string, args ...any) *fault.Error {
	return fault.New(fault.Usage, format, args...).At("%s:%d:%d", d.name, n.Line, n.Column)
}

func decodeMember(fsys fs.FS, name string, data []byte) (*Member, error) {
	d := &decoder{fsys: fsys, name: name}
	root, err := d.document(data)
	if err != nil {
		return nil, err
	}
	m := &Member{File: path.Base(name)}
	err = d.mapping(root, "member", map[string]field{
		"title":       {true, d.text(&m.Title)},
		"why":         {true, d.text(&m.Why)},
		"remove_when": {true, d.text(&m.RemoveWhen)},
		"edits": {true, func(n *yaml.Node) error {
			if n.Kind != yaml.SequenceNode {
				return d.fault(n, "edits must be a list, not %s", kindName(n)).Hintf("write each edit as `- id: NAME` and its keys below")
			}
			for _, c := range n.Content {
				e, err := d.edit(c)
				if err != nil {
					return err
				}
				m.Edits = append(m.Edits, e)
			}
			return nil
		}},
	})
	return m, err
}

// document parses the only YAML document of a file.
func (d *decoder) document(data []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) || err == nil && len(doc.Content) == 0 {
		return nil, fault.New(fault.Usage, "the file is empty").At("%s:1:1", d.name).
			Hintf("a member of the series needs title, why, remove_when and edits")
	}
	if err == nil {
		if err = dec.Decode(&more); errors.Is(err, io.EOF) {
			return doc.Content[0], nil
		}
		if err == nil {
			return nil, d.fault(&more, "the file holds a second document").Hintf("one member is one file")
		}
	}
	where, what := yamlError(err)
	return nil, fault.New(fault.Usage, "%s", what).At("%s:%s", d.name, where).
		Hintf("patches/README.md describes the format")
}

type field struct {
	required bool
	set      func(*yaml.Node) error
}

// mapping hands each value of n to its field, in the order of the file.
func (d *decoder) mapping(n *yaml.Node, what string, fields map[string]field) error {
	if n.Kind == yaml.AliasNode {
		return d.fault(n, "aliases are not used in the series").Hintf("write the value out")
	}
	if n.Kind != yaml.MappingNode {
		return d.fault(n, "%s must be a mapping, not %s", what, kindName(n)).Hintf("write its keys as `name: value`, one a line")
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		f, ok := fields[k.Value]
		if !ok {
			known := slices.Sorted(maps.Keys(fields))
			return d.fault(k, "unknown key %q in %s", k.Value, what).
				Hintf("%sallowed: %s", didYouMean(k.Value, known), strings.Join(known, ", "))
		}
		if seen[k.Value] {
			return d.fault(k, "key %q is given twice", k.Value).Hintf("keep one of them")
		}
		seen[k.Value] = true
		if v.Kind == yaml.AliasNode {
			return d.fault(v, "aliases are not used in the series").Hintf("write the value out")
		}
		d.key = k.Value
		if err := f.set(v); err != nil {
			return err
		}
	}
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		if fields[k].required && !seen[k] {
			return d.fault(n, "%s needs %q", what, k).Hintf("patches/README.md describes the format")
		}
	}
	return nil
}

func (d *decoder) text(to *string) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		if n.Kind != yaml.ScalarNode || n.Tag != "!!str" {
			return d.fault(n, "%s must be text, not %s", d.key, kindName(n)).Hintf("put it in quotes if it is meant as text")
		}
		if strings.TrimSpace(n.Value) == "" {
			return d.fault(n, "%s is empty", d.key).Hintf("write it, or remove the key if it is optional")
		}
		*to = n.Value
		return nil
	}
}

// block reads the text of an edit and notes where its first line stands.
func (d *decoder) block(e *Edit) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		e.textAt, e.textLine = d.name, n.Line
		if n.Style == yaml.LiteralStyle || n.Style == yaml.FoldedStyle {
			e.textLine++
		}
		return d.text(&e.Text)(n)
	}
}

func (d *decoder) path(to *string) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		if err := d.text(to)(n); err != nil {
			return err
		}
		if err := cleanPath(*to); err != nil {
			return d.fault(n, "%s", err).Hintf("write it relative to the root of the upstream tree")
		}
		return nil
	}
}

func (d *decoder) commit(to *string) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		if n.Kind != yaml.ScalarNode {
			return d.fault(n, "%s must be a commit, not %s", d.key, kindName(n)).Hintf("write its full lower-case hash")
		}
		v := n.Value
		if len(v) < 7 || len(v) > 64 || strings.Trim(v, "0123456789abcdef") != "" {
			return d.fault(n, "%q is not a commit", v).Hintf("write its full lower-case hash")
		}
		*to = v
		return nil
	}
}
