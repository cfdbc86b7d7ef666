// Package output writes the files that a user names: whole or not at all, where
// the file is one. A device, a pipe or what /dev/stdout stands for is written
// to and never replaced, and a symbolic link goes on being one.
package output

import (
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
)

// File is an output that is being written.
type File struct {
	name    string // as the user gave it
	to      io.Writer
	pending *renameio.PendingFile // what takes the file's name at the end
	direct  *os.File              // what cannot be replaced
}

// Create begins to write to name; perm is for a file that is not there yet. An
// error of this package is one for the user: it has a code, a place and a hint.
func Create(name string, perm os.FileMode) (*File, error) {
	f, err := create(name, perm)
	if err != nil {
		return nil, failed(err, name)
	}
	f.name = name
	return f, nil
}

func create(name string, perm os.FileMode) (*File, error) {
	name, direct, err := target(name)
	if err != nil {
		return nil, err
	}
	if direct {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		return &File{to: f, direct: f}, nil
	}
	f, err := renameio.NewPendingFile(name, renameio.WithPermissions(perm), renameio.WithExistingPermissions())
	if err != nil {
		return nil, err
	}
	return &File{to: f, pending: f}, nil
}

// Write adds data to the file.
func (f *File) Write(data []byte) (int, error) {
	n, err := f.to.Write(data)
	return n, failed(err, f.name)
}

// Commit ends the writing: from now on the file has its name.
func (f *File) Commit() error {
	if f.direct != nil {
		err := f.direct.Close()
		f.direct = nil
		return failed(err, f.name)
	}
	return failed(f.pending.CloseAtomicallyReplace(), f.name)
}

// Discard takes back what was not committed; after Commit it does nothing.
func (f *File) Discard() {
	if f.direct != nil {
		_ = f.direct.Close()
	}
	if f.pending != nil {
		_ = f.pending.Cleanup()
	}
}

// Write writes data to name.
func Write(name string, data []byte, perm os.FileMode) error {
	f, err := Create(name, perm)
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.Commit()
}

// target follows links from name and says whether what is there is written to
// in place.
func target(name string) (string, bool, error) {
	for range 40 { // as many links as Linux follows
		if abs, err := filepath.Abs(name); err == nil && strings.HasPrefix(abs, "/dev/") {
			// One of a process's open files, as /dev/stdout is, links to a file
			// that others go on writing to.
			if info, err := os.Stat(name); err == nil && !info.IsDir() {
				return name, true, nil
			}
		}
		info, err := os.Lstat(name)
		switch {
		case err != nil:
			return name, false, nil // the caller's attempt to make it says why not
		case info.IsDir():
			return "", false, errDirectory
		case info.Mode()&os.ModeSymlink == 0:
			return name, !info.Mode().IsRegular(), nil
		}
		link, err := os.Readlink(name)
		if err != nil {
			return "", false, err
		}
		if !filepath.IsAbs(link) {
			link = filepath.Join(filepath.Dir(name), link)
		}
		name = link
	}
	return "", false, errLinks
}
