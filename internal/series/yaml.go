package series

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"

	"dot4fa/internal/anchor"
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
				return d.fault(n, "edits must be a list, not %s", kindName(n))
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
		return d.fault(n, "%s must be a mapping, not %s", what, kindName(n))
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		f, ok := fields[k.Value]
		if !ok {
			known := sortedKeys(fields)
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
	for _, k := range sortedKeys(fields) {
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
			return d.fault(n, "%s must be a commit, not %s", d.key, kindName(n))
		}
		v := n.Value
		if len(v) < 7 || len(v) > 64 || strings.Trim(v, "0123456789abcdef") != "" {
			return d.fault(n, "%q is not a commit", v).Hintf("write its full lower-case hash")
		}
		*to = v
		return nil
	}
}

func (d *decoder) edit(n *yaml.Node) (*Edit, error) {
	e := &Edit{Count: Count{1, 1}, Where: fmt.Sprintf("%s:%d:%d", d.name, n.Line, n.Column)}
	nodes := map[string]*yaml.Node{}
	keep := func(key string, set func(*yaml.Node) error) func(*yaml.Node) error {
		return func(n *yaml.Node) error {
			nodes[key] = n
			return set(n)
		}
	}
	err := d.mapping(n, "edit", map[string]field{
		"id":       {true, d.id(&e.ID)},
		"file":     {true, d.path(&e.File)},
		"scope":    {false, keep("scope", d.scope(e))},
		"anchor":   {false, keep("anchor", d.text(&e.Anchor))},
		"count":    {false, keep("count", d.count(&e.Count))},
		"do":       {true, d.technique(&e.Do)},
		"text":     {false, keep("text", d.block(e))},
		"template": {false, keep("template", d.path(&e.Template))},
		"why":      {true, d.text(&e.Why)},
		"probe":    {false, d.probe(e)},
		"since":    {false, d.commit(&e.Since)},
		"until":    {false, d.commit(&e.Until)},
	})
	if err != nil {
		return nil, err
	}
	return e, d.consistent(e, n, nodes)
}

// consistent checks what the keys of an edit demand of each other.
func (d *decoder) consistent(e *Edit, n *yaml.Node, nodes map[string]*yaml.Node) error {
	if nodes["text"] != nil && nodes["template"] != nil {
		return d.fault(nodes["template"], "edit %s has both text and template", e.ID).Hintf("keep one of them")
	}
	given := func(key string, want bool) error {
		switch {
		case want && nodes[key] == nil:
			return d.fault(n, "%s needs %q", e.Do, key)
		case !want && nodes[key] != nil:
			return d.fault(nodes[key], "%s takes no %q", e.Do, key).Hintf("remove the key")
		}
		return nil
	}
	if e.Template != "" {
		data, err := fs.ReadFile(d.fsys, "templates/"+e.Template)
		if err != nil {
			return d.fault(nodes["template"], "cannot read templates/%s: %w", e.Template, err).
				Hintf("template names a file under templates/")
		}
		e.Text, e.textAt = string(data), fmt.Sprintf("templates/%s", e.Template)
		nodes["text"] = nodes["template"]
	}
	if err := given("anchor", e.Do.wantsAnchor()); err != nil {
		return err
	}
	if err := given("text", e.Do.wantsText()); err != nil {
		return err
	}
	if !e.Do.wantsAnchor() {
		if err := given("count", false); err != nil {
			return err
		}
	}
	switch e.Do {
	case ScopeOpen, ScopeEnd:
		return given("scope", true)
	case Append, NewFile:
		return given("scope", false)
	}
	var err error
	e.pattern, err = d.anchor(nodes["anchor"], e.File, e.Anchor)
	return err
}

var idForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

func (d *decoder) id(to *string) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		if err := d.text(to)(n); err != nil {
			return err
		}
		if !idForm.MatchString(*to) {
			return d.fault(n, "%q is not an id", *to).Hintf("use letters, digits, dots, dashes and underscores")
		}
		return nil
	}
}

func (d *decoder) scope(e *Edit) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		nodes := []*yaml.Node{n}
		if n.Kind == yaml.SequenceNode {
			nodes = n.Content
		}
		for _, c := range nodes {
			var text string
			if err := d.text(&text)(c); err != nil {
				return err
			}
			s, err := anchor.ParseScope(text)
			if err != nil {
				return d.fault(c, "%s", err).
					Hintf("a scope is enum X, struct X, class X, a function A::b or A::b(T x, a table NAME, or switch (expr)")
			}
			e.Scope, e.scopes = append(e.Scope, text), append(e.scopes, s)
		}
		if len(e.scopes) == 0 {
			return d.fault(n, "scope is an empty list").Hintf("leave the key out for the whole file")
		}
		return nil
	}
}

// anchor parses an anchor as text of the file it is looked for in.
func (d *decoder) anchor(n *yaml.Node, file, text string) (anchor.Pattern, error) {
	p, err := anchor.ParsePatternAs(file, text)
	if err != nil {
		return p, d.fault(n, "%s", err).Hintf("comments are not seen by anchors")
	}
	return p, nil
}

func (d *decoder) technique(to *Technique) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		var v string
		if err := d.text(&v)(n); err != nil {
			return err
		}
		for _, t := range techniques {
			if t == v {
				*to = Technique(v)
				return nil
			}
		}
		return d.fault(n, "unknown technique %q", v).
			Hintf("%sallowed: %s", didYouMean(v, techniques), strings.Join(techniques, ", "))
	}
}

// count reads N, "N..", "N..M".
func (d *decoder) count(to *Count) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		lo, hi, ranged := strings.Cut(n.Value, "..")
		a, err := strconv.Atoi(lo)
		b := a
		if ranged && hi == "" {
			b = -1
		} else if ranged && err == nil {
			b, err = strconv.Atoi(hi)
		}
		if n.Kind != yaml.ScalarNode || err != nil || a < 0 || b == 0 || (b >= 0 && b < a) {
			return d.fault(n, "%q is not a count", n.Value).Hintf("write a number from 1, or a range: 0..1, 1..")
		}
		*to = Count{a, b}
		return nil
	}
}

func (d *decoder) probe(e *Edit) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		p := &Probe{}
		var at *yaml.Node
		keep := func(to *string) func(*yaml.Node) error {
			return func(n *yaml.Node) error {
				at = n
				return d.text(to)(n)
			}
		}
		err := d.mapping(n, "probe", map[string]field{
			"file":  {true, d.path(&p.File)},
			"has":   {false, keep(&p.Has)},
			"lacks": {false, keep(&p.Lacks)},
		})
		if err != nil {
			return err
		}
		if (p.Has == "") == (p.Lacks == "") {
			return d.fault(n, "probe needs has or lacks, and not both")
		}
		e.Probe = p
		p.pattern, err = d.anchor(at, p.File, p.Has+p.Lacks)
		return err
	}
}
