package progress

import (
	"strings"
	"testing"
	"time"
)

func TestTerminalLineIsRewrittenAndCut(t *testing.T) {
	var out strings.Builder
	r := New(&out, func() int { return 30 })
	c := r.Count("build")
	c.Step(1, 4, "a\nlong name of a compilation unit")
	r.Say("kept")
	got := out.String()
	line := strings.TrimSuffix(strings.TrimPrefix(strings.SplitAfter(got, "\x1b[K")[0], "\r"), "\x1b[K")
	if len(line) != 29 || !strings.HasPrefix(line, "build [1/4]  25%") {
		t.Errorf("status line %q, want 29 columns of build [1/4]  25%% …", line)
	}
	if !strings.HasSuffix(got, "\r\x1b[Kkept\n") {
		t.Errorf("Say left the status line standing: %q", got)
	}
}

func TestPlainLinesAreFew(t *testing.T) {
	var out strings.Builder
	c := New(&out, nil).Count("build")
	for i := 1; i <= 500; i++ {
		c.Step(i, 500, "x")
	}
	if n := strings.Count(out.String(), "\n"); n != 1 {
		t.Errorf("%d lines for 500 quick steps, want the last:\n%s", n, out.String())
	}
	if !strings.Contains(out.String(), "[500/500] 100%") {
		t.Errorf("the last step is missing:\n%s", out.String())
	}
}

func TestEta(t *testing.T) {
	for _, c := range []struct {
		spent      time.Duration
		done, left int
		want       string
	}{
		{10 * time.Second, 10, 20, " eta 20s"},
		{time.Second, 1, 0, ""},
		{2 * time.Minute, 4, 8, " eta 4m00s"},
		{time.Hour, 1, 2, " eta 2h00m"},
	} {
		if got := eta(c.spent, c.done, c.left); got != c.want {
			t.Errorf("eta(%v, %d, %d) = %q, want %q", c.spent, c.done, c.left, got, c.want)
		}
	}
}

func TestNilReporterIsSilent(t *testing.T) {
	var r *Reporter
	r.Say("x")
	r.Status("x")
	r.Count("x").Step(1, 1, "x")
	r.Clear()
}
