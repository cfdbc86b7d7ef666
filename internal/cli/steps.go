package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"dot4fa/internal/fault"
	"dot4fa/internal/pipeline"
	"dot4fa/internal/recipe"
)

// step makes a command out of one stage of the pipeline.
func (a *app) step(use, short, long, example string, do func(*pipeline.Run, context.Context) (*pipeline.Done, error)) *cobra.Command {
	return &cobra.Command{
		Use:     use,
		Short:   short,
		Long:    long,
		Example: example,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := a.run()
			if err != nil {
				return err
			}
			defer r.Close()
			if a.dryRun {
				return r.PrintCommands(cmd.Context(), use, pipeline.BuildOptions{})
			}
			d, err := do(r, cmd.Context())
			if err != nil {
				return err
			}
			return a.printDone(use, d)
		},
	}
}

// printDone prints the work tree, which is what a step results in.
func (a *app) printDone(verb string, d *pipeline.Done) error {
	if a.json {
		return a.printJSON(d)
	}
	if d.Nothing() {
		a.report.Say("nothing to do: %s is up to date", verb)
	}
	fmt.Fprintln(a.Out, d.Work)
	return nil
}

func (a *app) fetch() *cobra.Command {
	return a.step("fetch", "Get llama.cpp at the recipe's commit into the work tree",
		`Checks llama.cpp out at the exact commit that the recipe is pinned to, from the
recipe's URL or from --upstream: another URL, a repository on this machine, which
is read in place, or a plain directory. What the recipe excludes is never read.
The work tree appears when it is complete, and is never written over.`,
		`  dot4fa fetch --recipe cpu
  dot4fa fetch --recipe cpu --upstream ~/src/llama.cpp --work /tmp/tree`,
		(*pipeline.Run).Fetch)
}

func (a *app) render() *cobra.Command {
	return a.step("render", "Write the files that llama.cpp does not have",
		`Writes the kernels and the files made from templates and recipe into the work
tree. Files that are right already keep their time stamps.`,
		`  dot4fa render
  dot4fa render --recipe cuda --work /tmp/tree`,
		(*pipeline.Run).Render)
}

func (a *app) apply() *cobra.Command {
	return a.step("apply", "Make the edits in the work tree",
		`Renders the files and makes every edit of the series. Running it again changes
nothing; after a change in patches/, templates/ or the recipe it brings the tree
to the new state. When an edit finds no place, or a file was changed by hand,
nothing is written and the exit code is 3.`,
		`  dot4fa apply --recipe cpu
  dot4fa apply --recipe cpu --json | jq .change`,
		(*pipeline.Run).Apply)
}

func (a *app) unapply() *cobra.Command {
	c := a.step("unapply", "Take the edits and the rendered files back",
		`Gives every edited file its upstream content back, byte for byte, and removes
what was rendered. The build directory stays.`,
		`  dot4fa unapply --recipe cpu`,
		(*pipeline.Run).Unapply)
	return c
}

func (a *app) configure() *cobra.Command {
	return a.step("configure", "Run CMake for the work tree",
		`Runs CMake with the recipe's cache entries, with a compiler cache when ccache or
sccache is installed. It runs again when the recipe, a compiler or the list of
rendered files has changed.`,
		`  dot4fa configure --recipe cpu
  dot4fa configure --dry-run      # print the CMake command`,
		(*pipeline.Run).Configure)
}

func (a *app) build() *cobra.Command {
	var o pipeline.BuildOptions
	var image string
	var selfCheck bool
	c := &cobra.Command{
		Use:   "build",
		Short: "Build a patched llama.cpp: everything from fetch to binaries",
		Long: `Fetches llama.cpp, renders, applies the series, configures and compiles, skipping
what is done already, and prints the command that runs the result.

The number of compile jobs follows from cores and free memory. The full output of
CMake and the compiler goes to log files under .dot4fa/log in the work tree.
At the end it is checked that the programs find their libraries and start.

With --container the tree is made here, and configured and compiled with the
ROCm, CMake and Ninja of an image, by docker or podman. The tree and the caches
are mounted under their own names, and what is made belongs to the caller.

Ctrl-C stops it; the same command goes on where it stopped.`,
		Example: `  dot4fa build
  dot4fa build --recipe cpu --upstream ~/src/llama.cpp
  dot4fa build --recipe cpu --target llama-bench --jobs 2
  dot4fa build --toolchain ~/rocm --gpu-targets gfx1100,gfx1201
  dot4fa build --container NAME@sha256:DIGEST
  dot4fa build --dry-run          # the commands it would run`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("jobs") && o.Jobs < 1 {
				return fault.New(fault.Usage, "--jobs must be at least 1, not %d", o.Jobs).Hintf("leave it out to choose by cores and free memory")
			}
			if contains(o.Targets, "") {
				return fault.New(fault.Usage, "--target needs the name of a CMake target").Hintf("leave it out to build the recipe's")
			}
			r, err := a.run()
			if err != nil {
				return err
			}
			defer r.Close()
			if selfCheck && r.Recipe.Backend != recipe.HIP {
				return fault.New(fault.Usage, "--self-check runs code for AMD GPUs, which recipe %s does not build", r.Recipe.Name).Hintf("leave it out, or use a recipe such as rdna3")
			}
			inContainer := cmd.Flags().Changed("container")
			if a.dryRun && inContainer {
				return r.PrintCommandsIn(cmd.Context(), image, o)
			}
			if a.dryRun {
				return r.PrintCommands(cmd.Context(), "build", o)
			}
			var d *pipeline.Done
			if inContainer {
				d, err = r.BuildIn(cmd.Context(), image, o)
			} else {
				d, err = r.Build(cmd.Context(), o)
			}
			if err != nil {
				return err
			}
			if err := a.printBuilt(d); err != nil || !selfCheck {
				return err
			}
			return a.checkBuilt(cmd.Context(), r.Recipe, d)
		},
	}
	c.Flags().BoolVar(&selfCheck, "self-check", false, "then run the kernels of the built library on an emulator, as isa --self-check does")
	c.Flags().StringArrayVar(&o.Targets, "target", nil, "CMake `target` to build instead of the recipe's (repeatable)")
	c.Flags().StringVar(&image, "container", "", "build with the toolchain of this `image`, by docker or podman")
	c.Flags().IntVarP(&o.Jobs, "jobs", "j", 0, "compile jobs at once (default: by cores and free memory)")
	return c
}

func (a *app) printBuilt(d *pipeline.Done) error {
	if a.json {
		return a.printJSON(d)
	}
	if d.Nothing() {
		a.report.Say("nothing to do: the build is up to date")
	}
	if d.Command == "" {
		return nil
	}
	if d.CompileOnly {
		a.report.Say("built with a compile-only toolchain: nothing of it runs here, where ROCm's libraries are stubs")
		a.report.Say("pack it with dot4fa dist, and on a machine with ROCm's %s run:", strings.Join(d.Libraries.FromRoot, ", "))
	} else {
		a.report.Say("run it with:")
	}
	_, err := fmt.Fprintln(a.Out, d.Command)
	return err
}

func (a *app) clean() *cobra.Command {
	var onlyBuild bool
	c := &cobra.Command{
		Use:   "clean",
		Short: "Remove the work tree",
		Long: `Removes the work tree with everything dot4fa made in it. A directory that dot4fa
did not make, a file changed by hand or one that somebody put there makes it
refuse, and then nothing is removed. What was fetched stays in the cache.`,
		Example: `  dot4fa clean --recipe cpu
  dot4fa clean --build            # only what was compiled`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := a.run()
			if err != nil {
				return err
			}
			defer r.Close()
			done, err := r.Clean(cmd.Context(), onlyBuild)
			if err != nil {
				return err
			}
			return a.printCleaned(done)
		},
	}
	c.Flags().BoolVar(&onlyBuild, "build", false, "remove only the build directory")
	return c
}
