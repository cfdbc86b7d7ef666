package recipe

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"

	"dot4fa/internal/fault"
	"dot4fa/internal/input"
	"dot4fa/internal/nearest"
)

// dir is where recipes lie in the file system given to Load and List.
const dir = "recipes"

// Load reads, completes and checks a recipe. nameOrFile is the name of one in
// fsys (recipes/NAME.yaml) or, when it has a path separator or ends in .yaml
// or .yml, a file of the operating system.
func Load(fsys fs.FS, nameOrFile string) (*Recipe, error) {
	src, err := locate(fsys, nameOrFile)
	if err != nil {
		return nil, err
	}
	layers, err := chain(fsys, src)
	if err != nil {
		return nil, err
	}
	return resolve(layers)
}

// Info is one line of `recipe list`.
type Info struct {
	Name    string  `json:"name"`
	Summary string  `json:"summary"`
	File    string  `json:"file"`
	Backend Backend `json:"backend"` // empty for one that is only there to be extended
	Err     error   `json:"-"`       // why it cannot be loaded
}

// List returns the recipes in fsys by name. A damaged one is listed with its
// error and does not hide the others.
func List(fsys fs.FS) ([]Info, error) {
	files, err := fs.Glob(fsys, dir+"/*.yaml")
	if err != nil {
		return nil, err
	}
	sort.Strings(files)
	var out []Info
	for _, f := range files {
		in := Info{Name: strings.TrimSuffix(path.Base(f), ".yaml"), File: f}
		data, err := fs.ReadFile(fsys, f)
		if err == nil {
			var l *layer
			if l, err = decode(f, data); err == nil {
				in.Summary, _ = l.items["summary"].value.(string)
				var layers []*layer
				if layers, err = chain(fsys, source{name: in.Name, file: f, data: data}); err == nil {
					if m := merge(layers); m["backend"].value != nil {
						in.Backend = Backend(m["backend"].value.(string))
						_, err = resolve(layers)
					}
				}
			}
		}
		in.Err = err
		out = append(out, in)
	}
	return out, nil
}

// source is a recipe file found but not yet read as YAML.
type source struct {
	name  string
	file  string // as shown in messages
	data  []byte
	local string // directory in the operating system, "" for one in fsys
}

func isFile(s string) bool {
	return strings.ContainsAny(s, `/\`) || strings.HasSuffix(s, ".yaml") || strings.HasSuffix(s, ".yml")
}

func locate(fsys fs.FS, nameOrFile string) (source, error) {
	if nameOrFile == "" {
		return source{}, fault.New(fault.Usage, "no recipe named").Hintf("known recipes: %s", strings.Join(known(fsys), ", "))
	}
	if isFile(nameOrFile) {
		return readLocal(nameOrFile)
	}
	s, err := readNamed(fsys, nameOrFile)
	if errors.Is(err, fs.ErrNotExist) {
		return s, unknown(fsys, nameOrFile)
	}
	return s, err
}

func readNamed(fsys fs.FS, name string) (source, error) {
	file := path.Join(dir, name+".yaml")
	if !reName.MatchString(name) {
		return source{}, fs.ErrNotExist
	}
	data, err := fs.ReadFile(fsys, file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return source{}, fault.New(fault.Environment, "cannot read the recipe: %w", err).At("%s", file).Hintf("check the file's permissions")
	}
	return source{name: name, file: file, data: data}, err
}

func readLocal(file string) (source, error) {
	base := filepath.Base(file)
	name := strings.TrimSuffix(strings.TrimSuffix(base, ".yaml"), ".yml")
	data, err := input.Read(file, "name the file of a recipe, or a recipe without a path: dot4fa recipe list")
	if err != nil {
		return source{}, err
	}
	return source{name: name, file: file, data: data, local: filepath.Dir(file)}, nil
}

func known(fsys fs.FS) []string {
	files, _ := fs.Glob(fsys, dir+"/*.yaml")
	var out []string
	for _, f := range files {
		out = append(out, strings.TrimSuffix(path.Base(f), ".yaml"))
	}
	sort.Strings(out)
	return out
}

func unknown(fsys fs.FS, name string) *fault.Error {
	all := known(fsys)
	e := fault.New(fault.Usage, "unknown recipe %s", name)
	if near := nearest.Hint(name, all); near != "" {
		return e.Hintf("%s? known recipes: %s; a file is given with its path", near, strings.Join(all, ", "))
	}
	return e.Hintf("known recipes: %s; a file is given with its path", strings.Join(all, ", "))
}

// chain reads a recipe and everything under it, the recipe itself first.
func chain(fsys fs.FS, src source) ([]*layer, error) {
	var layers []*layer
	var trail []string
	for {
		trail = append(trail, src.name)
		l, err := decode(src.file, src.data)
		if err != nil {
			return nil, err
		}
		if err := l.named(src.name); err != nil {
			return nil, err
		}
		if err := l.wholePin(); err != nil {
			return nil, err
		}
		layers = append(layers, l)
		ext, ok := l.items["extends"]
		if !ok {
			return layers, nil
		}
		parent := ext.value.(string)
		next, err := findParent(fsys, src, parent)
		if errors.Is(err, fs.ErrNotExist) {
			u := unknown(fsys, parent)
			return nil, bad(ext.pos, "extends: %s", u.What).Hintf("%s", u.Hint)
		}
		if err != nil {
			return nil, err
		}
		for _, l := range layers {
			if l.file == next.file {
				return nil, bad(ext.pos, "recipes extend each other in a circle: %s", strings.Join(append(trail, parent), " -> ")).
					Hintf("remove extends from one of them")
			}
		}
		if len(layers) > MaxExtends {
			return nil, bad(ext.pos, "recipes extend each other more than %d deep: %s", MaxExtends, strings.Join(append(trail, parent), " -> ")).
				Hintf("merge some of them")
		}
		src = next
	}
}

// findParent looks beside a local file first, then among fsys.
func findParent(fsys fs.FS, child source, name string) (source, error) {
	if child.local != "" {
		for _, ext := range []string{".yaml", ".yml"} {
			file := filepath.Join(child.local, name+ext)
			if _, err := os.Stat(file); err == nil && file != filepath.Clean(child.file) {
				return readLocal(file)
			}
		}
		// A local rdna3.yaml may extend the rdna3 that comes with dot4fa.
	}
	return readNamed(fsys, name)
}

// named checks that the recipe is called as its file is: the work directory
// and the lock go by this name.
func (l *layer) named(name string) error {
	it, ok := l.items["name"]
	if !ok {
		return bad(Pos{l.file, 1, 1}, "the recipe has no name").Hintf("add: name: %s", name)
	}
	if it.value != name {
		return bad(it.pos, "the recipe's name is %v but its file is called %s", it.value, name).
			Hintf("write name: %s, or rename the file", name)
	}
	return nil
}

// wholePin checks that commit and tag are given together.
func (l *layer) wholePin() error {
	c, hasCommit := l.items["upstream.commit"]
	t, hasTag := l.items["upstream.tag"]
	switch {
	case hasCommit && !hasTag:
		return bad(c.pos, "upstream.commit is given without upstream.tag").Hintf("a pin is both: add the release tag the commit belongs to, as tag: b10573")
	case hasTag && !hasCommit:
		return bad(t.pos, "upstream.tag is given without upstream.commit").Hintf("a pin is both: add the tag's commit, all 40 hex digits (a tag can be moved, a commit cannot)")
	}
	return nil
}

// merge puts layers (top first) on top of each other.
func merge(layers []*layer) map[string]item {
	out := map[string]item{}
	for i := len(layers) - 1; i >= 0; i-- {
		top := i == 0
		for p, it := range layers[i].items {
			if !top && (p == "name" || p == "summary" || p == "extends") {
				continue
			}
			if it.value == nil {
				delete(out, p)
				continue
			}
			out[p] = it
		}
	}
	return out
}
