package cli

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"dot4fa/internal/fault"
	"dot4fa/internal/pipeline"
)

func (a *app) explain() *cobra.Command {
	return &cobra.Command{
		Use:   "explain EDIT|FILE[:LINE]",
		Short: "Say which edit made a line, and why",
		Long: `Says where an edit goes, what it is for and when it can go; for a file, all edits
in it; for FILE:LINE, the edit that made this line of the edited file. A path may
be that of a file in the work tree.`,
		Example: `  dot4fa explain h.op
  dot4fa explain ggml/include/ggml.h
  dot4fa explain work/cpu/ggml/src/ggml.c:1043`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fault.New(fault.Usage, "explain takes one edit or file").Hintf("`dot4fa check` lists the edits with their files")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := a.run()
			if err != nil {
				return err
			}
			defer r.Close()
			x, err := r.Explain(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(x)
			}
			a.printExplanation(x)
			return nil
		},
	}
}

func (a *app) printExplanation(x *pipeline.Explanation) {
	if x.Line > 0 {
		fmt.Fprintf(a.Out, "%s: %s\n\n", x.Subject, strings.TrimSpace(x.Text))
	}
	switch {
	case x.Source != "":
		fmt.Fprintf(a.Out, "%s is rendered from %s\n", x.File, x.Source)
	case len(x.Edits) == 0:
		fmt.Fprintln(a.Out, "this line is upstream's")
	}
	for i, e := range x.Edits {
		if i > 0 {
			fmt.Fprintln(a.Out)
		}
		at := ""
		if len(e.Lines) > 0 {
			at = fmt.Sprintf(", upstream line %d", e.Lines[0])
		}
		status := string(e.Status)
		if e.Detail != "" {
			status += ": " + e.Detail
		}
		fmt.Fprintf(a.Out, "%s (%s)\n", e.ID, e.Where)
		for _, row := range [][2]string{
			{"file", e.File + at}, {"place", e.Place}, {"do", e.Do}, {"status", status},
			{"why", e.Why}, {"part of", e.Title}, {"because", e.MemberWhy}, {"until", e.RemoveWhen},
		} {
			text := strings.Join(strings.Fields(row[1]), " ")
			fmt.Fprintf(a.Out, "  %-8s %s\n", row[0], strings.Join(wrap(text, 90), "\n           "))
		}
	}
}

// wrap breaks text into lines of at most width characters.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

func (a *app) diff() *cobra.Command {
	var member string
	c := &cobra.Command{
		Use:   "diff",
		Short: "Show what the series does to llama.cpp, as a diff",
		Long: `Prints the unified diff between upstream at the pin and the edited files, for the
whole series or one member of it. Rendered files are not part of it.`,
		Example: `  dot4fa diff --recipe cpu
  dot4fa diff --member 040-kv-cache.yaml
  dot4fa diff --recipe cpu > packed16.diff`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := a.run()
			if err != nil {
				return err
			}
			defer r.Close()
			text, err := r.Diff(cmd.Context(), member)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(map[string]string{"diff": string(text)})
			}
			if a.color {
				text = colored(text)
			}
			_, err = a.Out.Write(text)
			return err
		},
	}
	c.Flags().StringVar(&member, "member", "", "only what this `member` of patches/ changes")
	return c
}

// colored colours a diff for a terminal.
func colored(diff []byte) []byte {
	var b bytes.Buffer
	for line := range bytes.SplitAfterSeq(diff, []byte{'\n'}) {
		code := ""
		switch {
		case bytes.HasPrefix(line, []byte("diff ")), bytes.HasPrefix(line, []byte("--- ")), bytes.HasPrefix(line, []byte("+++ ")):
			code = "1"
		case bytes.HasPrefix(line, []byte("@@")):
			code = "36"
		case bytes.HasPrefix(line, []byte("+")):
			code = "32"
		case bytes.HasPrefix(line, []byte("-")):
			code = "31"
		}
		if code == "" {
			b.Write(line)
			continue
		}
		text, end := bytes.CutSuffix(line, []byte{'\n'})
		fmt.Fprintf(&b, "\x1b[%sm%s\x1b[m", code, text)
		if end {
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}
