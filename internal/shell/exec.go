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
	return c.run(ctx, []io.Writer{out}, env)
}

// RunSplit is Run with stdout and stderr apart, for output that is parsed.
func (c Command) RunSplit(ctx context.Context, stdout, stderr io.Writer, env ...string) error {
	return c.run(ctx, []io.Writer{stdout, stderr}, env)
}

// run gives stdout and stderr to one writer, or to one each.
func (c Command) run(ctx context.Context, outs []io.Writer, env []string) error {
	cmd := exec.CommandContext(ctx, c.Path, c.Args...)
	cmd.Dir = c.Dir
	cmd.Env = []string{}
	if !c.Bare {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(append(cmd.Env, c.Env...), env...)
	ownGroup(cmd)
	cmd.Cancel = func() error { return interruptGroup(cmd) }
	cmd.WaitDelay = grace

	// Pipes of our own: Wait then waits for the program alone, and what it left
	// running can be ended before its output is waited for.
	var readers, writers []*os.File
	defer func() {
		for _, f := range append(readers, writers...) {
			f.Close()
		}
	}()
	for range outs {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		readers, writers = append(readers, r), append(writers, w)
	}
	cmd.Stdout, cmd.Stderr = writers[0], writers[len(writers)-1]
	err := cmd.Start()
	for _, w := range writers {
		w.Close()
	}
	if err == nil {
		copied := make(chan struct{}, len(outs))
		for i, r := range readers {
			go func() {
				io.Copy(outs[i], r)
				copied <- struct{}{}
			}()
		}
		err = cmd.Wait()
		killGroup(cmd)
		timeout := time.After(drain)
		for range outs {
			select {
			case <-copied:
			case <-timeout:
				for _, r := range readers {
					r.Close() // held open by something outside the group
				}
				<-copied
				timeout = time.After(0)
			}
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
