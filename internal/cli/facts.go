package cli

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"dot4fa/internal/fault"
	"dot4fa/internal/nearest"
	"dot4fa/internal/routes"
)

func (a *app) routes() *cobra.Command {
	s := routes.Canonical(0, 0)
	var shape bool
	c := &cobra.Command{
		Use:   "routes",
		Short: "Show which kernel attention takes, and why",
		Long: `Prints the table of routes of the kernels that the recipe builds. With --nq and
--nk it says which one a call of this shape takes, and why. The environment flags
(see dot4fa env) of the current environment count.`,
		Example: `  dot4fa routes
  dot4fa routes --nq 1 --nk 4096
  dot4fa routes --nq 512 --nk 8192 --d 128 --gqa 4 --v q8_0`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := a.loadRecipe()
			if err != nil {
				return err
			}
			env, err := routes.ParseEnv(r.Kernel, os.LookupEnv)
			if err != nil {
				return err
			}
			for _, name := range []string{"nq", "nk", "d", "gqa", "v", "k"} {
				shape = shape || cmd.Flags().Changed(name)
			}
			if !shape {
				return routes.PrintTable(a.Out, r.Kernel, env, a.json)
			}
			if s.NQ <= 0 || s.NK <= 0 {
				return fault.New(fault.Usage, "a shape needs --nq and --nk, both greater than 0").Hintf("for example --nq 1 --nk 4096")
			}
			s.DV = s.D
			return routes.PrintRoute(a.Out, s, r.Kernel, env, a.json)
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.IntVar(&s.NQ, "nq", 0, "query rows")
	f.IntVar(&s.NK, "nk", 0, "KV cells")
	f.IntVar(&s.D, "d", s.D, "head size")
	f.IntVar(&s.GQA, "gqa", s.GQA, "query heads per KV head")
	f.StringVar(&s.V, "v", s.V, "`type` of the V cache")
	f.StringVar(&s.K, "k", s.K, "`type` of the K cache")
	return c
}

func (a *app) env() *cobra.Command {
	o := routes.EnvOptions{}
	var explain bool
	c := &cobra.Command{
		Use:   "env",
		Short: "Print the environment flags, and what they do",
		Long: `Prints the environment that the recipe's programs need. For the recipes that come
with dot4fa that is nothing: -ctk packed16 is enough. --seed prints the list of
the document this project began with.`,
		Example: `  dot4fa env --explain
  dot4fa env --seed
  dot4fa env --format systemd`,
		RunE: func(*cobra.Command, []string) error {
			r, err := a.loadRecipe()
			if err != nil {
				return err
			}
			if explain {
				return routes.PrintExplain(a.Out, r.Kernel, a.json)
			}
			if a.json {
				o.Format = "json"
			}
			if !contains(routes.Formats, o.Format) {
				hint := ""
				if near := nearest.Hint(o.Format, routes.Formats); near != "" {
					hint = near + "? "
				}
				return fault.New(fault.Usage, "unknown format %s", o.Format).Hintf("%sallowed: %s", hint, strings.Join(routes.Formats, ", "))
			}
			return routes.PrintEnv(a.Out, a.Err, r, o)
		},
	}
	c.Flags().StringVar(&o.Format, "format", "shell", "how it is written: "+strings.Join(routes.Formats, ", "))
	c.Flags().BoolVar(&o.Seed, "seed", false, "the seed document's list instead of the recipe's")
	c.Flags().BoolVar(&explain, "explain", false, "say what every flag does")
	return c
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// version is dot4fa's own, as the lock records it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	v := info.Main.Version
	if v == "" || v == "(devel)" {
		v = "devel"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && v == "devel" {
			v += "-" + s.Value[:min(12, len(s.Value))]
		}
	}
	return v
}

func (a *app) version() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version, and the llama.cpp it is pinned to",
		Example: "  dot4fa version\n  dot4fa version --json",
		RunE: func(*cobra.Command, []string) error {
			r, err := a.loadRecipe()
			if err != nil {
				return err
			}
			platform := runtime.GOOS + "/" + runtime.GOARCH
			if a.json {
				return a.printJSON(map[string]string{"version": version(), "go": runtime.Version(), "platform": platform,
					"recipe": r.Name, "upstream_tag": r.Upstream.Tag, "upstream_commit": r.Upstream.Commit})
			}
			_, err = fmt.Fprintf(a.Out, "dot4fa %s %s %s\nllama.cpp %s %s (recipe %s)\n",
				version(), runtime.Version(), platform, r.Upstream.Tag, r.Upstream.Commit, r.Name)
			return err
		},
	}
}
