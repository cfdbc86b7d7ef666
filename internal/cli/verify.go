package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"dot4fa/internal/fault"
	"dot4fa/internal/nearest"
	"dot4fa/internal/output"
	"dot4fa/internal/pipeline"
	"dot4fa/internal/shell"
	"dot4fa/internal/verify"
)

// verifyFlags are the flags of verify as they are given.
type verifyFlags struct {
	o          verify.Options
	types      []string
	svg, write string
}

func (a *app) verify() *cobra.Command {
	var f verifyFlags
	c := &cobra.Command{
		Use:   "verify",
		Short: "Check what was built: its op tests, its cache's states, and the quality of its predictions",
		Long: `Runs four parts for the build of the recipe, in this order:

  ops      the cases of test-backend-ops for packing and packed16 attention, on
           every backend, the CPU too
  state    test-packed16-state: states saved, restored, copied, refused
  depth    the error of one attention call for 256 to 131,072 cells, computed from
           the model of the format: it says nothing of the build
  quality  how far the predictions of a model move from those with an f16/f16
           cache: mean KL divergence for each pair of types and each context, and
           by position in the context

Quality is computed from the logits that llama-perplexity saves, and one cell is
held against llama-perplexity's own figure. Each finished cell is kept in the work
tree, under a name made of programs, model and text, so that an interrupted run
goes on. What does not hold its bound ends with exit code 6. A part that is left
out is listed as left out.

The parts state and quality need --model, a GGUF file with heads of 64, 128 or
256, and --text, plain text that the model has not learned from: as many tokens as
the largest of --ctx times --chunks. Nothing is downloaded. Where there are none,
--skip state,quality runs the rest.`,
		Example: `  dot4fa verify --recipe cpu --model MODEL.gguf --text TEXT
  dot4fa verify --recipe cpu --skip state,quality
  dot4fa verify --model MODEL.gguf --text TEXT --ctx 512,2048,8192 --chunks 4
  dot4fa verify --model MODEL.gguf --text TEXT --skip ops,state,depth --types packed16/f16,packed16/q4_0 --svg kld.svg
  dot4fa verify --quick --skip state,quality --json`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runVerify(cmd, f) },
	}
	s := c.Flags()
	s.SortFlags = false
	s.StringVar(&f.o.Model, "model", "", "the model, a GGUF `file`")
	s.StringVar(&f.o.Text, "text", "", "the text `file` whose tokens are predicted")
	s.StringSliceVar(&f.types, "types", nil, "pairs of `K/V` types to measure; packed16-mse refits the scales (default: 11 pairs of f16, q8_0, packed16, packed16-mse with f16, q8_0, q4_0)")
	s.IntSliceVar(&f.o.Ctxs, "ctx", []int{2048}, "`contexts` to measure at, each by itself")
	s.IntVar(&f.o.Chunks, "chunks", 6, "chunks of text for each context")
	s.IntVar(&f.o.Bins, "bins", 8, "ranges of positions to tell apart in each context")
	s.IntVar(&f.o.Threads, "threads", 0, "threads of llama-perplexity (default: its own choice)")
	s.StringVar(&f.o.CrossCheck, "cross-check", "first", "cells that llama-perplexity computes too: first, all or none")
	s.StringSliceVar(&f.o.Skip, "skip", nil, "`parts` to leave out: "+strings.Join(verify.Parts, ", "))
	s.BoolVar(&f.o.Quick, "quick", false, "of the attention cases only head size 256 with 6 query heads a KV head, and depth up to 16,384")
	s.BoolVar(&f.o.Fresh, "fresh", false, "measure again what earlier runs have measured")
	s.StringVar(&f.svg, "svg", "", "draw the divergence by types and position, and the error by depth, into this `file`")
	s.StringVar(&f.write, "write", "", "also write the report as JSON into this `file`")
	return c
}

func (a *app) runVerify(cmd *cobra.Command, f verifyFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	r, err := a.run()
	if err != nil {
		return err
	}
	defer r.Close()
	o := f.o
	o.Program, o.Report = r.Program, a.report
	o.Dir = filepath.Join(r.Work, ".dot4fa", "verify")
	up := r.Recipe.Upstream
	o.About = verify.About{Tool: version(), Recipe: r.Recipe.Name, Upstream: up.Tag, Commit: up.Commit, Platform: runtime.GOOS + "/" + runtime.GOARCH}
	o.Model, o.Text = small(o.Model, r, "kjv-d256-gqa6-f16.gguf"), small(o.Text, r, "kjv-heldout.txt")
	for _, file := range []*string{&o.Model, &o.Text} {
		if *file != "" { // the programs run in other directories
			if abs, err := filepath.Abs(*file); err == nil {
				*file = abs
			}
		}
	}
	if a.dryRun {
		return a.printCommands(verify.Commands(o))
	}
	rep, err := verify.Run(cmd.Context(), o)
	if err != nil {
		return err
	}
	if f.svg != "" {
		if err := output.Write(f.svg, rep.SVG(), 0o666); err != nil {
			return err
		}
	}
	if f.write != "" {
		if err := rep.Write(f.write); err != nil {
			return err
		}
	}
	if a.json {
		err = a.printJSON(rep)
	} else {
		err = rep.Print(a.Out)
	}
	if err != nil || len(rep.Failures) == 0 {
		return err
	}
	return fault.New(fault.VerifyFailed, "%s", strings.Join(rep.Failures, "\n  ")).
		Hintf("the runs' commands are in --json; `dot4fa doctor` looks at the machine")
}

// printCommands prints the commands that a run would be made of.
func (a *app) printCommands(list []shell.Command, err error) error {
	for _, c := range list {
		fmt.Fprintln(a.Out, c)
	}
	return err
}

// check turns the text of the flags into options, or says what is wrong.
func (f *verifyFlags) check() error {
	usage := func(hint, format string, args ...any) error {
		return fault.New(fault.Usage, format, args...).Hintf("%s", hint)
	}
	for _, part := range f.o.Skip {
		if !contains(verify.Parts, part) {
			hint := nearest.Hint(part, verify.Parts)
			if hint != "" {
				hint += "? "
			}
			return usage(hint+"parts: "+strings.Join(verify.Parts, ", "), "unknown part %s", part)
		}
	}
	if !contains([]string{"first", "all", "none"}, f.o.CrossCheck) {
		return usage("allowed: first, all, none", "--cross-check is %s", f.o.CrossCheck)
	}
	for _, n := range f.o.Ctxs {
		if n < 128 || n > 1<<22 {
			return usage("for example --ctx 512,2048", "--ctx must be at least 128, not %d", n)
		}
	}
	if len(f.o.Ctxs) == 0 || f.o.Chunks < 1 || f.o.Chunks > 1<<16 || f.o.Bins < 1 || f.o.Bins > 64 {
		return usage("leave them out for the defaults", "--chunks must be 1 to 65536, --bins 1 to 64")
	}
	if f.o.Threads < 0 {
		return usage("leave it out for llama.cpp's own choice", "--threads is %d", f.o.Threads)
	}
	slices.Sort(f.o.Ctxs)
	f.o.Ctxs = slices.Compact(f.o.Ctxs)
	f.o.Types = verify.DefaultTypes()
	if len(f.types) > 0 {
		f.o.Types = nil
		for _, text := range f.types {
			p, err := verify.ParseType(strings.TrimSpace(text))
			if err != nil {
				return err
			}
			if p.String() == "f16/f16" {
				continue // always measured: it is what the others are held against
			}
			if !slices.Contains(f.o.Types, p) {
				f.o.Types = append(f.o.Types, p)
			}
		}
		if len(f.o.Types) == 0 {
			return usage("for example --types packed16/f16", "there is nothing to hold against f16/f16")
		}
	}
	return nil
}

// small finds the small model or its text, which those who work on dot4fa have,
// unless one was named.
func small(given string, r *pipeline.Run, name string) string {
	if given != "" {
		return given
	}
	roots := []string{"."}
	if r.Copy != "" {
		roots = append(roots, r.Copy)
	}
	for _, root := range roots {
		for _, dir := range []string{"data", filepath.Join("..", "shared", "data")} {
			if file := filepath.Join(root, dir, name); isFileAt(file) {
				return file
			}
		}
	}
	return ""
}

func isFileAt(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}
