// Package input reads the files that a user names.
package input

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"dot4fa/internal/fault"
)

// Open opens a regular file. What is not there or is none is the user's mistake
// and an error with exit code Usage; hint says what to name instead. A pipe or
// a device is refused too: of some a read does not come back, and others have
// no end.
func Open(name, hint string) (*os.File, error) {
	if err := File(name, hint); err != nil {
		return nil, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, refused(err, name, hint)
	}
	return f, nil
}

// Read reads all of a file that Open opens.
func Read(name, hint string) ([]byte, error) {
	f, err := Open(name, hint)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, fault.Read(err, name)
	}
	return data, nil
}

// File makes sure that name is a regular file, for a program to read.
func File(name, hint string) error {
	info, err := os.Stat(name)
	if err != nil {
		return refused(err, name, hint)
	}
	if what := kind(info.Mode()); what != "a file" {
		return fault.New(fault.Usage, "is %s, not a file", what).At("%s", name).Hintf("%s", hint)
	}
	return nil
}

// Dir makes sure that name is a directory.
func Dir(name, hint string) error {
	info, err := os.Stat(name)
	if err != nil {
		return refused(err, name, hint)
	}
	if what := kind(info.Mode()); what != "a directory" {
		return fault.New(fault.Usage, "is %s, not a directory", what).At("%s", name).Hintf("%s", hint)
	}
	return nil
}

func kind(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "a file"
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "something else"
}

// refused is the fault of a name that leads to nothing, or to what may not be read.
func refused(err error, name, hint string) error {
	what := "cannot be found"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		what = "does not exist"
	case errors.Is(err, fs.ErrPermission):
		return fault.Read(err, name)
	case errors.Is(err, syscall.ENOTDIR):
		what = "does not exist: a part of the path is a file"
	case errors.Is(err, syscall.ELOOP):
		what = "does not exist: its links lead back to themselves"
	default:
		var at *fs.PathError
		if errors.As(err, &at) {
			what += ": " + at.Err.Error()
		}
	}
	f := fault.New(fault.Usage, "%s", what).At("%s", name).Hintf("%s", hint)
	f.Err = err
	return f
}

// Program finds a program that a user named by its path, or by a name that is
// looked for on PATH.
func Program(name, hint string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path, nil
	case !strings.ContainsRune(filepath.ToSlash(name), '/'):
		return "", fault.New(fault.Environment, "there is no such program on PATH").At("%s", name).Hintf("%s", hint)
	}
	if err := File(name, hint); err != nil {
		return "", err
	}
	return "", fault.New(fault.Usage, "is a file that may not be run").At("%s", name).Hintf("%s", hint)
}
