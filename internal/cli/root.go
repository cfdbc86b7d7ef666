package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dot4fa/internal/fault"
	"dot4fa/internal/input"
	"dot4fa/internal/nearest"
	"dot4fa/internal/recipe"
)

// defaultRecipe is what is built when nothing else is asked for.
const defaultRecipe = "rdna3"

func (a *app) root() *cobra.Command {
	cobra.EnableCommandSorting = false // in the order one uses them
	root := &cobra.Command{
		Use:   "dot4fa",
		Short: "Build llama.cpp with a packed16 K cache and DOT4 attention",
		Long: `dot4fa turns llama.cpp at a pinned commit and a recipe into a patched, built
llama.cpp whose K cache can be packed16 (8-bit, one scale per 32 values) and whose
attention runs on the DOT4 instructions of RDNA3 GPUs.

` + "`dot4fa build`" + ` does all of it. The other commands are its steps and the questions
one has about them. Every step first runs the unfinished steps before it, and
skips what is done already.`,
		Example: `  dot4fa build                              # for an RX 7900 with ROCm
  dot4fa build --recipe cpu                 # the CPU reference, on any machine
  dot4fa build --upstream ~/src/llama.cpp   # fetch from a repository at hand
  dot4fa doctor                             # what keeps it from building here?
  dot4fa check b10573                       # does the series hold there?
  dot4fa status                             # what is done, what is not`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error {
			if err := noneEmpty(cmd, args); err != nil {
				return err
			}
			if f := cmd.Flags().Lookup("dry-run"); f != nil && f.Hidden && f.Changed {
				return noDryRun(cmd.CommandPath())
			}
			if a.rocm == "" {
				return nil
			}
			return input.Dir(a.rocm, "name the directory of a ROCm with --toolchain; dot4fa doctor without it says what there is")
		},
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetHelpTemplate(helpTemplate)
	root.SetFlagErrorFunc(flagError)
	root.AddGroup(
		&cobra.Group{ID: "build", Title: "Build:"},
		&cobra.Group{ID: "series", Title: "The edits:"},
		&cobra.Group{ID: "facts", Title: "Facts:"},
	)
	f := root.PersistentFlags()
	f.SortFlags = false
	f.StringVar(&a.recipe, "recipe", defaultRecipe, "what to build: a recipe's `name` or a file")
	f.StringVar(&a.upstream, "upstream", "", "where llama.cpp comes from: a `URL`, a repository or a directory (default: the recipe's URL, or $DOT4FA_UPSTREAM)")
	f.StringVar(&a.work, "work", "", "the `directory` to build in (default: ./work/RECIPE)")
	f.StringVar(&a.rocm, "toolchain", "", "the `directory` of the ROCm to build with (default: $DOT4FA_ROCM, or the one that is found)")
	f.StringSliceVar(&a.gpuTargets, "gpu-targets", nil, "GPUs to build for instead of the recipe's: `gfx1100,gfx1101`")
	f.BoolVar(&a.json, "json", false, "print the result as JSON")
	f.BoolVar(&a.dryRun, "dry-run", false, "print the commands that would run, and run none")
	_ = root.RegisterFlagCompletionFunc("recipe", a.completeRecipe)
	_ = root.MarkPersistentFlagDirname("work")

	add := func(group string, cmds ...*cobra.Command) {
		for _, c := range cmds {
			c.GroupID = group
			if c.Args == nil {
				c.Args = cobra.NoArgs
			}
			c.Args = usageArgs(c.Args)
			root.AddCommand(c)
		}
	}
	add("build", a.build(), a.fetch(), a.render(), a.apply(), a.unapply(), a.configure(), a.doctor(), a.toolchain(), a.dist(), a.status(), a.clean())
	add("series", a.check(), a.explain(), a.diff(), a.bump(), a.export())
	add("facts", a.recipes(), a.routes(), a.env(), a.isa(), a.verify(), a.bench(), a.vram(), a.makeReport(), a.figures(), a.ci(), a.version())
	for _, name := range []string{"doctor", "status", "explain", "diff", "recipe", "routes", "env", "isa", "report", "figures", "ci matrix", "version"} {
		if c, _, err := root.Find(strings.Fields(name)); err == nil {
			onlyReads(c)
		}
	}
	root.SetHelpCommand(a.help(root))
	root.SetHelpCommandGroupID("facts")
	root.SetCompletionCommandGroupID("facts")
	root.InitDefaultCompletionCmd()
	if c, _, err := root.Find([]string{"completion"}); err == nil {
		c.Args, c.RunE = noCommand, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		for _, shell := range c.Commands() {
			shell.Args = usageArgs(cobra.NoArgs)
		}
	}
	return root
}

// onlyReads takes --dry-run away from a command, and from those below it, that
// changes nothing: of it there is nothing to leave out.
func onlyReads(c *cobra.Command) {
	c.Flags().Bool("dry-run", false, "") // in the place of root's
	_ = c.Flags().MarkHidden("dry-run")
	for _, sub := range c.Commands() {
		onlyReads(sub)
	}
}

func noDryRun(what string) error {
	return fault.New(fault.Usage, "%s changes nothing, and has no --dry-run", what).Hintf("leave --dry-run out")
}

// noCommand refuses arguments where a subcommand is expected, and says which one
// was probably meant.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return unknownCommand(cmd, args[0])
}

func unknownCommand(cmd *cobra.Command, name string) error {
	var known []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			known = append(known, c.Name())
		}
	}
	hint := nearest.Hint(name, known)
	if hint != "" {
		hint += "? "
	}
	return fault.New(fault.Usage, "unknown command %s for %s", name, cmd.CommandPath()).
		Hintf("%scommands: %s", hint, strings.Join(known, ", "))
}

// flagError turns a flag parse error into a usage error that names the nearest
// flag.
func flagError(cmd *cobra.Command, err error) error {
	f := fault.New(fault.Usage, "%s", lowerFirst(err.Error()))
	var unknown *pflag.NotExistError
	if asErr(err, &unknown) {
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				known = append(known, f.Name)
			}
		})
		if near := nearest.Name(unknown.GetSpecifiedName(), known); near != "" {
			return f.Hintf("did you mean --%s? `%s --help` lists the flags", near, cmd.CommandPath())
		}
	}
	return f.Hintf("`%s --help` lists the flags", cmd.CommandPath())
}

// noneEmpty refuses a flag or an argument that is there and empty, as a shell
// makes it of a variable that is not set: what it would have named is not what
// one gets when it is left out. A list may be empty.
func noneEmpty(cmd *cobra.Command, args []string) error {
	what := ""
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Value.Type() == "string" && f.Value.String() == "" {
			what = "--" + f.Name
		}
		if list, ok := f.Value.(pflag.SliceValue); ok && f.Value.Type() == "stringArray" && slices.Contains(list.GetSlice(), "") {
			what = "--" + f.Name
		}
	})
	if slices.Contains(args, "") {
		what = "an argument"
	}
	if what == "" {
		return nil
	}
	return fault.New(fault.Usage, "%s is empty", what).Hintf("leave it out, or give it a value; is a shell variable not set?")
}

// usageArgs gives a positional-argument check the usage exit code.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		var f *fault.Error
		if err == nil || asErr(err, &f) {
			return err
		}
		what := err.Error()
		if cmd.ValidArgs == nil && len(args) > 0 && strings.HasPrefix(what, "unknown command") {
			what = cmd.CommandPath() + " takes no argument, but was given " + strings.Join(args, " ")
		}
		return fault.New(fault.Usage, "%s", what).Hintf("`%s --help` shows how it is called", cmd.CommandPath())
	}
}

func (a *app) help(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Say what a command does",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				if cmd == nil {
					cmd = root
				}
				return unknownCommand(cmd, firstOf(rest, args))
			}
			return cmd.Help()
		},
	}
}

func firstOf(lists ...[]string) string {
	for _, l := range lists {
		if len(l) > 0 {
			return l[0]
		}
	}
	return ""
}

func (a *app) completeRecipe(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	assets, _ := a.assets()
	list, err := recipe.List(assets)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for _, r := range list {
		if r.Backend != "" {
			names = append(names, cobra.CompletionWithDesc(r.Name, r.Summary))
		}
	}
	return names, cobra.ShellCompDirectiveDefault // or a file
}

const helpTemplate = `{{with (or .Long .Short)}}{{. | trimTrailingWhitespaces}}

{{end}}{{if or .Runnable .HasSubCommands}}{{.UsageString}}{{end}}{{if not .HasParent}}
Environment:
  DOT4FA_UPSTREAM   default of --upstream
  DOT4FA_ROCM       default of --toolchain
  DOT4FA_CI, CI     set: look for no GPU
  DOT4FA_CACHE      where fetched commits are kept (default: dot4fa in the user's cache directory)

Exit codes:
  0 ok · 1 failure · 2 usage · 3 an edit does not apply, or the work tree is not as dot4fa left it
  4 a tool, toolchain or permission is missing · 5 the build failed · 6 a verification failed · 130 interrupted
{{end}}`
