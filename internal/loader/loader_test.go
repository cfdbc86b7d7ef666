package loader

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dot4fa/internal/machine"
)

// system is a file system with libraries in it, made by the host's compiler.
type system struct {
	t   *testing.T
	dir string
	cc  string
}

func newSystem(t *testing.T) *system {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no cc on PATH to make libraries with")
	}
	return &system{t, t.TempDir(), cc}
}

func (s *system) on() machine.System { return machine.System{Root: s.dir} }

// link makes a library or program at path that needs others.
func (s *system) link(path string, args []string, needs ...string) {
	s.t.Helper()
	to := filepath.Join(s.dir, path)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		s.t.Fatal(err)
	}
	all := append([]string{"-nostdlib", "-shared", "-x", "c", "/dev/null", "-x", "none", "-Wl,--no-as-needed", "-Wl,-soname," + filepath.Base(path), "-o", to}, args...)
	for _, n := range needs {
		stub := filepath.Join(s.t.TempDir(), n)
		if out, err := exec.Command(s.cc, "-nostdlib", "-shared", "-x", "c", "/dev/null", "-Wl,-soname,"+n, "-o", stub).CombinedOutput(); err != nil {
			s.t.Fatalf("%v\n%s", err, out)
		}
		all = append(all, stub)
	}
	if out, err := exec.Command(s.cc, all...).CombinedOutput(); err != nil {
		s.t.Fatalf("%v\n%s", err, out)
	}
}

func runpath(dirs string) []string { return []string{"-Wl,--enable-new-dtags", "-Wl,-rpath," + dirs} }
func rpath(dirs string) []string   { return []string{"-Wl,--disable-new-dtags", "-Wl,-rpath," + dirs} }

func (s *system) file(path, text string) {
	s.t.Helper()
	to := filepath.Join(s.dir, path)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(to, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name  string
		lay   func(s *system)
		root  string
		want  string // of the problems; "" for none
		found []string
	}{
		{"the build's own by $ORIGIN, ROCm's by absolute path", func(s *system) {
			s.link("b/bin/prog", runpath("$ORIGIN:/opt/rocm/lib"), "libggml.so.0", "libc.so.6")
			s.link("b/bin/libggml.so.0", runpath("/opt/rocm/lib"), "libamdhip64.so.6")
			s.link("opt/rocm/lib/libamdhip64.so.6", nil, "libc.so.6")
		}, "/opt/rocm", "", []string{"libggml.so.0=/b/bin/libggml.so.0", "libamdhip64.so.6=/opt/rocm/lib/libamdhip64.so.6"}},
		{"the system's HIP instead of the chosen one", func(s *system) {
			s.link("b/bin/prog", nil, "libamdhip64.so.6")
			s.link("opt/rocm/lib/libamdhip64.so.7", nil)
			s.link("usr/lib64/libamdhip64.so.6", nil)
		}, "/opt/rocm", "would be loaded from /usr/lib64/libamdhip64.so.6 and not from /opt/rocm", nil},
		{"another ROCm by ldconfig", func(s *system) {
			s.link("b/bin/prog", nil, "libhipblas.so.2")
			s.link("opt/rocm-7.2/lib/libhipblas.so.2", nil)
			s.link("opt/rocm-6.4/lib/libhipblas.so.2", nil)
			s.file("etc/ld.so.conf", "include ld.so.conf.d/*.conf\n")
			s.file("etc/ld.so.conf.d/rocm.conf", "# ROCm\n/opt/rocm-6.4/lib\n")
		}, "/opt/rocm-7.2", "would be loaded from /opt/rocm-6.4/lib/libhipblas.so.2", nil},
		{"libraries moved to another directory of the root", func(s *system) {
			s.link("b/bin/prog", runpath("/opt/rocm/hip/lib"), "libamdhip64.so.6")
			s.link("opt/rocm/lib/libamdhip64.so.6", nil)
		}, "/opt/rocm", "is not where the loader looks; /opt/rocm has /opt/rocm/lib/libamdhip64.so.6", nil},
		{"nowhere at all", func(s *system) {
			s.link("b/bin/prog", nil, "libnuma.so.1")
		}, "/opt/rocm", "libnuma.so.1, needed by prog, is nowhere", nil},
		{"a file of that name for another machine is passed over", func(s *system) {
			s.link("b/bin/prog", runpath("/a:/z"), "libx.so")
			s.link("z/libx.so", nil)
			s.link("a/libx.so", nil)
			name := filepath.Join(s.dir, "a/libx.so")
			data, err := os.ReadFile(name)
			if err != nil {
				s.t.Fatal(err)
			}
			data[18] = 183 // e_machine: AArch64
			if err := os.WriteFile(name, data, 0o755); err != nil {
				s.t.Fatal(err)
			}
		}, "", "", []string{"libx.so=/z/libx.so"}},
		{"RUNPATH is for the file alone", func(s *system) {
			s.link("b/bin/prog", runpath("/l"), "libone.so")
			s.link("l/libone.so", nil, "libtwo.so")
			s.link("l/libtwo.so", nil)
		}, "", "libtwo.so, needed by libone.so, is nowhere", nil},
		{"RPATH is for what the file loads too", func(s *system) {
			s.link("b/bin/prog", rpath("/l"), "libone.so")
			s.link("l/libone.so", nil, "libtwo.so")
			s.link("l/libtwo.so", nil)
		}, "", "", []string{"libtwo.so=/l/libtwo.so"}},
		{"what is loaded once serves everybody", func(s *system) {
			s.link("b/bin/prog", runpath("/l"), "libone.so", "libtwo.so")
			s.link("l/libone.so", nil, "libtwo.so")
			s.link("l/libtwo.so", nil)
		}, "", "", []string{"libtwo.so=/l/libtwo.so"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSystem(t)
			s.link("lib/libc.so.6", nil)
			c.lay(s)
			r, err := New(s.on()).Check([]string{"/b/bin/prog"}, c.root)
			if err != nil {
				t.Fatal(err)
			}
			problems := strings.Join(r.Problems, "\n")
			if c.want == "" && problems != "" || !strings.Contains(problems, c.want) {
				t.Errorf("problems: %q, want %q", problems, c.want)
			}
			for _, want := range c.found {
				if !slices.ContainsFunc(r.Libraries, func(l Library) bool { return l.Name+"="+l.Path == want }) {
					t.Errorf("no %s in %v", want, r.Libraries)
				}
			}
		})
	}
}

// What Libraries says of a program here is what the system's own loader says.
func TestAgainstTheSystemsLoader(t *testing.T) {
	ldd, err := exec.LookPath("ldd")
	if err != nil {
		t.Skip("no ldd on PATH to compare with")
	}
	program, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no cc on PATH to look at")
	}
	out, err := exec.Command(ldd, program).Output()
	if err != nil {
		t.Skipf("ldd cannot read %s: %v", program, err)
	}
	list, err := New(machine.Host()).Libraries(program)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(out)) {
		name, path, ok := strings.Cut(strings.TrimSpace(line), " => ")
		if !ok {
			continue
		}
		n++
		path, _, _ = strings.Cut(path, " (")
		if path, err = filepath.EvalSymlinks(path); err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(list, func(l Library) bool { return l.Name == name && l.Path == path }) {
			t.Errorf("the loader takes %s for %s, and not what is in %v", path, name, list)
		}
	}
	if n == 0 {
		t.Errorf("ldd names no library of %s:\n%s", program, out)
	}
}

func TestNoProgram(t *testing.T) {
	if _, err := New(machine.Host()).Check([]string{os.DevNull}, ""); err == nil {
		t.Error("a device is taken for a program")
	}
}
