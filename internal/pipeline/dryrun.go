package pipeline

import (
	"context"
	"fmt"

	"dot4fa/internal/build"
	"dot4fa/internal/series"
	"dot4fa/internal/shell"
)

// Commands returns what `dot4fa verb` would still have to run, each command
// runnable as it stands and in this order. It writes nothing outside the cache.
func (r *Run) Commands(ctx context.Context, verb string, o BuildOptions) ([]shell.Command, error) {
	var cmds []shell.Command
	if verb == "unapply" {
		change, err := series.Unapply(ctx, r.Work, nil, nil, series.Options{DryRun: true})
		if err == nil && !change.Empty() {
			cmds = append(cmds, r.anywhere(verb))
		}
		return cmds, err
	}
	tree, err := r.ownTree(ctx)
	if err != nil {
		return nil, err
	}
	if tree == nil {
		cmds = append(cmds, r.anywhere("fetch"))
	}
	if verb == "fetch" {
		return cmds, nil
	}
	applied := false
	if tree != nil {
		files, plan, err := r.filesAndPlan(ctx)
		if err != nil {
			return nil, err
		}
		change, err := series.Apply(ctx, r.Work, plan, asRendered(files), series.Options{DryRun: true})
		if err != nil {
			return nil, err
		}
		applied = change.Empty()
	}
	if verb == "render" {
		if !applied {
			cmds = append(cmds, r.anywhere("render"))
		}
		return cmds, nil
	}
	if !applied {
		cmds = append(cmds, r.anywhere("apply"))
	}
	if verb == "apply" {
		return cmds, nil
	}
	tools := r.Tools(ctx)
	if err := tools.Require(r.Recipe); err != nil {
		r.Report.Say("dot4fa: note: on this machine the build would stop: %s", err)
	}
	bt := build.TreeOf(r.Work)
	configure := bt.ConfigureCommand(r.Recipe, tools)
	fresh := false
	if applied {
		if fresh, err = r.isConfigured(ctx, bt); err != nil {
			return nil, err
		}
	}
	if !fresh {
		cmds = append(cmds, configure)
	}
	if verb == "configure" {
		return cmds, nil
	}
	targets := r.Recipe.Targets
	if len(o.Targets) > 0 {
		targets = o.Targets
	}
	return append(cmds, bt.CompileCommand(r.Recipe, targets, build.ChooseJobs(r.Recipe.Backend, o.Jobs), tools)), nil
}

// PrintCommands prints what `dot4fa verb` would run.
func (r *Run) PrintCommands(ctx context.Context, verb string, o BuildOptions) error {
	cmds, err := r.Commands(ctx, verb, o)
	return r.print(cmds, err, verb)
}

// PrintCommandsIn prints what a build in a container would run.
func (r *Run) PrintCommandsIn(ctx context.Context, image string, o BuildOptions) error {
	cmds, err := r.CommandsIn(ctx, image, o)
	return r.print(cmds, err, "build")
}

func (r *Run) print(cmds []shell.Command, err error, verb string) error {
	for _, c := range cmds {
		fmt.Fprintln(r.Out, c)
	}
	if err == nil && len(cmds) == 0 {
		r.Report.Say("nothing to do: %s is up to date in %s", verb, r.Work)
	}
	return err
}
