package vram

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"dot4fa/internal/fault"
	"dot4fa/internal/shell"
)

// Checked is one context and pair of types: what is computed here beside what
// llama.cpp logged when it allocated them. Sizes of the log are MiB with two
// digits.
type Checked struct {
	Ctx   int     `json:"context"`
	Pair  string  `json:"types"`
	K     int64   `json:"k"` // bytes, computed
	V     int64   `json:"v"`
	State int64   `json:"recurrent_state"`
	Log   Logged  `json:"log"`
	Equal bool    `json:"equal"`
	Off   float64 `json:"off_mib"` // the largest difference
}

// Logged is what llama.cpp's log says about the caches of a context.
type Logged struct {
	K      float64 `json:"k_mib"`
	V      float64 `json:"v_mib"`
	State  float64 `json:"recurrent_state_mib"`
	Caches int     `json:"caches"` // lines that were added up: 2 with a sliding window
	States int     `json:"states"`
}

var (
	cacheLine = regexp.MustCompile(`llama_kv_cache: size = +[\d.]+ MiB \( *\d+ cells, .*?K \(\S+\): +([\d.]+) MiB, V \(\S+\): +([\d.]+) MiB`)
	stateLine = regexp.MustCompile(`llama_memory_recurrent: size = +([\d.]+) MiB`)
)

// ParseLog adds up the caches that a log of llama.cpp names.
func ParseLog(log []byte) Logged {
	var l Logged
	for _, m := range cacheLine.FindAllSubmatch(log, -1) {
		l.K += number(m[1])
		l.V += number(m[2])
		l.Caches++
	}
	for _, m := range stateLine.FindAllSubmatch(log, -1) {
		l.State += number(m[1])
		l.States++
	}
	return l
}

func number(text []byte) float64 {
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return math.NaN()
	}
	return v
}

// Probe is the command that makes llama-perplexity allocate the caches of one
// context, log them, and end: the text is too short on purpose.
func Probe(program, model string, p Pair, u Use) shell.Command {
	slots := max(u.Parallel, 1)
	batch := u.Ctx // one slot takes any batch; more are asked for through it
	if slots == 1 {
		batch = min(u.Ctx, max(u.UBatch, 512))
	}
	args := []string{"-m", model, "-c", strconv.Itoa(u.Ctx / slots), "-b", strconv.Itoa(batch), "-ub", strconv.Itoa(u.UBatch),
		"-ctk", p.K, "-ctv", p.V, "-fa", "on", "-dev", "none", "-fit", "off", "--no-warmup", "-lv", "4", "-p", "x"}
	if u.Unified {
		args = append(args, "--kv-unified")
	}
	if u.SWAFull {
		args = append(args, "--swa-full")
	}
	return shell.Command{Path: program, Args: args}
}

// Probes are the commands that Against runs.
func Probes(program string, req Request, rep *Report) ([]shell.Command, error) {
	var out []shell.Command
	for _, c := range rep.Contexts {
		for _, z := range c.Sizes {
			p, err := ParsePair(z.Pair)
			if err != nil {
				return nil, err
			}
			u := rep.Use
			u.Ctx = c.Ctx
			out = append(out, Probe(program, req.File, p, u))
		}
	}
	return out, nil
}

// Against runs the built llama-perplexity for every context and pair of rep and
// compares its log with the figures.
func Against(ctx context.Context, program string, req Request, rep *Report, step func(n, total int, what string)) ([]Checked, error) {
	if req.File == "" {
		return nil, fault.New(fault.Usage, "there is no model to load: the shape was given in numbers").Hintf("name a GGUF file")
	}
	var out []Checked
	for _, c := range rep.Contexts {
		if c.Ctx%max(req.Use.Parallel, 1) != 0 {
			return nil, fault.New(fault.Usage, "a context of %d cells cannot be shared by %d slots", c.Ctx, req.Use.Parallel).Hintf("choose a multiple")
		}
		for _, z := range c.Sizes {
			p, err := ParsePair(z.Pair)
			if err != nil {
				return nil, err
			}
			u := rep.Use
			u.Ctx = c.Ctx
			cmd := Probe(program, req.File, p, u)
			l, err := logged(ctx, cmd, rep)
			if err != nil {
				return nil, at(err, fmt.Sprintf("%s, %s at %d", req.File, p, c.Ctx))
			}
			got := Checked{Ctx: c.Ctx, Pair: z.Pair, K: z.K, V: z.V, State: rep.State, Log: l}
			off := []float64{mib(z.K) - l.K, mib(z.V) - l.V, mib(rep.State) - l.State}
			for i := range off {
				off[i] = math.Abs(off[i])
			}
			got.Off = slices.Max(off)
			got.Equal = got.Off <= 0.0051*float64(l.Caches) // each line is rounded to 0.01
			out = append(out, got)
			step(len(out), len(rep.Contexts)*len(c.Sizes), fmt.Sprintf("%s at %d", p, c.Ctx))
		}
	}
	return out, nil
}

// attempts is how often a run is repeated whose log lacks lines: upstream's
// logger writes from a thread that is not waited for, and the probe ends within
// a fraction of a second.
const attempts = 12

// logged runs a probe until its log has the lines that rep leads to expect.
func logged(ctx context.Context, cmd shell.Command, rep *Report) (l Logged, err error) {
	caches, states := 1, 0
	if rep.Model.WindowLayers > 0 {
		caches = 2
	}
	if rep.State > 0 {
		states = 1
	}
	var log bytes.Buffer
	for range attempts {
		log.Reset()
		err = cmd.Run(ctx, &log)
		if ctx.Err() != nil {
			return l, ctx.Err()
		}
		if l = ParseLog(log.Bytes()); l.Caches == caches && l.States == states {
			return l, nil
		}
		if l.Caches > caches || l.States > states || err != nil {
			break // it will not get better
		}
	}
	return l, fault.New(fault.VerifyFailed, "llama.cpp logged %d caches and %d recurrent states, where %d and %d were expected%s",
		l.Caches, l.States, caches, states, lastLine(log.Bytes(), err)).Hintf("run it by hand: %s", cmd)
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

// lastLine is what a log ends with, for an error.
func lastLine(log []byte, err error) string {
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	for _, l := range slices.Backward(lines) {
		if strings.Contains(l, " E ") || strings.Contains(l, "error") {
			return ": " + strings.TrimSpace(l)
		}
	}
	if err != nil {
		return ": " + err.Error()
	}
	return ""
}
