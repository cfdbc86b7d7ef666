package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dot4fa/internal/bench"
	"dot4fa/internal/build"
	"dot4fa/internal/fault"
	"dot4fa/internal/output"
	"dot4fa/internal/pipeline"
	"dot4fa/internal/recipe"
	"dot4fa/internal/report"
	"dot4fa/internal/verify"
)

func (a *app) makeReport() *cobra.Command {
	var out string
	var without []string
	c := &cobra.Command{
		Use:   "report",
		Short: "Put machine, build, verification and measurements into one file to share",
		Long: `Runs version, doctor, status, routes and isa --run, with isa --self-check where
a HIP library was built, takes the last results of verify and bench from the work
tree, and writes all of it as one Markdown page, with the same as JSON at its end. Paths in home directories, the user's name and
the machine's are taken out; read it before you give it away all the same.

What is missing is listed with the command that makes it. A result that was made
with other programs than those in the work tree is marked.

That is how proof from hardware that this project has not got comes back.`,
		Example: `  dot4fa report --out report.md
  dot4fa report --recipe cpu --without isa
  dot4fa report --json | jq '.parts[] | {name, state}'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, w := range without {
				if w != "isa" {
					return fault.New(fault.Usage, "unknown part %s", w).Hintf("only isa can be left out: the others take no time")
				}
			}
			rep, err := a.collect(cmd.Context(), without)
			if err != nil {
				return err
			}
			return a.writeReport(rep, out)
		},
	}
	c.Flags().StringVar(&out, "out", "", "write it to this `file` instead of stdout")
	c.Flags().StringSliceVar(&without, "without", nil, "`parts` to leave out: isa, which takes half a minute and clang")
	return c
}

func (a *app) writeReport(rep *report.Report, file string) error {
	var b bytes.Buffer
	if a.json {
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		if err := enc.Encode(rep); err != nil {
			return err
		}
	} else if err := rep.Markdown(&b); err != nil {
		return err
	}
	for _, p := range rep.Missing() {
		a.note("the report lacks %s: %s", p.Name, p.Command)
	}
	if file == "" {
		_, err := a.Out.Write(b.Bytes())
		return err
	}
	if err := output.Write(file, b.Bytes(), 0o666); err != nil {
		return err
	}
	a.report.Say("wrote %s: read it before you give it away", file)
	return nil
}

// collect makes the parts of a report.
func (a *app) collect(ctx context.Context, without []string) (*report.Report, error) {
	r, err := a.run()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	names := map[string]string{r.Work: "WORK"}
	if r.Copy != "" {
		names[r.Copy] = "DOT4FA"
	}
	s := report.NewScrubber(names)
	rep := &report.Report{Format: 1, Made: time.Now().UTC().Format(time.RFC3339)}
	flags := globalFlags(a, r.Work)
	type question struct {
		name string
		args []string
	}
	questions := []question{{"version", []string{"version"}}, {"machine", []string{"doctor"}}, {"work tree", []string{"status"}},
		{"routes", []string{"routes"}}, {"machine code", []string{"isa", "--run"}}}
	if library := filepath.Join(build.TreeOf(r.Work).Bin(), "libggml-hip.so"); isFileAt(library) {
		questions = append(questions, question{"machine code as built", []string{"isa", "--self-check", library}})
	}
	for _, part := range questions {
		if contains(without, part.args[0]) {
			rep.Parts = append(rep.Parts, report.Part{Name: part.name, Command: s.Text(a.command(part.args)), State: report.Missing, Note: "it was left out"})
			continue
		}
		if part.args[0] == "isa" && r.Recipe.Backend == recipe.CPU {
			rep.Parts = append(rep.Parts, report.Part{Name: part.name, Command: s.Text(a.command(part.args)), State: report.NotFor, Note: "the recipe has no kernels for a GPU"})
			continue
		}
		a.report.Status("report  %s", strings.Join(part.args, " "))
		p, err := a.ask(ctx, part.args, flags, s)
		if err != nil {
			return nil, err
		}
		p.Name = part.name
		rep.Parts = append(rep.Parts, p)
	}
	rep.Parts = append(rep.Parts, a.verified(r, s))
	rep.Parts = append(rep.Parts, a.benched(r, s)...)
	a.report.Clear()
	return rep, nil
}

// command is how a user calls a command for this recipe.
func (a *app) command(args []string) string {
	return "dot4fa " + strings.Join(args, " ") + " --recipe " + filepath.Base(a.recipe)
}

// ask runs a command of this program, as text and as JSON. isa, which computes for
// half a minute, is run once, as text.
func (a *app) ask(ctx context.Context, args, flags []string, s *report.Scrubber) (report.Part, error) {
	p := report.Part{Command: s.Text(a.command(args)), State: report.OK}
	run := func(more ...string) (out []byte, code int, problem string) {
		var stdout, stderr bytes.Buffer
		code = Run(ctx, a.embedded, Streams{a.In, &stdout, &stderr}, append(append(append([]string{}, args...), flags...), more...))
		return stdout.Bytes(), code, s.Text(lastError(stderr.String()))
	}
	text, code, problem := run()
	if ctx.Err() != nil {
		return p, ctx.Err()
	}
	p.Text = s.Text(string(text))
	if code != fault.OK {
		p.State, p.Note = report.Failed, problem
		if len(text) == 0 { // it could not answer
			p.State = report.Missing
		}
	}
	if args[0] == "isa" || p.State == report.Missing {
		return p, nil
	}
	data, _, problem := run("--json")
	var err error
	if p.Data, err = s.JSON(data); err != nil {
		p.State, p.Note = report.Missing, problem
	}
	return p, ctx.Err()
}

// lastError is the error that a command printed.
func lastError(stderr string) string {
	_, text, ok := strings.Cut(stderr, "dot4fa: error: ")
	if !ok {
		return strings.TrimSpace(stderr)
	}
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// verified takes the last result of verify.
func (a *app) verified(r *pipeline.Run, s *report.Scrubber) report.Part {
	p := report.Part{Name: "verification", Command: a.command([]string{"verify"}), State: report.Missing}
	v, err := verify.Load(filepath.Join(r.Work, ".dot4fa", "verify"))
	if err != nil {
		if !os.IsNotExist(err) {
			p.Note = s.Text(err.Error())
		}
		return p
	}
	p.State, p.Made = report.OK, v.Made
	if len(v.Failures) > 0 {
		p.State = report.Failed
	}
	if program, err := r.Program("test-backend-ops"); err != nil || !v.Of(program) {
		p.Note = "made with other programs than those in the work tree"
	}
	var text bytes.Buffer
	err = v.Print(&text)
	return filled(p, text.String(), v, err, s)
}

// benched takes the stored runs of bench.
func (a *app) benched(r *pipeline.Run, s *report.Scrubber) []report.Part {
	files, _ := filepath.Glob(filepath.Join(r.Work, ".dot4fa", "bench", "*.json"))
	sort.Strings(files)
	var out []report.Part
	for _, file := range files {
		p := report.Part{Name: "speed, " + strings.TrimSuffix(filepath.Base(file), ".json"), Command: a.command([]string{"bench"}), State: report.OK}
		b, err := bench.Load(file)
		if err != nil {
			p.State, p.Note = report.Missing, s.Text(err.Error())
			out = append(out, p)
			continue
		}
		var text bytes.Buffer
		err = b.Print(&text)
		out = append(out, filled(p, text.String(), b, err, s))
	}
	if len(out) == 0 {
		out = []report.Part{{Name: "speed", Command: a.command([]string{"bench"}), State: report.Missing}}
	}
	return out
}

// filled gives a part its text and data.
func filled(p report.Part, text string, v any, err error, s *report.Scrubber) report.Part {
	data, jsonErr := json.Marshal(v)
	if err == nil {
		err = jsonErr
	}
	if err == nil {
		p.Data, err = s.JSON(data)
	}
	if err != nil {
		p.State, p.Note = report.Missing, s.Text(err.Error())
		return p
	}
	p.Text = s.Text(text)
	return p
}
