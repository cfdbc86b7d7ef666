package loader

import (
	"os"
	"path"
	"slices"
	"strings"

	"dot4fa/internal/machine"
)

// Library is a library that a program loads, and where the loader finds it.
type Library struct {
	Name string `json:"name"`           // as it is asked for
	Path string `json:"path,omitempty"` // links followed; empty: not found
	By   string `json:"by"`             // the first file that asks for it
}

// Loader resolves on one machine, with no LD_LIBRARY_PATH.
type Loader struct {
	on   machine.System
	dirs []string // searched for every file, after its own paths
	read map[string]*Object
}

// New returns the loader of a machine.
func New(on machine.System) *Loader {
	l := &Loader{on: on, read: map[string]*Object{}}
	l.dirs = append(l.configured("/etc/ld.so.conf", 0), "/lib64", "/usr/lib64", "/lib", "/usr/lib")
	return l
}

// configured returns the directories that a file of ldconfig's names.
func (l *Loader) configured(file string, depth int) []string {
	if depth > 8 {
		return nil
	}
	var dirs []string
	for line := range strings.Lines(string(l.on.ReadFile(file))) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0:
		case fields[0] == "include":
			for _, pattern := range fields[1:] {
				if !path.IsAbs(pattern) {
					pattern = path.Join(path.Dir(file), pattern)
				}
				for _, name := range l.on.Glob(pattern) {
					dirs = append(dirs, l.configured(name, depth+1)...)
				}
			}
		case path.IsAbs(fields[0]):
			dirs = append(dirs, fields[0])
		}
	}
	return dirs
}

// object reads a file once; nil when it is no object.
func (l *Loader) object(file string) *Object {
	o, known := l.read[file]
	if !known {
		if f, err := os.Open(l.on.Real(file)); err == nil {
			o, _ = Parse(f)
			f.Close()
		}
		l.read[file] = o
	}
	return o
}

// loaded is an object of a program with what led to it.
type loaded struct {
	path string
	from *loaded
}

// Libraries returns all that program loads when it starts, in the loader's
// order, or ErrKind.
func (l *Loader) Libraries(program string) ([]Library, error) {
	program = l.on.Resolve(program)
	main := l.object(program)
	if main == nil {
		return nil, ErrKind
	}
	var out []Library
	queue := []*loaded{{path: program}}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for _, name := range l.object(at.path).Needed {
			if slices.ContainsFunc(out, func(lib Library) bool { return lib.Name == name }) {
				continue // one that is loaded already serves everybody
			}
			lib := Library{Name: name, Path: l.find(name, at, main), By: at.path}
			out = append(out, lib)
			if lib.Path != "" {
				queue = append(queue, &loaded{lib.Path, at})
			}
		}
	}
	return out, nil
}

// find returns the file that the loader takes for a library that at needs.
func (l *Loader) find(name string, at *loaded, main *Object) string {
	if strings.Contains(name, "/") {
		return l.take(name, main)
	}
	var dirs []string
	if o := l.object(at.path); len(o.RunPath) > 0 {
		dirs = expand(o.RunPath, at.path)
	} else {
		for by := at; by != nil; by = by.from {
			dirs = append(dirs, expand(l.object(by.path).RPath, by.path)...)
		}
	}
	for _, dir := range append(dirs, l.dirs...) {
		if file := l.take(path.Join(dir, name), main); file != "" {
			return file
		}
	}
	return ""
}

// take returns the real path of a library that fits the program.
func (l *Loader) take(file string, main *Object) string {
	file = l.on.Resolve(file)
	if o := l.object(file); o != nil && o.Machine == main.Machine && o.Class == main.Class {
		return file
	}
	return ""
}

// expand puts the file's own directory for $ORIGIN.
func expand(paths []string, file string) []string {
	var out []string
	for _, p := range paths {
		for _, name := range []string{"$ORIGIN", "${ORIGIN}"} {
			p = strings.ReplaceAll(p, name, path.Dir(file))
		}
		if path.IsAbs(p) { // one relative to the current directory is an accident
			out = append(out, p)
		}
	}
	return out
}
