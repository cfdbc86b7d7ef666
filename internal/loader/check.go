package loader

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Report is what the programs of a build load.
type Report struct {
	Programs  int       `json:"programs"`
	Libraries []Library `json:"libraries"`          // of all programs, once each
	FromRoot  []string  `json:"from_root"`          // those from the chosen ROCm
	Problems  []string  `json:"problems,omitempty"` // why a program will not start, or starts with the wrong library
}

// Check looks at what programs load. root is the directory of the ROCm that was
// chosen, "" for none: a library that it has must come from it, and not from
// another installation on the way.
func (l *Loader) Check(programs []string, root string) (*Report, error) {
	r := &Report{Programs: len(programs), Libraries: []Library{}, FromRoot: []string{}}
	if root != "" {
		root = l.on.Resolve(root)
	}
	has := l.stems(root)
	for _, p := range programs {
		list, err := l.Libraries(p)
		if errors.Is(err, ErrKind) && bytes.HasPrefix(l.on.ReadFile(p), []byte("#!")) {
			continue // a script loads nothing itself
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
		for _, lib := range list {
			if slices.ContainsFunc(r.Libraries, func(k Library) bool { return k.Name == lib.Name && k.Path == lib.Path }) {
				continue
			}
			r.Libraries = append(r.Libraries, lib)
			switch by := path.Base(lib.By); {
			case root != "" && within(lib.Path, root):
				r.FromRoot = append(r.FromRoot, lib.Name)
			case lib.Path == "" && has[stem(lib.Name)] != "":
				r.Problems = append(r.Problems, fmt.Sprintf("%s, needed by %s, is not where the loader looks; %s has %s", lib.Name, by, root, has[stem(lib.Name)]))
			case lib.Path == "":
				r.Problems = append(r.Problems, fmt.Sprintf("%s, needed by %s, is nowhere", lib.Name, by))
			case has[stem(lib.Name)] != "" && root != "/usr":
				r.Problems = append(r.Problems, fmt.Sprintf("%s, needed by %s, would be loaded from %s and not from %s", lib.Name, by, lib.Path, root))
			}
		}
	}
	slices.Sort(r.FromRoot)
	return r, nil
}

// stems returns the names of root's libraries by what they are called without a
// version.
func (l *Loader) stems(root string) map[string]string {
	out := map[string]string{}
	if root == "" || root == "/" {
		return out
	}
	for _, dir := range []string{"lib", "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"} {
		for _, file := range l.on.Glob(path.Join(root, dir, "*.so*")) {
			if s := stem(path.Base(file)); out[s] == "" {
				out[s] = file
			}
		}
	}
	return out
}

// stem is a library's name without its version: libamdhip64.so.6 is libamdhip64.
func stem(name string) string {
	s, _, _ := strings.Cut(name, ".so")
	return s
}

func within(file, dir string) bool { return strings.HasPrefix(file, strings.TrimSuffix(dir, "/")+"/") }
