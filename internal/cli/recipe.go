package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"dot4fa/internal/recipe"
)

func (a *app) recipes() *cobra.Command {
	c := &cobra.Command{
		Use:   "recipe",
		Short: "Show what can be built",
		Example: `  dot4fa recipe list
  dot4fa recipe show cpu
  dot4fa recipe schema --json > recipe.schema.json`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(
		&cobra.Command{Use: "list", Short: "List the recipes", Args: usageArgs(cobra.NoArgs),
			Example: "  dot4fa recipe list\n  dot4fa recipe list --json",
			RunE:    func(*cobra.Command, []string) error { return a.recipeList() }},
		&cobra.Command{Use: "show [NAME|FILE]", Short: "Show a recipe with everything it inherits", Args: usageArgs(cobra.MaximumNArgs(1)),
			Example:           "  dot4fa recipe show rdna3\n  dot4fa recipe show ./mine.yaml --json",
			ValidArgsFunction: a.completeRecipe,
			RunE: func(_ *cobra.Command, args []string) error {
				if len(args) == 1 {
					a.recipe = args[0]
				}
				return a.recipeShow()
			}},
		&cobra.Command{Use: "schema", Short: "Describe every key of a recipe", Args: usageArgs(cobra.NoArgs),
			Long:    "Prints what each key means, takes and defaults to; with --json a JSON Schema for editors.",
			Example: "  dot4fa recipe schema\n  dot4fa recipe schema --json > recipe.schema.json",
			RunE:    func(*cobra.Command, []string) error { return a.recipeSchema() }},
	)
	return c
}

func (a *app) recipeList() error {
	assets, _ := a.assets()
	list, err := recipe.List(assets)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]any{"recipes": list})
	}
	rows := [][]string{{"RECIPE", "BACKEND", "SUMMARY"}}
	for _, r := range list {
		backend := string(r.Backend)
		if backend == "" {
			backend = "-"
		}
		rows = append(rows, []string{r.Name, backend, r.Summary})
		if r.Err != nil {
			a.note("%s cannot be used: %s", r.Name, r.Err)
		}
	}
	return a.table(rows)
}

func (a *app) recipeShow() error {
	r, err := a.loadRecipe()
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(r)
	}
	rows := [][]string{{"KEY", "VALUE", "FROM"}}
	for _, v := range r.Values() {
		from := "default"
		if pos, ok := r.Origin(v.Key); ok {
			from = pos.String()
		}
		rows = append(rows, []string{v.Key, v.Value, from})
	}
	return a.table(rows)
}

func (a *app) recipeSchema() error {
	if !a.json {
		return recipe.WriteSchema(a.Out)
	}
	data, err := recipe.JSONSchema()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.Out, "%s\n", data)
	return err
}
