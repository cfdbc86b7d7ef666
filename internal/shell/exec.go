package shell

import (
	"context"
	"io"
	"os"
	"os/exec"
	"time"
)

const (
	grace = 10 * time.Second // for an interrupted program to clean up after itself
	drain = time.Second      // for output still on its way when the program has ended
)

// Run runs the command with its output going to out, which gets stdout and
// stderr in the order they come. When ctx ends, the command and everything it
// started is interrupted first, so that it can remove half-written files, and
// killed when it does not go; Run then returns ctx's cause.
func (c Command) Run(ctx context.Context, out io.Writer, env ...string) error {
	cmd := exec.CommandContext(ctx, c.Path, c.Args...)
	cmd.Dir = c.Dir
	cmd.Env = append(append(os.Environ(), c.Env...), env...)
	ownGroup(cmd)
	cmd.Cancel = func() error { return interruptGroup(cmd) }
	cmd.WaitDelay = grace

	// A pipe of our own: Wait then waits for the program alone, and what it
	// left running can be ended before its output is waited for.
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = w, w
	err = cmd.Start()
	w.Close()
	if err == nil {
		copied := make(chan struct{})
		go func() {
			io.Copy(out, r)
			close(copied)
		}()
		err = cmd.Wait()
		killGroup(cmd)
		select {
		case <-copied:
		case <-time.After(drain):
			r.Close() // held open by something outside the group
			<-copied
		}
	}
	r.Close()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
