package series

import (
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"

	"dot4fa/internal/anchor"

	"go.yaml.in/yaml/v3"
)

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
			return d.fault(n, "%s needs %q", e.Do, key).Hintf("patches/README.md describes the format")
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
	one := func(n *yaml.Node) error {
		var p Probe
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
			return d.fault(n, "probe needs has or lacks, and not both").Hintf("keep one of them")
		}
		p.pattern, err = d.anchor(at, p.File, p.Has+p.Lacks)
		e.Probes = append(e.Probes, p)
		return err
	}
	return func(n *yaml.Node) error {
		if n.Kind != yaml.SequenceNode {
			return one(n)
		}
		if len(n.Content) == 0 {
			return d.fault(n, "probe is an empty list").Hintf("leave the key out")
		}
		for _, c := range n.Content {
			if err := one(c); err != nil {
				return err
			}
		}
		return nil
	}
}
