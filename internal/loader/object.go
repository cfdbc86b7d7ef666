// Package loader finds the libraries of a program the way the dynamic loader
// will: by what the files themselves say, in a clean environment.
package loader

import (
	"debug/elf"
	"errors"
	"io"
	"regexp"
	"strings"
)

// Object is what the dynamic loader reads of an ELF file.
type Object struct {
	Machine elf.Machine
	Class   elf.Class
	Needed  []string
	RPath   []string // DT_RPATH: for the file and all that it loads
	RunPath []string // DT_RUNPATH: for the file alone
	Symbols []string // versions of system symbols it uses: "GLIBC_2.34"
}

// reVersion matches the symbol versions that decide on which systems a program
// starts.
var reVersion = regexp.MustCompile(`^(GLIBC|GLIBCXX|CXXABI|GCC)_[0-9.]+$`)

// Parse reads a program or library. Anything else is ErrKind.
func Parse(r io.ReaderAt) (*Object, error) {
	f, err := elf.NewFile(r)
	if err != nil {
		return nil, errors.Join(ErrKind, err)
	}
	defer f.Close()
	if f.Type != elf.ET_EXEC && f.Type != elf.ET_DYN {
		return nil, ErrKind
	}
	o := &Object{Machine: f.Machine, Class: f.Class}
	if o.Needed, err = f.ImportedLibraries(); err != nil {
		return nil, err
	}
	for tag, to := range map[elf.DynTag]*[]string{elf.DT_RPATH: &o.RPath, elf.DT_RUNPATH: &o.RunPath} {
		values, err := f.DynString(tag)
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			*to = append(*to, strings.Split(v, ":")...)
		}
	}
	imported, err := f.ImportedSymbols()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return nil, err
	}
	for _, s := range imported {
		if reVersion.MatchString(s.Version) {
			o.Symbols = append(o.Symbols, s.Version)
		}
	}
	return o, nil
}

// ErrKind is the error of a file that is no program or library in ELF format.
var ErrKind = errors.New("not a program or library in ELF format")
