package dist

import (
	"bytes"
	"debug/elf"
	"errors"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"sort"
	"strings"

	"dot4fa/internal/fault"
	"dot4fa/internal/loader"
)

// origin is the relative rpath of everything in an archive: programs and
// libraries lie in one directory, which is also where llama.cpp looks for
// backends that it loads while running.
const origin = "$ORIGIN"

// object is an ELF file as it goes into the archive.
type object struct {
	name    string // under bin/: a program's name, or the name it is needed by
	data    []byte
	machine elf.Machine
	class   elf.Class
	needed  []string
	symbols []string // versions of system symbols it uses: "GLIBC_2.34"
}

// read reads an ELF file.
func read(file, name string) (*object, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot read what was built: %w", err).At("%s", file).Hintf("run dot4fa build again")
	}
	f, err := loader.Parse(bytes.NewReader(data))
	if errors.Is(err, loader.ErrKind) {
		return nil, fault.New(fault.Environment, "not a program or library in ELF format").At("%s", file).
			Hintf("dist packs what was built on Linux; on other systems copy the build's bin directory")
	}
	if err != nil {
		return nil, damaged(file, err)
	}
	return &object{name: name, data: data, machine: f.Machine, class: f.Class, needed: f.Needed, symbols: f.Symbols}, nil
}

func noSymbols(err error) bool { return err == elf.ErrNoSymbols }

func damaged(file string, err error) error {
	return fault.New(fault.VerifyFailed, "damaged: %w", err).At("%s", file).Hintf("remove it and run dot4fa build again")
}

// relocate makes the rpath of o relative, in place: the linker wrote the build
// directory's absolute path there, which is longer. bundled says whether o
// needs a library of the archive and so cannot do without.
func (o *object) relocate(bundled bool) error {
	before, err := view(o.data)
	if err != nil {
		return damaged(o.name, err)
	}
	if len(before.rpaths) == 0 {
		if bundled {
			return noRoom(o.name, "it has none")
		}
		return nil
	}
	data := bytes.Clone(o.data)
	for _, r := range before.rpaths {
		text := origin
		if len(r.text) < len(origin) {
			if bundled {
				return noRoom(o.name, "it has "+r.text)
			}
			text = "" // needs nothing from there; a loader skips an empty one
		}
		clear(data[r.offset : r.offset+len(r.text)])
		copy(data[r.offset:], text)
	}
	// Strings of a table may share their ends: nothing else may read differently.
	after, err := view(data)
	if err != nil {
		return damaged(o.name, err)
	}
	for _, r := range after.rpaths {
		if r.text != origin && (bundled || r.text != "") {
			return noRoom(o.name, "it reads "+r.text)
		}
	}
	before.rpaths, after.rpaths = nil, nil
	if !reflect.DeepEqual(before, after) {
		return noRoom(o.name, "it shares its text with a symbol's name")
	}
	o.data = data
	return nil
}

func noRoom(name, why string) error {
	return fault.New(fault.VerifyFailed, "its rpath cannot be made relative: %s", why).At("bin/%s", name).
		Hintf("put CMAKE_SKIP_BUILD_RPATH: OFF and CMAKE_BUILD_RPATH_USE_ORIGIN: ON under cmake in the recipe, and build again")
}

// rpath is a DT_RPATH or DT_RUNPATH.
type rpath struct {
	text   string
	offset int // in the file
}

// table is all that the dynamic string table of a file is read for.
type table struct {
	rpaths   []rpath
	strings  map[elf.DynTag][]string
	symbols  []elf.Symbol
	needs    []elf.DynamicVersionNeed
	versions []elf.DynamicVersion
}

func view(data []byte) (*table, error) {
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t := &table{strings: map[elf.DynTag][]string{}}
	dynamic := f.SectionByType(elf.SHT_DYNAMIC)
	if dynamic == nil {
		return t, nil // statically linked
	}
	for _, tag := range []elf.DynTag{elf.DT_NEEDED, elf.DT_SONAME} {
		if t.strings[tag], err = f.DynString(tag); err != nil {
			return nil, err
		}
	}
	if int(dynamic.Link) >= len(f.Sections) {
		return nil, elf.ErrNoSymbols
	}
	names := f.Sections[dynamic.Link]
	for _, tag := range []elf.DynTag{elf.DT_RPATH, elf.DT_RUNPATH} {
		offsets, err := f.DynValue(tag)
		if err != nil {
			return nil, err
		}
		texts, err := f.DynString(tag)
		if err != nil {
			return nil, err
		}
		for i, off := range offsets {
			t.rpaths = append(t.rpaths, rpath{texts[i], int(names.Offset + off)})
		}
	}
	if t.symbols, err = f.DynamicSymbols(); err != nil && !noSymbols(err) {
		return nil, err
	}
	if f.SectionByType(elf.SHT_GNU_VERNEED) != nil {
		if t.needs, err = f.DynamicVersionNeeds(); err != nil {
			return nil, err
		}
	}
	if f.SectionByType(elf.SHT_GNU_VERDEF) != nil {
		if t.versions, err = f.DynamicVersions(); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// closure reads programs and everything they need that lies in bin. Besides,
// it returns which object needs what is not there.
func closure(bin string, programs []string) (objects []*object, outside map[string][]string, err error) {
	queue := append([]string(nil), programs...)
	seen, outside := map[string]bool{}, map[string][]string{}
	for _, p := range queue {
		seen[p] = true
	}
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		o, err := read(filepath.Join(bin, name), name)
		if err != nil {
			return nil, nil, err
		}
		if len(objects) > 0 && (o.machine != objects[0].machine || o.class != objects[0].class) {
			return nil, nil, fault.New(fault.VerifyFailed, "it is for %s, and %s is for %s", o.machine, objects[0].name, objects[0].machine).
				At("bin/%s", name).Hintf("remove the build directory and build again")
		}
		objects = append(objects, o)
		bundled := false
		for _, n := range o.needed {
			if path.Base(n) != n || !isFile(filepath.Join(bin, n)) {
				outside[n] = append(outside[n], name)
				continue
			}
			bundled = true
			if !seen[n] {
				seen[n] = true
				queue = append(queue, n)
			}
		}
		if err := o.relocate(bundled); err != nil {
			return nil, nil, err
		}
	}
	sort.Slice(objects, func(i, j int) bool { return objects[i].name < objects[j].name })
	return objects, outside, nil
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// newest returns, for each kind of symbol version, the newest that any object
// uses: what the system has to have at least.
func newest(objects []*object) []string {
	best := map[string]string{}
	for _, o := range objects {
		for _, s := range o.symbols {
			kind, _, _ := strings.Cut(s, "_")
			if best[kind] == "" || older(best[kind], s) {
				best[kind] = s
			}
		}
	}
	var out []string
	for _, s := range best {
		out = append(out, s)
	}
	sort.Strings(out)
	return out
}

// older compares versions of one kind by their numbers.
func older(a, b string) bool {
	x, y := strings.Split(a[strings.Index(a, "_")+1:], "."), strings.Split(b[strings.Index(b, "_")+1:], ".")
	for i := 0; i < len(x) && i < len(y); i++ {
		if len(x[i]) != len(y[i]) {
			return len(x[i]) < len(y[i])
		}
		if x[i] != y[i] {
			return x[i] < y[i]
		}
	}
	return len(x) < len(y)
}
