package render

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"

	"dot4fa/internal/fault"
	"dot4fa/internal/nearest"
	"dot4fa/internal/recipe"
)

const manifestFile = "templates/manifest.yaml"

// entry is one line of the manifest: a template and where it goes.
type entry struct {
	From, To string
	For      []recipe.Backend // empty: all of them
	where    string
}

func (e entry) covers(b recipe.Backend) bool {
	for _, f := range e.For {
		if f == b {
			return true
		}
	}
	return len(e.For) == 0
}

// manifest reads templates/manifest.yaml; without one nothing is rendered.
func manifest(assets fs.FS) ([]entry, error) {
	data, err := fs.ReadFile(assets, manifestFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Read(err, manifestFile)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, fault.New(fault.Usage, "%s", strings.TrimPrefix(err.Error(), "yaml: ")).At("%s", manifestFile).
			Hintf("the file is a list of {from: TEMPLATE, to: PATH, for: [BACKENDS]}")
	}
	if len(doc.Content) == 0 {
		return nil, nil
	}
	list := doc.Content[0]
	if list.Kind != yaml.SequenceNode {
		return nil, wrong(list, "expected a list")
	}
	var entries []entry
	for _, n := range list.Content {
		e, err := decodeEntry(n)
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

var entryKeys = []string{"from", "to", "for"}

func decodeEntry(n *yaml.Node) (entry, error) {
	e := entry{where: place(n)}
	if n.Kind != yaml.MappingNode {
		return e, wrong(n, "expected {from, to, for}")
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		var err error
		switch k.Value {
		case "from":
			err = v.Decode(&e.From)
		case "to":
			err = v.Decode(&e.To)
		case "for":
			if err = v.Decode(&e.For); err == nil {
				err = backends(v, e.For)
			}
		default:
			f := wrong(k, "unknown key "+k.Value)
			if near := nearest.Hint(k.Value, entryKeys); near != "" {
				f.Hintf("%s? allowed: %s", near, strings.Join(entryKeys, ", "))
			}
			return e, f
		}
		var f *fault.Error
		if errors.As(err, &f) {
			return e, f
		}
		if err != nil {
			return e, wrong(v, "wrong type for "+k.Value)
		}
	}
	for _, p := range []string{e.From, e.To} {
		if p == "." || !fs.ValidPath(p) || path.Clean(p) != p || strings.ContainsAny(p, `\:`) {
			return e, wrong(n, fmt.Sprintf("from and to must be relative paths, not %q", p))
		}
	}
	return e, nil
}

func backends(n *yaml.Node, list []recipe.Backend) error {
	for _, b := range list {
		switch b {
		case recipe.CPU, recipe.HIP, recipe.CUDA:
		default:
			return wrong(n, "unknown backend "+string(b)).Hintf("allowed: cpu, hip, cuda")
		}
	}
	return nil
}

func place(n *yaml.Node) string { return fmt.Sprintf("%s:%d:%d", manifestFile, n.Line, n.Column) }

func wrong(n *yaml.Node, what string) *fault.Error {
	return fault.New(fault.Usage, "%s", what).At("%s", place(n)).
		Hintf("the file is a list of {from: TEMPLATE, to: PATH, for: [BACKENDS]}")
}
