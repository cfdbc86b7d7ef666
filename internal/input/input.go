// Package input reads the files that a user names.
package input

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// most is how much is read of what does not say how much it has, as a pipe.
const most = 1 << 30

// Open opens a file or a pipe. A directory is refused, and so is a device, of
// which some have no end.
func Open(name string) (*os.File, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	what := ""
	switch {
	case info.IsDir():
		what = "is a directory"
	case info.Mode()&os.ModeDevice != 0:
		what = "is a device, not a file"
	default:
		return os.Open(name)
	}
	return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New(what)}
}

// Read reads all of a file or pipe.
func Read(name string) ([]byte, error) {
	f, err := Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode().IsRegular() {
		return io.ReadAll(f)
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && len(data) > most {
		err = &fs.PathError{Op: "read", Path: name, Err: errors.New("has no end")}
	}
	return data, err
}
