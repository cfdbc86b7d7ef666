package code

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"dot4fa/internal/fault"
	"dot4fa/internal/shell"
)

// Disassembler is an llvm-objdump.
type Disassembler struct {
	Path    string
	Version string // "19.1.7"
}

var llvmVersion = regexp.MustCompile(`LLVM version (\d+)\.[0-9.]+`)

// FindDisassembler returns the llvm-objdump that belongs to a clang of the given major version. One of another version is refused:
// older ones print the halves of 16-bit operands wrong.
func FindDisassembler(ctx context.Context, clang string, major int) (*Disassembler, error) {
	out, err := shell.Command{Path: clang, Args: []string{"-print-prog-name=llvm-objdump"}}.Output(ctx)
	path := strings.TrimSpace(string(out))
	if err == nil && !filepath.IsAbs(path) {
		path, err = exec.LookPath(path)
	}
	if err != nil {
		return nil, fault.New(fault.Environment, "has no llvm-objdump").At("%s", clang).
			Hintf("install the llvm tools of the same version (Debian: llvm-%d)", major)
	}
	return OpenDisassembler(ctx, path, major)
}

// OpenDisassembler returns the llvm-objdump at path when it is of the given major version of LLVM.
func OpenDisassembler(ctx context.Context, path string, major int) (*Disassembler, error) {
	out, err := shell.Command{Path: path, Args: []string{"--version"}}.Output(ctx)
	if err != nil {
		return nil, fault.New(fault.Environment, "does not answer --version: %w", err).At("%s", path).
			Hintf("install llvm-objdump of LLVM %d", major)
	}
	m := llvmVersion.FindSubmatch(out)
	if m == nil {
		return nil, fault.New(fault.Environment, "does not say that it is LLVM's").At("%s", path).Hintf("use llvm-objdump of LLVM %d", major)
	}
	d := &Disassembler{Path: path, Version: strings.TrimPrefix(string(m[0]), "LLVM version ")}
	if got, _ := strconv.Atoi(string(m[1])); got != major {
		return nil, fault.New(fault.Environment, "is of LLVM %s, the compiler of LLVM %d: 16-bit operands are printed wrong by another version", d.Version, major).
			At("%s", path).Hintf("use the llvm-objdump beside the compiler")
	}
	return d, nil
}

// Open reads a code object and its disassembly.
func (d *Disassembler) Open(ctx context.Context, object []byte, target string) (*Object, error) {
	o, err := Read(object, target)
	if err != nil {
		return nil, err
	}
	text, err := d.Text(ctx, object, target)
	if err != nil {
		return nil, err
	}
	return o, o.Disassembly(text)
}

// Text disassembles a code object.
func (d *Disassembler) Text(ctx context.Context, object []byte, target string) ([]byte, error) {
	file, err := os.CreateTemp("", "dot4fa-*.o")
	if err != nil {
		return nil, fault.Temporary(err)
	}
	defer os.Remove(file.Name())
	_, err = file.Write(object)
	if err2 := file.Close(); err == nil {
		err = err2
	}
	if err != nil {
		return nil, err
	}
	text, err := shell.Command{Path: d.Path, Args: []string{"-d", "--mcpu=" + target, file.Name()}}.Output(ctx)
	var failed *shell.Failed
	if errors.As(err, &failed) {
		return nil, fault.New(fault.Environment, "cannot disassemble: %w", err).At("%s", d.Path).
			Hintf("check that it knows %s: %s --version lists its targets", target, d.Path)
	}
	return text, err
}
