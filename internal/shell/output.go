package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// Failed is the error of a program that could not be run, or that ended with
// another exit status than 0: which, with which arguments, and its last words.
type Failed struct {
	Command Command
	Said    string // everything it said
	Err     error  // an *exec.ExitError when it ran
}

// shown is how many of a program's last lines are in the message.
const shown = 4

func (f *Failed) Error() string {
	text := fmt.Sprintf("%s: %v", f.Command, f.Err)
	if last := Last(f.Said, shown); last != "" {
		text += "\n    " + strings.ReplaceAll(last, "\n", "\n    ")
	}
	return text
}

func (f *Failed) Unwrap() error { return f.Err }

// Ran reports whether the error is that of a program that ran and ended with an
// exit status of its own.
func Ran(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit)
}

// Last returns the last n lines of a text, without the blanks at its ends.
func Last(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// Output runs the command as Run does and returns its stdout, for a program that
// is asked something. Its stderr is in the error, a *Failed.
func (c Command) Output(ctx context.Context) ([]byte, error) {
	var out, errs bytes.Buffer
	err := c.RunSplit(ctx, &out, &errs)
	return out.Bytes(), c.failed(ctx, err, errs.String())
}

// Text runs the command as Run does and returns all that it says, for a program
// that does something. The error is a *Failed.
func (c Command) Text(ctx context.Context) (string, error) {
	var out bytes.Buffer
	err := c.Run(ctx, &out)
	return out.String(), c.failed(ctx, err, out.String())
}

func (c Command) failed(ctx context.Context, err error, said string) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	return &Failed{c, said, err}
}
