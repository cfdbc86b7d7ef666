// Package fault is the one error shape of dot4fa: what went wrong, where, and
// what to do next, together with the documented exit code.
package fault

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
)

// Exit codes of the dot4fa command.
const (
	OK           = 0
	Failure      = 1   // anything without a more exact code
	Usage        = 2   // bad flag, bad recipe, unknown name
	EditFails    = 3   // an edit does not apply, or a file was edited by hand
	Environment  = 4   // a tool, a toolchain or a permission is missing
	BuildFailed  = 5   // configure or compile failed
	VerifyFailed = 6   // a verification did not hold
	Interrupted  = 130 // Ctrl-C
)

// Error is an error a user reads. Its message is lower case without a full
// stop; Hint is printed on a line of its own.
type Error struct {
	Code  int    // exit code
	Where string // "file:line:col", a path, a ref; may be empty
	What  string // what went wrong
	Hint  string // what to do next; may be empty
	Err   error  // the cause; may be nil
}

// New returns an Error with the given exit code and formatted message.
// A %w verb in format records the cause.
func New(code int, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, What: err.Error(), Err: errors.Unwrap(err)}
}

// At says where the fault is.
func (e *Error) At(format string, args ...any) *Error {
	e.Where = fmt.Sprintf(format, args...)
	return e
}

// Hintf says what to do next.
func (e *Error) Hintf(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// Write is the fault of a file or directory that cannot be written.
func Write(err error, path string) *Error {
	e := New(Environment, "cannot write: %w", plain(err, path)).At("%s", path)
	if errors.Is(err, syscall.ENOSPC) {
		return e.Hintf("%s", DiskFull)
	}
	return e.Hintf("name a place that can be written, or change its permissions")
}

// plain leaves out of err the path that is said anyway, or that of a temporary
// file beside it.
func plain(err error, path string) error {
	var at *fs.PathError
	if errors.As(err, &at) && (at.Path == path || filepath.Dir(at.Path) == filepath.Dir(path)) {
		return at.Err
	}
	return err
}

// Read is the fault of a file or directory that cannot be read.
func Read(err error, path string) *Error {
	e := New(Environment, "cannot read: %w", plain(err, path)).At("%s", path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return e.Hintf("check that it is there and that nothing else removes it, and run the command again")
	case errors.Is(err, fs.ErrPermission):
		return e.Hintf("change its permissions, or run as a user who may read it")
	}
	return e.Hintf("check that it can be read, and run the command again")
}

// Temporary is the fault of temporary files that cannot be made.
func Temporary(err error) *Error {
	e := New(Environment, "no temporary files can be made: %w", err)
	if errors.Is(err, syscall.ENOSPC) {
		return e.Hintf("%s", DiskFull)
	}
	return e.Hintf("set TMPDIR to a directory that can be written")
}

// Here is the fault of a current directory that is not there any more.
func Here(err error) *Error {
	return New(Environment, "cannot find out the current directory: %w", err).Hintf("change to a directory that exists")
}

// Ours is what to do next about an error that no use of dot4fa should lead to.
const Ours = "this is an error of dot4fa itself: report it with the command and what dot4fa version prints"

// DiskFull is what to do next when there is no space.
const DiskFull = "the disk is full: free some space and run the same command again, which goes on where it stopped"

func (e *Error) Error() string {
	if e.Where == "" {
		return e.What
	}
	return e.Where + ": " + e.What
}

func (e *Error) Unwrap() error { return e.Err }

// Code returns the exit code err asks for: that of the outermost Error in its
// chain, Failure for any other error and OK for nil.
func Code(err error) int {
	if err == nil {
		return OK
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return Failure
}

// Hint returns the hint of the outermost Error in err's chain that has one.
func Hint(err error) string {
	for err != nil {
		var e *Error
		if !errors.As(err, &e) {
			return ""
		}
		if e.Hint != "" {
			return e.Hint
		}
		err = e.Err
	}
	return ""
}
