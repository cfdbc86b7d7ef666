package hostrun

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"dot4fa/internal/fault"
	"dot4fa/internal/recipe"
	"dot4fa/internal/standin"
)

//go:embed harness
var harness embed.FS

// KernelOptions say which of the recipe's kernels to compile.
type KernelOptions struct {
	Options                                // Compiler, Dir, Traced, Jobs; Defines choose the configuration
	Mutate  func(name, text string) string // changes the text of a kernel file before it is compiled; nil: none
	Away    func(*Away) error              // runs the launches instead of the program, which is then compiled without checks; nil: none
}

// AMD selects what the kernels do on AMD GPUs where that differs from NVIDIA GPUs and can run here: RDNA3's matrix tiles in prefill,
// Q from memory, one lane per K row, weights in f16.
var AMD = []string{"PACKED16_MMA_LAYOUT=2", "PACKED16_DECODE_MATRIX=0", "PACKED16_DECODE_LPK=1", "PACKED16_Q_IN_SMEM=0", "PACKED16_PV_DOT2=1"}

// CompileKernels renders r's kernels from assets and compiles them with the harness: head sizes and V types of the recipe.
func CompileKernels(ctx context.Context, r *recipe.Recipe, assets fs.FS, o KernelOptions) (*Program, error) {
	dir := filepath.Join(o.Dir, "kernels")
	names, err := writeKernels(dir, r, assets, o.Mutate)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if o.Away != nil {
			break
		}
		if err := translate(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	own := filepath.Join(o.Dir, "harness")
	if err := os.CopyFS(o.Dir, harness); err != nil {
		return nil, err
	}
	head := ""
	if o.Away != nil {
		if err := o.leave(dir, own, names); err != nil {
			return nil, err
		}
		head = "#include \"away_launch.h\"\n"
	}
	o.Include = append(o.Include, dir, own)
	o.Sources = append(o.Sources, filepath.Join(own, "main.cpp"))
	o.Plain = append(o.Plain, filepath.Join(own, "problem.cpp"))
	for _, v := range r.Kernel.VTypes {
		unit := filepath.Join(own, "v-"+v+".cpp")
		text := head + fmt.Sprintf("#include \"packed16-v-%s.cu\"\n#define HARNESS_V %s\n#include \"instance.inc\"\n", v, v)
		if err := os.WriteFile(unit, []byte(text), 0o644); err != nil {
			return nil, err
		}
		o.Sources = append(o.Sources, unit)
	}
	o.Name = "kernels-run"
	p, err := Compile(ctx, o.Options)
	if err == nil {
		p.away = o.Away
	}
	return p, err
}

// writeKernels renders r's kernels into dir, each changed by mutate unless that is nil, and returns their names.
func writeKernels(dir string, r *recipe.Recipe, assets fs.FS, mutate func(name, text string) string) ([]string, error) {
	names, err := standin.WriteKernels(dir, r, assets)
	if err != nil || mutate == nil {
		return names, err
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, []byte(mutate(name, string(data))), 0o644); err != nil {
			return nil, err
		}
	}
	return names, nil
}

var launcher = []byte("hostrun::launcher($1, $2)(")

var launchSyntax = regexp.MustCompile(`(?s)(\w+(?:<[^<>;]*>)?)<<<(.*?)>>>\(`)

// translate turns the launches of a file, kernel<<<grid, block, …>>>(arguments), into plain C++ as nvcc does.
func translate(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, launchSyntax.ReplaceAll(data, launcher), 0o644)
}

// Case is one attention call: the fields of harness/main.cpp, "d=256 nk=512 mask=causal …".
type Case string

// Outcome is what a case gave.
type Outcome struct {
	NMSE      float64  `json:"nmse"`       // against the float64 answer from the dequantised Q, K and V
	NotFinite int      `json:"not_finite"` // outputs that are NaN or infinite
	NotZero   int      `json:"not_zero"`   // outputs of rows without a visible cell that are not +0
	DP4A      int64    `json:"dp4a"`       // dp4a executed
	Skipped   int64    `json:"skipped"`    // barriers left out on request
	Rows      []string `json:"rows"`       // hash of the bits of each output row, by sequence, then query
}

// Field returns a field of the case, or "" when it is left at its default.
func (c Case) Field(name string) string {
	for _, word := range strings.Fields(string(c)) {
		if value, ok := strings.CutPrefix(word, name+"="); ok {
			return value
		}
	}
	return ""
}

// Tolerance is the largest NMSE the contract allows for the case (packed16.md section 7).
func (c Case) Tolerance() float64 {
	if c.Field("v") == "f16" {
		return 1e-6
	}
	return 1e-5
}

// RunCases runs cases in `jobs` processes and returns their outcomes in order. Consecutive
// cases with the same data stay in one process. A run that was stopped - a race, a
// divergence, a sanitizer - is an error with the case and what stopped it.
func (p *Program) RunCases(ctx context.Context, cases []Case, jobs int) ([]Outcome, error) {
	out := make([]Outcome, len(cases))
	errs := make(chan error, jobs)
	jobs = max(1, min(jobs, len(cases)))
	for j := range jobs {
		lo, hi := j*len(cases)/jobs, (j+1)*len(cases)/jobs
		go func() { errs <- p.runSlice(ctx, cases[lo:hi], out[lo:hi]) }()
	}
	var first error
	for range jobs {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	return out, first
}

func (p *Program) runSlice(ctx context.Context, cases []Case, out []Outcome) error {
	var in bytes.Buffer
	for _, c := range cases {
		fmt.Fprintln(&in, c)
	}
	r, err := p.Run(ctx, in.Bytes())
	if err != nil {
		return err
	}
	lines := bytes.Split(bytes.TrimSpace(r.Stdout), []byte("\n"))
	if len(r.Stdout) == 0 {
		lines = nil
	}
	if r.Status != 0 || len(lines) != len(cases) {
		at := "after the last case"
		if len(lines) < len(cases) {
			at = string(cases[len(lines)])
		}
		return fault.New(fault.VerifyFailed, "stopped with status %d\n%s", r.Status, strings.TrimSpace(r.Stderr)).At("%s", at)
	}
	for i, line := range lines {
		if err := json.Unmarshal(line, &out[i]); err != nil {
			return fault.New(fault.Failure, "the harness printed %q: %w", line, err).At("%s", cases[i])
		}
	}
	return nil
}

// Judge returns what is wrong with an outcome, or nil.
func (c Case) Judge(o Outcome) error {
	var wrong []string
	if o.NotFinite != 0 {
		wrong = append(wrong, fmt.Sprintf("%d outputs are not finite", o.NotFinite))
	}
	if o.NotZero != 0 {
		wrong = append(wrong, fmt.Sprintf("%d outputs of rows that see nothing are not zero", o.NotZero))
	}
	if !(o.NMSE <= c.Tolerance()) && o.NotFinite == 0 {
		wrong = append(wrong, fmt.Sprintf("NMSE is %.3g, the tolerance is %.3g", o.NMSE, c.Tolerance()))
	}
	if wrong == nil {
		return nil
	}
	return fault.New(fault.VerifyFailed, "%s", strings.Join(wrong, "; ")).At("%s", c)
}
