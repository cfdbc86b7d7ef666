package output

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"dot4fa/internal/fault"
)

var (
	errDirectory = errors.New("it is a directory")
	errLinks     = errors.New("its links lead back to themselves")
)

// failed says why name cannot be written. A name that leads nowhere is the
// user's mistake, anything else lies in the machine.
func failed(err error, name string) error {
	var known *fault.Error
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case errors.Is(err, errDirectory):
		return fault.New(fault.Usage, "cannot write: %w", err).At("%s", name).Hintf("name a file in it")
	case errors.Is(err, errLinks):
		return fault.New(fault.Usage, "cannot write: %w", err).At("%s", name).Hintf("name another file, or remove the link")
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		f := fault.New(fault.Usage, "cannot write: there is no directory %s", filepath.Dir(name)).At("%s", name).
			Hintf("make it first, or name a file in another one")
		f.Err = err
		return f
	}
	return fault.Write(err, name)
}

// Dir makes sure that there is a directory name to write into.
func Dir(name string) error {
	err := os.MkdirAll(name, 0o777)
	if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fs.ErrExist) {
		return fault.New(fault.Usage, "cannot make the directory: %w", err).At("%s", name).Hintf("name another: a part of this one is a file")
	}
	if err != nil {
		return fault.Write(err, name)
	}
	return nil
}
