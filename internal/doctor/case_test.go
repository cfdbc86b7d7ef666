package doctor_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"dot4fa/internal/build"
	"dot4fa/internal/doctor"
	"dot4fa/internal/finding"
	"dot4fa/internal/machine"
	"dot4fa/internal/recipe"
)

// A set-up is a machine written down as a txtar: the header says what it is made
// of, the files are laid over that. Header lines:
//
//	# what is wrong, in one line
//	source: where it was reported
//	on: parts/ that it is made of, in order
//	recipe: NAME [gfx...]      --gpu-targets after the name
//	cmake: NAME=value          of the recipe
//	env: NAME=value
//	user: name [group...]
//	device: /dev/kfd 0660 root render [refused]
//	link: /from -> to
//	remove: /path
//	free: /path GiB
//	jobs: CORES FIT
//
// A file that begins with "says" is a program which prints the rest of it;
// "refuses" one that fails. The file want is what doctor
// must say: every finding that is not ok, word for word, and with "all" in its
// first line the others too.
type setup struct {
	name, title, source string
	all                 bool
	want                string
	opt                 doctor.Options
}

// load makes the machine of a set-up in a new directory.
func load(t *testing.T, file string) *setup {
	t.Helper()
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := &setup{name: strings.TrimSuffix(filepath.Base(file), ".txtar")}
	s.opt.Machine = machine.System{
		Root:    t.TempDir(),
		Vars:    []string{"PATH=/usr/bin"},
		Devices: map[string]machine.Device{},
		User:    machine.User{Name: "alice", Groups: []string{"alice"}},
		Free:    map[string]int64{},
	}
	s.opt.Machine.Run = s.run
	s.opt.Work = "/home/alice/work/rdna3"
	s.opt.Recipe = ask(t, "rdna3")
	for _, line := range strings.Split(string(a.Comment), "\n") {
		if names, ok := strings.CutPrefix(line, "on: "); ok {
			for _, name := range strings.Fields(names) {
				part, err := txtar.ParseFile(filepath.Join("testdata", "parts", name+".txtar"))
				if err != nil {
					t.Fatal(err)
				}
				s.lay(t, part)
			}
		}
	}
	s.lay(t, a)
	return s
}

func (s *setup) lay(t *testing.T, a *txtar.Archive) {
	t.Helper()
	m := &s.opt.Machine
	real := func(name string) string { return filepath.Join(m.Root, filepath.FromSlash(name)) }
	for _, f := range a.Files {
		data, mode := string(f.Data), os.FileMode(0o644)
		if f.Name == "want" {
			s.want, s.all = data, strings.HasPrefix(data, "all\n")
			continue
		}
		if strings.HasPrefix(data, "says") || strings.HasPrefix(data, "refuses") {
			mode = 0o755
		}
		must(t, os.MkdirAll(filepath.Dir(real(f.Name)), 0o755))
		must(t, os.WriteFile(real(f.Name), []byte(data), mode))
	}
	for _, line := range strings.Split(strings.TrimSpace(string(a.Comment)), "\n") {
		key, value, _ := strings.Cut(line, ": ")
		words := strings.Fields(value)
		switch key {
		case "env":
			m.Vars = append(m.Vars, value)
		case "user":
			m.User = machine.User{Name: words[0], Groups: words}
		case "device":
			mode, err := strconv.ParseUint(words[1], 8, 32)
			must(t, err)
			d := machine.Device{Mode: fs.FileMode(mode), Owner: words[2], Group: words[3]}
			if len(words) > 4 {
				d.Err = &fs.PathError{Op: "open", Path: words[0], Err: fs.ErrPermission}
			}
			m.Devices[words[0]] = d
		case "link":
			must(t, os.MkdirAll(filepath.Dir(real(words[0])), 0o755))
			must(t, os.Symlink(words[2], real(words[0])))
		case "remove":
			if _, err := os.Lstat(m.Real(path.Dir(words[0])) + "/" + path.Base(words[0])); err != nil && m.Devices[words[0]].Group == "" {
				t.Fatalf("%s: there is no %s to remove", s.name, words[0])
			}
			must(t, os.RemoveAll(m.Real(path.Dir(words[0]))+"/"+path.Base(words[0])))
			delete(m.Devices, words[0])
		case "free":
			gib, err := strconv.ParseFloat(words[1], 64)
			must(t, err)
			m.Free[words[0]] = int64(gib * (1 << 30))
		case "jobs":
			cores, _ := strconv.Atoi(words[0])
			fit, _ := strconv.Atoi(words[1])
			s.opt.Jobs = build.Jobs{N: max(min(cores, fit), 1), Why: fmt.Sprintf("%d cores, memory for %d", cores, fit), Cores: cores, Fit: fit}
		case "recipe":
			s.opt.Recipe = ask(t, words[0])
			if len(words) > 1 {
				must(t, s.opt.Recipe.SetGPUTargets(words[1:]))
				s.opt.Given = true
			}
		case "cmake":
			name, v, _ := strings.Cut(value, "=")
			s.opt.Recipe.CMake[name] = v
		case "source":
			s.source = value
		case "on":
		default:
			if title, ok := strings.CutPrefix(line, "# "); ok {
				s.title = title
			} else if line != "" {
				t.Fatalf("%s: unknown header line %q", s.name, line)
			}
		}
	}
}

// run is what a program of the set-up answers to everything.
func (s *setup) run(path string, _ ...string) ([]byte, error) {
	if text, ok := strings.CutPrefix(string(s.opt.Machine.ReadFile(path)), "says"); ok {
		return []byte(strings.TrimSpace(text) + "\n"), nil
	}
	return nil, errors.New("exit status 1")
}

// ask loads a recipe of this repository.
func ask(t *testing.T, name string) *recipe.Recipe {
	t.Helper()
	r, err := recipe.Load(os.DirFS("../.."), name)
	must(t, err)
	return r
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// said is what doctor said of a set-up, as its want has it.
func (s *setup) said(r *doctor.Report) string {
	var b strings.Builder
	if s.all {
		b.WriteString("all\n")
	}
	for _, f := range r.Findings {
		if f.Status == finding.OK && !s.all {
			continue
		}
		fmt.Fprintf(&b, "%-4s %s: %s\n", f.Status, f.Check, f.Evidence)
		for _, m := range f.Mend {
			fmt.Fprintf(&b, "     mend: %s\n", m)
		}
	}
	return b.String()
}

func examine(s *setup) *doctor.Report { return doctor.Examine(context.Background(), s.opt) }
