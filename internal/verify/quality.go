package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"dot4fa/internal/fault"
	"dot4fa/internal/shell"
	"dot4fa/internal/vram"
)

// Quality is how far the predictions of a model move when its cache changes type.
type Quality struct {
	Model   File         `json:"model"`
	Text    File         `json:"text"`
	Backend string       `json:"backend"` // where the layers ran
	Ctxs    []int        `json:"contexts"`
	Chunks  int          `json:"chunks"` // of each context
	Cells   []Cell       `json:"cells"`
	Checks  []CrossCheck `json:"cross_checks"`
	Depth   []Trend      `json:"depth"`
}

// File is a file that a result depends on. Its place is not recorded.
type File struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Cell is one pair of types in one context, against f16/f16 in the same.
type Cell struct {
	K   string `json:"k"` // packed16-mse: scales refitted by least squares
	V   string `json:"v"`
	Ctx int    `json:"context"`
	Compared
	Seconds float64 `json:"seconds"`
	Reused  bool    `json:"reused,omitempty"` // taken from an earlier run
	Command string  `json:"command"`
	Bound   *Bound  `json:"bound,omitempty"`
	Problem string  `json:"problem,omitempty"`
}

func (c Cell) packed() bool { return strings.HasPrefix(c.K, "packed16") }

// Pair is a K type and a V type as the user writes them.
type Pair struct{ K, V string }

func (p Pair) String() string { return p.K + "/" + p.V }

// base is what everything is held against.
var base = Pair{"f16", "f16"}

const mse = "-mse"

// scaleMode is the run-time flag that chooses how the scale of a packed16 block is
// found; `dot4fa env --explain` has it.
const scaleMode = "GGML_CUDA_ROCM_PACKED16_K_SCALE_MODE"

// DefaultTypes is the matrix of types that is measured unless others are asked
// for.
func DefaultTypes() []Pair {
	var out []Pair
	for _, k := range []string{"f16", "q8_0", "packed16", "packed16" + mse} {
		for _, v := range []string{"f16", "q8_0", "q4_0"} {
			if p := (Pair{k, v}); p != base {
				out = append(out, p)
			}
		}
	}
	return out
}

// ParseType reads "K/V"; K may be packed16-mse.
func ParseType(text string) (Pair, error) {
	k, v, _ := strings.Cut(text, "/")
	p, err := vram.ParsePair(strings.TrimSuffix(k, mse) + "/" + v)
	if err != nil {
		return Pair{}, err
	}
	if strings.HasSuffix(k, mse) && !p.Packed() {
		return Pair{}, fault.New(fault.Usage, "%q is not a pair of cache types: only packed16 has -mse", text).Hintf("write packed16-mse/%s", v)
	}
	return Pair{k, v}, nil
}

// runner measures cells.
type runner struct {
	o        *Options
	program  string
	sum      string // of the program and its libraries
	q        *Quality
	store    *store
	total    int // chunks of all runs
	done     int
	progress func(done, total int, what string)
}

// command is the run of llama-perplexity that saves the logits of a pair.
func (r *runner) command(p Pair, ctx int, logits string, divergence bool) shell.Command {
	args := []string{"-m", r.o.Model, "-f", r.o.Text, "-c", strconv.Itoa(ctx), "-b", strconv.Itoa(min(ctx, 2048)), "--chunks", strconv.Itoa(r.o.Chunks),
		"-fa", "on", "-fit", "off", "-ngl", "99", "-ctk", strings.TrimSuffix(p.K, mse), "-ctv", p.V, "--kl-divergence-base", logits}
	if divergence {
		args = append(args, "--kl-divergence")
	}
	if r.o.Threads > 0 {
		args = append(args, "-t", strconv.Itoa(r.o.Threads))
	}
	c := shell.Command{Path: r.program, Args: args}
	if strings.HasPrefix(p.K, "packed16") {
		mode := "absmax"
		if strings.HasSuffix(p.K, mse) {
			mode = "mse"
		}
		c.Env = []string{scaleMode + "=" + mode}
	}
	return c
}

func (r *runner) key(kind string, p Pair, ctx int) string {
	return key("logits 1", kind, r.sum, r.q.Model.SHA256, r.q.Text.SHA256, r.q.Backend, p, ctx, r.o.Chunks)
}

// save runs a pair and leaves its logits in file, whole or not at all.
func (r *runner) save(ctx context.Context, p Pair, c int, file string) error {
	tmp := file + ".part"
	defer os.Remove(tmp)
	cmd := r.command(p, c, tmp, false)
	log := &chunkWriter{count: r.counter(p, c)}
	// The program says how many chunks there are before it computes any.
	run, stop := context.WithCancel(ctx)
	defer stop()
	log.chunks = func(n int) {
		if n < r.o.Chunks {
			stop()
		}
	}
	err := cmd.Run(run, log)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if log.announced > 0 && log.announced < r.o.Chunks {
		return r.fewChunks(log.announced, c)
	}
	if tooShort := shortText(tmp, log.all.Bytes(), c); tooShort != nil {
		return tooShort
	}
	if err != nil {
		return fault.New(fault.VerifyFailed, "llama-perplexity failed with %s at a context of %d%s", p, c, because(err, log.all.Bytes())).Hintf("run it by hand: %s", cmd)
	}
	l, err := openLogits(tmp)
	if err != nil {
		return fault.New(fault.VerifyFailed, "llama-perplexity left no usable logits for %s: %w", p, err).Hintf("run it by hand: %s", cmd)
	}
	defer l.Close()
	if l.Chunks < r.o.Chunks {
		return r.fewChunks(l.Chunks, l.Ctx)
	}
	r.done += r.o.Chunks
	return os.Rename(tmp, file)
}

// fewChunks is the error of a text that has fewer chunks than were asked for.
func (r *runner) fewChunks(n, ctx int) error {
	return fault.New(fault.Usage, "the text holds %d chunks of %d tokens, and %d were asked for", n, ctx, r.o.Chunks).At("%s", r.o.Text).
		Hintf("name a longer text, or --chunks %d", n)
}

func (r *runner) counter(p Pair, ctx int) func(int) {
	return func(n int) { r.progress(min(r.done+n, r.total), r.total, fmt.Sprintf("%s at %d", p, ctx)) }
}

var tokensLine = regexp.MustCompile(`tokenizes to only (\d+) tokens`)

// shortText reports a text that has too few tokens. The program says so, calls it
// a success, and leaves a file with a head only.
func shortText(file string, log []byte, ctx int) error {
	m := tokensLine.FindSubmatch(log)
	info, err := os.Stat(file)
	if m == nil && (err != nil || info.Size() != 12) {
		return nil
	}
	has := "fewer"
	if m != nil {
		has = "only " + string(m[1])
	}
	return fault.New(fault.Usage, "the text is too short: a context of %d needs %d tokens, and it has %s", ctx, 2*ctx, has).
		Hintf("name a longer text with --text, or a smaller --ctx")
}

// because finds what a log says of a failure.
func because(err error, log []byte) string {
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	for _, l := range slices.Backward(lines) {
		if strings.Contains(l, "refused") || strings.Contains(l, " E ") || strings.Contains(l, "error") {
			return ": " + strings.TrimSpace(l)
		}
	}
	return ended(err, log)
}

// measure measures one context: f16/f16 first, then every pair against it.
func (r *runner) measure(ctx context.Context, c int) error {
	baseFile := r.store.file(r.key("file", base, c) + ".logits")
	todo := []Pair{}
	for _, p := range r.o.Types {
		var cell Cell
		if r.store.get(r.key("cell", p, c), &cell) && cell.Problem == "" && len(cell.Bins) > 0 {
			cell.Reused = true
			r.q.Cells = append(r.q.Cells, cell)
			r.done += r.o.Chunks
			continue
		}
		todo = append(todo, p)
	}
	var checks []Pair // to compute; what was stored before is taken whether it was asked for or not
	asked := r.crossChecked(c)
	for _, p := range r.o.Types {
		stored := r.reuseCheck(p, c)
		switch {
		case !slices.Contains(asked, p):
		case stored:
			r.done += r.o.Chunks
		default:
			checks = append(checks, p)
		}
	}
	if len(todo)+len(checks) == 0 {
		r.done += r.o.Chunks
		return nil
	}
	if l, err := openLogits(baseFile); err == nil && !r.o.Fresh {
		l.Close()
		r.done += r.o.Chunks
	} else if err := r.save(ctx, base, c, baseFile); err != nil {
		return err
	}
	for _, p := range todo {
		cell, err := r.cell(ctx, p, c, baseFile)
		if err != nil {
			return err
		}
		r.q.Cells = append(r.q.Cells, cell)
	}
	for _, p := range checks {
		if err := r.crossCheck(ctx, p, c, baseFile); err != nil {
			return err
		}
	}
	return nil
}

// cell measures a pair against the base. A pair that fails is recorded as failed,
// and the others go on; a text that is too short ends the run.
func (r *runner) cell(ctx context.Context, p Pair, c int, baseFile string) (Cell, error) {
	cell := Cell{K: p.K, V: p.V, Ctx: c, Command: portable(r.command(p, c, "LOGITS", false))}
	file := r.store.file("now.logits")
	defer os.Remove(file)
	start := time.Now()
	err := r.save(ctx, p, c, file)
	var f *fault.Error
	switch {
	case err != nil && errors.As(err, &f) && f.Code == fault.VerifyFailed:
		cell.Problem = f.What
		r.done += r.o.Chunks
		return cell, nil
	case err != nil:
		return cell, err
	}
	cell.Seconds = time.Since(start).Seconds()
	compared, err := compare(baseFile, file, r.o.Bins)
	if err != nil {
		return cell, fault.New(fault.Failure, "cannot compare saved logits: %w", err).Hintf("run it again with --fresh")
	}
	cell.Compared = *compared
	return cell, r.store.put(r.key("cell", p, c), cell)
}

// portable writes a command without the places of this machine.
func portable(c shell.Command) string {
	c.Path = filepath.Base(c.Path)
	for i, a := range c.Args {
		if filepath.IsAbs(a) {
			c.Args[i] = filepath.Base(a)
		}
	}
	return c.String()
}

// chunkWriter keeps a log and counts chunks: llama-perplexity writes "[3]4.56,"
// after each.
type chunkWriter struct {
	all       bytes.Buffer
	count     func(int)
	chunks    func(int) // told once how many chunks there are
	announced int
}

var chunksLine = regexp.MustCompile(`calculating perplexity over (\d+) chunks`)

var chunkMark = regexp.MustCompile(`\[(\d+)\]\d+\.\d|(?m:^ +(\d+) +\d+\.\d+ ±)`)

func (w *chunkWriter) Write(p []byte) (int, error) {
	w.all.Write(p)
	if w.announced == 0 && w.chunks != nil && w.all.Len() < 1<<20 {
		if m := chunksLine.FindSubmatch(w.all.Bytes()); m != nil {
			w.announced = atoi(string(m[1]))
			w.chunks(w.announced)
		}
	}
	tail := w.all.Bytes()
	tail = tail[max(0, len(tail)-len(p)-80):]
	if all := chunkMark.FindAllSubmatch(tail, -1); len(all) > 0 && w.count != nil {
		m := all[len(all)-1]
		w.count(atoi(string(m[1]) + string(m[2])))
	}
	return len(p), nil
}
