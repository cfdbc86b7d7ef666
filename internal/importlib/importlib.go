// Package importlib makes import libraries: what a linker asks of a shared library,
// and nothing to run.
package importlib

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dot4fa/internal/fault"
	"dot4fa/internal/shell"
)

// Library has the soname and the symbols of a real library and none of its code
// or needs: programs link with it on any host. A program that is started with it
// says what it lacks and ends.
type Library struct {
	Path    string   // the file to make
	Soname  string   // what programs linked with it will ask for
	Symbols []Symbol // none when the real library was not downloaded
}

// Symbol is a function or variable that programs can link with.
type Symbol struct {
	Name    string
	Version string // "" when the library has none for it
	Size    uint64
	Data    bool
}

const another = "give Debian's package of the library for amd64, as it is in the archive"

// Read returns the import library of the real library at path, to be made in its
// place.
func Read(path string) (l Library, err error) {
	f, err := elf.Open(path)
	if err != nil {
		return l, fault.New(fault.Environment, "not a library that can be read: %w", err).At("%s", path).
			Hintf("%s", another)
	}
	defer f.Close()
	if f.Machine != elf.EM_X86_64 {
		return l, fault.New(fault.Environment, "the library is for %s, not for x86-64", f.Machine).At("%s", path).Hintf("%s", another)
	}
	if names, err := f.DynString(elf.DT_SONAME); err == nil && len(names) > 0 {
		l.Soname = names[0]
	}
	all, err := f.DynamicSymbols()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return l, fault.New(fault.Environment, "the library's symbols cannot be read: %w", err).At("%s", path).Hintf("%s", another)
	}
	for _, s := range all {
		bind, kind := elf.ST_BIND(s.Info), elf.ST_TYPE(s.Info)
		if s.Section == elf.SHN_UNDEF || s.Section == elf.SHN_ABS || bind != elf.STB_GLOBAL && bind != elf.STB_WEAK {
			continue // imported, or the name of a version
		}
		if s.HasVersion && s.VersionIndex.IsHidden() {
			continue // kept for old programs; nothing new links with it
		}
		switch kind {
		case elf.STT_FUNC, elf.STT_OBJECT:
			l.Symbols = append(l.Symbols, Symbol{s.Name, s.Version, s.Size, kind == elf.STT_OBJECT})
		}
	}
	slices.SortFunc(l.Symbols, func(a, b Symbol) int { return strings.Compare(a.Name, b.Name) })
	l.Path = path
	return l, nil
}

// source returns the stub as x86-64 assembly: every function traps, and loading
// the library says why nothing runs and ends the program.
func (l Library) source() []byte {
	var b bytes.Buffer
	message := fmt.Sprintf("%s: a compile-only stub made by dot4fa toolchain bootstrap: programs built with it run where the real library is installed\n", l.Soname)
	fmt.Fprintf(&b, `	.text
	.type	.Lsay, @function
.Lsay:
	movl	$1, %%eax
	movl	$2, %%edi
	leaq	.Ltext(%%rip), %%rsi
	movl	$%d, %%edx
	syscall
	movl	$231, %%eax
	movl	$127, %%edi
	syscall
	ud2
	.section	.init_array, "aw"
	.p2align	3
	.quad	.Lsay
	.section	.rodata
.Ltext:
	.ascii	%q
	.text
`, len(message), message)
	for _, y := range l.Symbols {
		if !y.Data {
			fmt.Fprintf(&b, "\t.globl\t%[1]s\n\t.type\t%[1]s, @function\n%[1]s:\n", y.Name)
		}
	}
	b.WriteString("\tud2\n\t.bss\n")
	for _, y := range l.Symbols {
		if y.Data {
			size := max(y.Size, 1)
			fmt.Fprintf(&b, "\t.p2align\t4\n\t.globl\t%[1]s\n\t.type\t%[1]s, @object\n\t.size\t%[1]s, %[2]d\n%[1]s:\n\t.zero\t%[2]d\n", y.Name, size)
		}
	}
	b.WriteString("\t.section\t.note.GNU-stack, \"\", @progbits\n")
	return b.Bytes()
}

// versions returns the linker script that gives the symbols their versions, ""
// when they have none.
func (l Library) versions() string {
	nodes := map[string][]string{}
	var order []string
	for _, y := range l.Symbols {
		if y.Version == "" {
			continue
		}
		if nodes[y.Version] == nil {
			order = append(order, y.Version)
		}
		nodes[y.Version] = append(nodes[y.Version], y.Name)
	}
	slices.Sort(order)
	var b strings.Builder
	for _, v := range order {
		fmt.Fprintf(&b, "%s { global:\n", v)
		for _, name := range nodes[v] {
			fmt.Fprintf(&b, "    %s;\n", name)
		}
		b.WriteString("};\n")
	}
	return b.String()
}

// Make assembles the library with clang below scratch and puts it at its path,
// replacing a real library.
func (l Library) Make(ctx context.Context, clang, scratch string) error {
	src, script := filepath.Join(scratch, "stub.s"), filepath.Join(scratch, "stub.ver")
	out := filepath.Join(scratch, "stub.so")
	args := []string{"-x", "assembler", src, "-shared", "-nostdlib", "-Wl,-soname," + l.Soname, "-Wl,-z,noexecstack", "-o", out}
	if v := l.versions(); v != "" {
		if err := os.WriteFile(script, []byte(v), 0o644); err != nil {
			return fault.Write(err, script)
		}
		args = append(args, "-Wl,--version-script="+script)
	}
	if err := os.WriteFile(src, l.source(), 0o644); err != nil {
		return fault.Write(err, src)
	}
	var log bytes.Buffer
	if err := (shell.Command{Path: clang, Args: args}).Run(ctx, &log); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fault.New(fault.Environment, "the stub of %s cannot be made: %w\n%s", l.Soname, err, shell.Last(log.String(), 6)).
			Hintf("%s must be a clang that assembles and links for x86-64", clang)
	}
	if err := os.MkdirAll(filepath.Dir(l.Path), 0o755); err != nil {
		return fault.Write(err, l.Path)
	}
	if err := os.Rename(out, l.Path); err != nil {
		return fault.Write(err, l.Path)
	}
	return nil
}
