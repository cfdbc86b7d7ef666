package importlib

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// clangHere is any clang, to assemble with.
func clangHere(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"clang-19", "clang++-19", "clang", "clang-14"} {
		if p, err := exec.LookPath(name); err == nil {
			return p
		}
	}
	t.Skip("no clang on PATH to assemble with")
	return ""
}

// A stub has the names, versions and sizes of the real library, and ends the
// program that loads it.
func TestLibrary(t *testing.T) {
	clang := clangHere(t)
	dir := t.TempDir()
	src := filepath.Join(dir, "real.c")
	text := "int one_old(void) { return 1; }\nint one_new(void) { return 2; }\nint two(void) { return 2; }\nint table[10] = {1};\nstatic int hidden;\n" +
		"__asm__(\".symver one_old, one@V_1\");\n__asm__(\".symver one_new, one@@V_2\");\nint plain(void) { return hidden; }\n"
	script := "V_1 { global: one; two; table; };\nV_2 { global: one; } V_1;\n"
	for name, data := range map[string]string{"real.c": text, "real.ver": script, "main.c": "int one(void); extern int table[10]; int main(void) { return one() + table[0]; }\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	lib := filepath.Join(dir, "libreal.so.1.2")
	build := func(args ...string) {
		t.Helper()
		if out, err := exec.Command(clang, args...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	build("-x", "c", src, "-shared", "-fPIC", "-Wl,-soname,libreal.so.1", "-Wl,--version-script="+filepath.Join(dir, "real.ver"), "-o", lib)
	l, err := Read(lib)
	if err != nil || l.Soname != "libreal.so.1" {
		t.Fatalf("soname %s, %v", l.Soname, err)
	}
	if err := l.Make(t.Context(), clang, dir); err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(lib)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if needed, err := f.ImportedLibraries(); err != nil || len(needed) > 0 {
		t.Errorf("the stub needs %v (%v)", needed, err)
	}
	list, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"one": "V_2", "two": "V_1", "table": "V_1", "plain": ""} {
		i := slices.IndexFunc(list, func(s elf.Symbol) bool { return s.Name == name })
		if i < 0 || list[i].Version != want {
			t.Errorf("%s: %v, want version %q", name, list, want)
			continue
		}
		if name == "table" && (list[i].Size != 40 || elf.ST_TYPE(list[i].Info) != elf.STT_OBJECT) {
			t.Errorf("table is %+v, want 40 bytes of data", list[i])
		}
	}
	if err := os.Symlink("libreal.so.1.2", filepath.Join(dir, "libreal.so.1")); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "main")
	build("-x", "c", filepath.Join(dir, "main.c"), "-x", "none", lib, "-Wl,-rpath,"+dir, "-o", program)
	out, err := exec.Command(program).CombinedOutput()
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 127 || !strings.Contains(string(out), "libreal.so.1: a compile-only stub") {
		t.Errorf("a program with the stub: %v\n%s", err, out)
	}
}

func TestReadRefusesOtherMachines(t *testing.T) {
	name := filepath.Join(t.TempDir(), "libx.so")
	if err := os.WriteFile(name, []byte("!<arch>\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(name); err == nil {
		t.Error("an archive is taken for a library")
	}
}
