package verify

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"dot4fa/internal/fault"
	"dot4fa/internal/shell"
)

// OpResult is what test-backend-ops says of one op on one backend.
type OpResult struct {
	Backend     string   `json:"backend"`
	Device      string   `json:"device,omitempty"`
	Op          string   `json:"op"`
	Params      string   `json:"params,omitempty"` // a pattern; "" for all cases
	OK          int      `json:"ok"`
	Failed      int      `json:"failed"`
	Unsupported int      `json:"not_supported"` // cases that the backend has no kernel for: they ran nowhere
	Skipped     int      `json:"skipped"`       // large ones, left out by the program itself
	Failures    []string `json:"failures,omitempty"`
	Seconds     float64  `json:"seconds"`
	Reused      bool     `json:"reused,omitempty"`  // taken from an earlier run
	Problem     string   `json:"problem,omitempty"` // why the run counts as failed; "" when it passed
}

// Backend is a device of the built llama.cpp.
type Backend struct {
	Name   string `json:"name"`
	Device string `json:"device,omitempty"`
}

// opRun is one call of test-backend-ops for each backend.
type opRun struct {
	op, params string
}

// command is the call for one backend; "" leaves the choice to the program.
func (r opRun) command(program, backend string) shell.Command {
	args := []string{"test"}
	if backend != "" {
		args = append(args, "-b", backend)
	}
	args = append(args, "-o", r.op)
	if r.params != "" {
		args = append(args, "-p", r.params)
	}
	return shell.Command{Path: program, Args: args}
}

// opRuns are the cases that the patch adds. quick takes of the attention cases
// those of the canonical grouping, 6 query heads a KV head.
func opRuns(quick bool) []opRun {
	attention := "K=packed16"
	if quick {
		attention = "K=packed16.*hs=256.*gqa=6"
	}
	return []opRun{{"PACK_K_PACKED16", ""}, {"FLASH_ATTN_EXT", attention}}
}

var (
	backendLine = regexp.MustCompile(`^Backend \d+/\d+: (.+)$`)
	deviceLine  = regexp.MustCompile(`^  Device description: (.+)$`)
	summaryLine = regexp.MustCompile(`^  (\d+)/(\d+) tests passed$`)
	colors      = regexp.MustCompile("\x1b\\[[0-9;]*m")
)

// backends asks the program which devices it has. By itself it leaves the CPU
// out and calls that a pass, so every later run names its backend.
func backends(ctx context.Context, program string) ([]Backend, error) {
	var out bytes.Buffer
	cmd := shell.Command{Path: program, Args: []string{"test", "-o", "NONE"}}
	err := cmd.Run(ctx, &out)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var list []Backend
	for line := range strings.Lines(colors.ReplaceAllString(out.String(), "")) {
		line = strings.TrimRight(line, "\r\n")
		if m := backendLine.FindStringSubmatch(line); m != nil {
			list = append(list, Backend{Name: m[1]})
		} else if m := deviceLine.FindStringSubmatch(line); m != nil && len(list) > 0 {
			list[len(list)-1].Device = m[1]
		}
	}
	if len(list) == 0 {
		return nil, fault.New(fault.VerifyFailed, "test-backend-ops names no backend%s", ended(err, out.Bytes())).Hintf("run it by hand: %s", cmd)
	}
	return list, nil
}

// runOps runs one op on one backend. count is called with the cases so far.
func runOps(ctx context.Context, program string, b Backend, r opRun, count func(int)) (OpResult, error) {
	var out caseWriter
	out.op, out.count = r.op, count
	start := time.Now()
	err := r.command(program, b.Name).Run(ctx, &out)
	if ctx.Err() != nil {
		return OpResult{}, ctx.Err()
	}
	res := parseOps(out.all.Bytes(), r.op)
	res.Backend, res.Device, res.Params, res.Seconds = b.Name, b.Device, r.params, time.Since(start).Seconds()
	res.judge(err, out.all.Bytes())
	return res, nil
}

// judge says what is wrong with a run. That nothing failed is not enough: cases
// must have run, and as many as the program itself counted.
func (r *OpResult) judge(err error, log []byte) {
	m := summaryOf(log)
	switch {
	case r.Failed > 0:
		r.Problem = fmt.Sprintf("%d cases failed", r.Failed)
	case err != nil:
		r.Problem = "the program ended badly" + ended(err, log)
	case m == nil:
		r.Problem = "the log ends without a summary"
	case r.OK+r.Failed == 0:
		r.Problem = "no case ran"
	case m[0] != r.OK || m[1] != r.OK+r.Failed:
		r.Problem = fmt.Sprintf("the program counts %d of %d, the log has %d OK and %d FAIL", m[0], m[1], r.OK, r.Failed)
	}
}

func summaryOf(log []byte) []int {
	var last []int
	for line := range strings.Lines(colors.ReplaceAllString(string(log), "")) {
		if m := summaryLine.FindStringSubmatch(strings.TrimRight(line, "\r\n")); m != nil {
			last = []int{atoi(m[1]), atoi(m[2])}
		}
	}
	return last
}

// parseOps counts the cases of op in a log.
func parseOps(log []byte, op string) OpResult {
	r := OpResult{Op: op}
	for line := range strings.Lines(colors.ReplaceAllString(string(log), "")) {
		line = strings.TrimRight(line, "\r\n")
		name, rest, ok := strings.Cut(line, "): ")
		if !ok || !strings.HasPrefix(name, "  "+op+"(") {
			continue
		}
		switch {
		case strings.HasPrefix(rest, "not supported"):
			r.Unsupported++
		case strings.HasPrefix(rest, "skipping"):
			r.Skipped++
		case strings.HasSuffix(rest, "OK"):
			r.OK++
		default: // FAIL, or a case that the program did not live to judge
			r.Failed++
			if len(r.Failures) < 20 {
				r.Failures = append(r.Failures, strings.TrimSpace(line))
			}
		}
	}
	return r
}

// caseWriter keeps a log and counts the cases in it as they come.
type caseWriter struct {
	all   bytes.Buffer
	op    string
	n     int
	count func(int)
}

func (w *caseWriter) Write(p []byte) (int, error) {
	w.all.Write(p)
	if n := bytes.Count(p, []byte("  "+w.op+"(")); n > 0 && w.count != nil {
		w.n += n
		w.count(w.n)
	}
	return len(p), nil
}

// ended is what a program ended with, for an error.
func ended(err error, log []byte) string {
	if err == nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(colors.ReplaceAllString(string(log), "")), "\n")
	last := strings.TrimSpace(lines[len(lines)-1])
	if len(last) > 300 {
		last = last[:300]
	}
	if last == "" {
		return ": " + err.Error()
	}
	return fmt.Sprintf(": %v, after: %s", err, last)
}
