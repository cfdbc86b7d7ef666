package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"dot4fa/internal/fault"
	"dot4fa/internal/gguf"
	"dot4fa/internal/shell"
	"dot4fa/internal/vram"
)

// Model is what the end-to-end figures are of.
type Model struct {
	Name  string `json:"name"`
	What  string `json:"what"` // general.description, or the architecture
	Bytes int64  `json:"bytes"`
}

// Tokens is one test of llama-bench on one cache.
type Tokens struct {
	Cache     string  `json:"cache"` // K/V
	Prompt    int     `json:"n_prompt"`
	Gen       int     `json:"n_gen"`
	Depth     int     `json:"n_depth"`
	PerSecond float64 `json:"tokens_per_second"`
	Spread    float64 `json:"spread"`
	Repeat    int     `json:"repeat"`
}

// same reports whether both are figures of the same test.
func (t Tokens) same(s Tokens) bool {
	return t.Cache == s.Cache && t.Prompt == s.Prompt && t.Gen == s.Gen && t.Depth == s.Depth
}

// Test names a test as llama-bench does.
func (t Tokens) Test() string {
	name := fmt.Sprintf("pp%d", t.Prompt)
	if t.Gen > 0 {
		name = fmt.Sprintf("tg%d", t.Gen)
	}
	if t.Depth > 0 {
		name += fmt.Sprintf(" @ d%d", t.Depth)
	}
	return name
}

// ModelRun is what llama-bench is asked for.
type ModelRun struct {
	File   string
	Caches []vram.Pair
	Depths []int
	Prompt int // tokens of the prompt test; 0 leaves it out
	Gen    int // tokens of the generation test; 0 leaves it out
}

func (b *Bench) modelCommand(m ModelRun, c vram.Pair) shell.Command {
	var depths []string
	for _, d := range m.Depths {
		depths = append(depths, strconv.Itoa(d))
	}
	args := []string{"-m", m.File, "-fa", "on", "-ctk", c.K, "-ctv", c.V, "-p", strconv.Itoa(m.Prompt), "-n", strconv.Itoa(m.Gen),
		"-d", strings.Join(depths, ","), "-r", "1", "-o", "json"}
	if b.onCPU() {
		args = append(args, "-ngl", "0", "-dev", "none")
	} else {
		args = append(args, "-ngl", "99", "-dev", b.Device)
	}
	return b.command("llama-bench", nil, args...)
}

// modelCommands are what endToEnd runs in its first repetition.
func (b *Bench) modelCommands(m ModelRun) []shell.Command {
	var cmds []shell.Command
	for _, c := range m.Caches {
		cmds = append(cmds, b.modelCommand(m, c))
	}
	return cmds
}

// Tokens runs llama-bench as m says and returns what it gave. Call Start first.
func (b *Bench) Tokens(ctx context.Context, m ModelRun) ([]Tokens, *Model, error) {
	r := &Result{}
	if err := b.endToEnd(ctx, m, r); err != nil {
		return nil, nil, err
	}
	return r.EndToEnd, r.Model, r.Broken()
}

// endToEnd runs llama-bench on every cache, repetitions interleaved.
func (b *Bench) endToEnd(ctx context.Context, m ModelRun, r *Result) error {
	info, err := describe(m.File)
	if err != nil {
		return err
	}
	r.Model = info
	samples := map[Tokens][]float64{} // by what was tested
	failed := map[string]bool{}
	caches := slices.Clone(m.Caches)
	counter := b.Report.Count("bench")
	total, done := b.Repeat*len(caches), 0
	for rep := 0; rep < b.Repeat && !b.late(); rep++ {
		for _, c := range caches {
			if b.late() {
				break
			}
			cmd := b.modelCommand(m, c)
			out, err := b.output(ctx, "llama-bench", nil, cmd.Args...)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			var list []Tokens
			if err == nil {
				list, r.Upstream, err = parseBench(out, m, c)
			}
			if err != nil && !failed[c.String()] {
				failed[c.String()] = true
				r.Failed = append(r.Failed, Failed{"llama-bench " + c.String(), err.Error()})
			}
			for _, t := range list {
				rate := t.PerSecond
				t.PerSecond = 0
				samples[t] = append(samples[t], rate)
			}
			done++
			counter.Step(done, total, c.String())
		}
		slices.Reverse(caches)
	}
	for _, gen := range []bool{false, true} {
		for _, d := range m.Depths {
			for _, c := range m.Caches {
				t := Tokens{Cache: c.String(), Depth: d, Prompt: m.Prompt}
				if gen {
					t.Prompt, t.Gen = 0, m.Gen
				}
				if list := samples[t]; len(list) > 0 {
					t.PerSecond, t.Spread = Median(list)
					t.Repeat = len(list)
					r.EndToEnd = append(r.EndToEnd, t)
				}
			}
		}
	}
	if len(r.EndToEnd) == 0 {
		why := "nothing was run in the time given"
		if len(r.Failed) > 0 {
			why = r.Failed[len(r.Failed)-1].Why
		}
		return fault.New(fault.Failure, "llama-bench gave no figures: %s", why).Hintf("is the model one that llama.cpp loads? %s", m.File)
	}
	return nil
}

// parseBench reads llama-bench's JSON and checks that it ran what was asked for.
func parseBench(out string, m ModelRun, c vram.Pair) (list []Tokens, commit string, err error) {
	var rows []struct {
		Commit string  `json:"build_commit"`
		K      string  `json:"type_k"`
		V      string  `json:"type_v"`
		Prompt int     `json:"n_prompt"`
		Gen    int     `json:"n_gen"`
		Depth  int     `json:"n_depth"`
		Rate   float64 `json:"avg_ts"`
	}
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		return nil, "", fmt.Errorf("llama-bench printed no whole JSON: %w", err)
	}
	for _, row := range rows {
		if row.K != c.K || row.V != c.V {
			return nil, "", fmt.Errorf("llama-bench ran %s/%s when asked for %s", row.K, row.V, c)
		}
		if row.Rate <= 0 {
			return nil, "", fmt.Errorf("llama-bench printed a test without a rate")
		}
		commit = row.Commit
		list = append(list, Tokens{Cache: c.String(), Prompt: row.Prompt, Gen: row.Gen, Depth: row.Depth, PerSecond: row.Rate})
	}
	want := 0
	for _, n := range []int{m.Prompt, m.Gen} {
		if n > 0 {
			want += len(m.Depths)
		}
	}
	if len(list) != want {
		return list, commit, fmt.Errorf("llama-bench printed %d of %d tests", len(list), want)
	}
	return list, commit, nil
}

// describe reads what kind of model a file holds.
func describe(file string) (*Model, error) {
	h, err := gguf.Open(file)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(file)
	if err != nil {
		return nil, fault.New(fault.Usage, "cannot read the model: %w", err).Hintf("name a file that stays where it is")
	}
	m := &Model{Name: filepath.Base(file), Bytes: info.Size()}
	if name, ok := h.String("general.name"); ok && name != "" {
		m.Name = name
	}
	if m.What, _ = h.String("general.description"); m.What == "" {
		m.What, _ = h.String("general.architecture")
	}
	return m, nil
}

// tokenRows is the table of rates: a line per test, a column per cache.
func (r *Result) tokenRows() [][]string {
	var caches, tests []string
	at := map[string]Tokens{}
	for _, t := range r.EndToEnd {
		if !slices.Contains(caches, t.Cache) {
			caches = append(caches, t.Cache)
		}
		if !slices.Contains(tests, t.Test()) {
			tests = append(tests, t.Test())
		}
		at[t.Test()+" "+t.Cache] = t
	}
	rows := [][]string{append([]string{"test"}, caches...)}
	for _, name := range tests {
		line := []string{name}
		for _, c := range caches {
			t, ok := at[name+" "+c]
			if !ok {
				line = append(line, "–")
				continue
			}
			line = append(line, fmt.Sprintf("%s ± %s", micros(t.PerSecond), percent(t.Spread/2)))
		}
		rows = append(rows, line)
	}
	return rows
}
