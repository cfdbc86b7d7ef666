package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"dot4fa/internal/fault"
	"dot4fa/internal/shell"
)

// StateResult is what test-packed16-state says: states saved and restored, copies
// between streams, decode against prefill, and refusals.
type StateResult struct {
	Checks   int      `json:"checks"`
	Failed   int      `json:"failed"`
	Skipped  int      `json:"skipped"` // what this model's memory cannot do
	Failures []string `json:"failures,omitempty"`
	Seconds  float64  `json:"seconds"`
	Reused   bool     `json:"reused,omitempty"` // taken from an earlier run
	Problem  string   `json:"problem,omitempty"`
}

var stateLine = regexp.MustCompile(`^test-packed16-state: (OK|FAIL|SKIPPED)(?: \((\d+) failed\))?`)

// runState runs the round trip on a model and a text. It writes its states into
// a directory of its own.
func runState(ctx context.Context, program, model, text string, count func(int)) (*StateResult, error) {
	dir, err := os.MkdirTemp("", "dot4fa-state")
	if err != nil {
		return nil, fault.Temporary(err)
	}
	defer os.RemoveAll(dir)
	var out bytes.Buffer
	start := time.Now()
	cmd := shell.Command{Dir: dir, Path: program, Args: []string{model, text}}
	err = cmd.Run(ctx, &lineCounter{w: &out, prefix: "  ", count: count})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	r := parseState(out.Bytes())
	r.Seconds = time.Since(start).Seconds()
	var exit *exec.ExitError
	switch {
	case r.Problem != "":
	case errors.As(err, &exit) && exit.ExitCode() == 77:
		r.Problem = "the program skipped everything"
	case err != nil && r.Failed == 0:
		r.Problem = "the program ended badly" + ended(err, out.Bytes())
	}
	return r, nil
}

// parseState counts the checks in a log. The program's own verdict has to be
// there and to agree.
func parseState(log []byte) *StateResult {
	r := &StateResult{}
	verdict, counted := "", -1
	for line := range strings.Lines(string(log)) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(line, "  ok "):
			r.Checks++
		case strings.HasPrefix(line, "  FAIL "):
			r.Checks++
			r.Failed++
			r.Failures = append(r.Failures, strings.TrimSpace(strings.TrimPrefix(line, "  FAIL ")))
		case strings.HasPrefix(line, "  skip "):
			r.Skipped++
		default:
			if m := stateLine.FindStringSubmatch(line); m != nil {
				verdict = m[1]
				if m[2] != "" {
					counted = atoi(m[2])
				}
			}
		}
	}
	switch {
	case r.Failed > 0:
		r.Problem = fmt.Sprintf("%d of %d checks failed", r.Failed, r.Checks)
	case verdict == "":
		r.Problem = "the program ended without a verdict" + ended(errors.New("its log"), log)
	case verdict != "OK" || counted != r.Failed:
		r.Problem = fmt.Sprintf("the program's verdict is %s, %d failed; its log has %d failures", verdict, counted, r.Failed)
	case r.Checks == 0:
		r.Problem = "no check ran"
	}
	return r
}

// lineCounter counts the lines that begin with prefix on their way to w.
type lineCounter struct {
	w      *bytes.Buffer
	prefix string
	n      int
	rest   []byte
	count  func(int)
}

func (l *lineCounter) Write(p []byte) (int, error) {
	l.w.Write(p)
	l.rest = append(l.rest, p...)
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		l.rest = rest
		if bytes.HasPrefix(line, []byte(l.prefix)) {
			l.n++
			if l.count != nil {
				l.count(l.n)
			}
		}
	}
}

// atoi is for digits that a pattern has found.
func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return -1
	}
	return n
}
