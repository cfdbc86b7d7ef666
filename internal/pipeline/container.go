package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"dot4fa/internal/container"
	"dot4fa/internal/fault"
	"dot4fa/internal/shell"
	"dot4fa/internal/upstream"
)

// contained is a build in a container.
type contained struct {
	engine *container.Engine
	run    container.Run
	cmd    shell.Command
}

// inContainer describes the build in image: this very program, on the same
// files under the same names.
func (r *Run) inContainer(image string, o BuildOptions) (*contained, error) {
	pinned, err := container.CheckImage(image)
	if err != nil {
		return nil, err
	}
	engine, err := container.Find(r.Machine)
	if err != nil {
		return nil, err
	}
	if !pinned {
		r.Report.Say("dot4fa: note: a tag can move; an image named by digest (NAME@sha256:…) always gives the same compiler")
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, fault.New(fault.Environment, "this program's file is not known: %w", err).
			Hintf("start dot4fa by its path; the container is given that file")
	}
	cache, err := upstream.DefaultCacheDir()
	if err != nil {
		return nil, err
	}
	ccache := r.Machine.Getenv("CCACHE_DIR")
	if ccache == "" {
		ccache = filepath.Join(cache, "ccache")
	}
	home := filepath.Join(cache, "home")
	c := &contained{engine: engine, run: container.Run{
		Image: image, Dir: r.Copy,
		Write: []string{r.Work, cache, ccache, home},
		Read:  []string{exe, r.Copy},
		Env:   []string{"HOME=" + home, "CCACHE_DIR=" + ccache, "DOT4FA_CACHE=" + cache},
	}}
	if from := r.from(); filepath.IsAbs(from) {
		c.run.Read = append(c.run.Read, from)
		c.run.Env = append(c.run.Env, "DOT4FA_UPSTREAM="+from)
	}
	c.run.Args = append([]string{exe, "build", "--json"}, r.Flags...)
	for i, f := range r.Flags {
		if f == "--recipe" && filepath.IsAbs(r.Flags[i+1]) {
			c.run.Read = append(c.run.Read, filepath.Dir(r.Flags[i+1]))
		}
	}
	for _, t := range o.Targets {
		c.run.Args = append(c.run.Args, "--target", t)
	}
	if o.Jobs > 0 {
		c.run.Args = append(c.run.Args, "--jobs", strconv.Itoa(o.Jobs))
	}
	c.cmd, err = engine.Command(c.run)
	return c, err
}

// BuildIn does what Build does with the toolchain of a container's image: the
// tree is made here, where the network is, and configured and compiled there.
func (r *Run) BuildIn(ctx context.Context, image string, o BuildOptions) (*Done, error) {
	c, err := r.inContainer(image, o)
	if err != nil {
		return nil, err
	}
	tree, err := r.Apply(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.run.Prepare(); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = c.cmd.RunSplit(ctx, &out, &lines{say: func(s string) { r.Report.Say("%s", s) }})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, c.engine.Failed(err, c.run)
	}
	d := &Done{}
	if err := json.Unmarshal(out.Bytes(), d); err != nil {
		return nil, fault.New(fault.Failure, "the build in image %s says nothing that can be read: %w", image, err).
			Hintf("the image's entry point writes to stdout: name an image without one")
	}
	d.Container = image
	for i, s := range d.Stages {
		for _, here := range tree.Stages {
			if here.Name == s.Name && here.Done {
				d.Stages[i] = here
			}
		}
	}
	if d.Command != "" {
		inside := c.run
		inside.GPU, inside.Args = true, []string{"sh", "-c", d.Command}
		cmd, err := c.engine.Command(inside)
		if err != nil {
			return nil, err
		}
		d.Command = cmd.String()
	}
	return d, nil
}

// CommandsIn returns what BuildIn would run.
func (r *Run) CommandsIn(ctx context.Context, image string, o BuildOptions) ([]shell.Command, error) {
	c, err := r.inContainer(image, o)
	if err != nil {
		return nil, err
	}
	cmds, err := r.Commands(ctx, "apply", BuildOptions{})
	if err != nil {
		return nil, err
	}
	return append(cmds, c.cmd), nil
}

// lines hands what is written on, a line at a time.
type lines struct {
	say  func(string)
	rest string
}

func (l *lines) Write(p []byte) (int, error) {
	l.rest += string(p)
	for {
		line, rest, ok := strings.Cut(l.rest, "\n")
		if !ok {
			return len(p), nil
		}
		l.say(strings.TrimRight(line, "\r"))
		l.rest = rest
	}
}
