package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"dot4fa/internal/fault"
	"dot4fa/internal/pipeline"
)

func (a *app) export() *cobra.Command {
	var out, verify string
	c := &cobra.Command{
		Use:   "export",
		Short: "Write the series as patches for plain git, or check such patches",
		Long: `With --out, writes one patch for each member of the series, made for git am, and
release.json: the base commit and tree, the tree that comes out, and a sha256 of
each file. Applied in a clean checkout of the base they give exactly that tree.
The rendered files are part of it: each belongs to the first member whose edits
name it or a file that includes it, and otherwise to the first that edits
its directory. The same pin and series give the same bytes.

With --verify, checks a directory that somebody else wrote: the files, their
hashes, and that the patches apply strictly to the base and give the tree.`,
		Example: `  dot4fa export --out series
  dot4fa export --recipe cpu --out series-cpu
  dot4fa export --verify series
  git -C llama.cpp checkout b10573 && git -C llama.cpp am "$PWD"/series/*.patch`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if verify != "" && a.dryRun {
				return noDryRun("export --verify")
			}
			if (out == "") == (verify == "") {
				return fault.New(fault.Usage, "export needs --out or --verify, and not both").Hintf("dot4fa export --out series")
			}
			r, err := a.run()
			if err != nil {
				return err
			}
			defer r.Close()
			switch {
			case verify != "":
				return a.verifyExport(cmd, r, verify)
			case a.dryRun:
				fmt.Fprintln(a.Out, r.Command("export", "--out", out))
				return nil
			}
			info, err := r.Export(cmd.Context(), out)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(info)
			}
			for _, p := range info.Patches {
				fmt.Fprintf(a.Out, "%s  %s\n", p.SHA256[:12], p.File)
			}
			fmt.Fprintf(a.Out, "base %s (%s), tree %s\ntip  tree %s\n", info.Base.Commit, info.Base.Tag, info.Base.Tree, info.Tip.Tree)
			a.report.Say("apply it in a clean checkout of the base with: %s", info.Apply)
			return nil
		},
	}
	c.Flags().StringVar(&out, "out", "", "write the patches to this `directory`: a new or empty one, or that of an earlier export")
	c.Flags().StringVar(&verify, "verify", "", "check the patches in this `directory`")
	_ = c.MarkFlagDirname("out")
	_ = c.MarkFlagDirname("verify")
	return c
}

func (a *app) verifyExport(cmd *cobra.Command, r *pipeline.Run, dir string) error {
	v, err := r.VerifyExport(cmd.Context(), dir)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(v)
	}
	base := v.Info.Base
	fmt.Fprintf(a.Out, "%s: %d patches for %s (%s) change %d files and give tree %s\n", dir, len(v.Info.Patches), base.Commit[:10], base.Tag, len(v.Files), v.Info.Tip.Tree)
	if v.Ours {
		fmt.Fprintf(a.Out, "they are what this dot4fa exports for recipe %s\n", r.Recipe.Name)
	} else {
		fmt.Fprintf(a.Out, "they are not what this dot4fa exports for recipe %s: made by %s for recipe %s\n", r.Recipe.Name, v.Info.Tool, v.Info.Recipe.Name)
	}
	return nil
}
