package shell

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

// What Quote prints must come back unchanged from a real shell.
func TestQuoteRoundTrips(t *testing.T) {
	for _, s := range []string{"", "plain", "a b", "it's", `back\slash`, "$HOME", "`x`", "ünïcode/路", "a;b", "*", "~", "-Dx=y", "tab\there", "!", "#", "new\nline"} {
		var out bytes.Buffer
		cmd := Command{Path: "/bin/sh", Args: []string{"-c", "printf %s " + Quote(s)}}
		if err := cmd.Run(context.Background(), &out); err != nil {
			t.Fatal(err)
		}
		if out.String() != s {
			t.Errorf("Quote(%q) = %s, which a shell reads as %q", s, Quote(s), out.String())
		}
	}
}

func TestCommandString(t *testing.T) {
	c := Command{Env: []string{"A=b c"}, Dir: "/x y", Path: "cmake", Args: []string{"-S", "."}}
	if got, want := c.String(), "cd '/x y' && A='b c' cmake -S ."; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	var out bytes.Buffer
	run := Command{Env: []string{"A=b c"}, Dir: "/", Path: "/bin/sh", Args: []string{"-c", `echo "$A"; pwd`}}
	if err := run.Run(context.Background(), &out, "B=1"); err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(out.String()); got != "b c\n/" {
		t.Errorf("ran with %q", got)
	}
}

// RunSplit keeps the two outputs apart, and whole, when both are large.
func TestRunSplit(t *testing.T) {
	var out, errs bytes.Buffer
	c := Command{Path: "/bin/sh", Args: []string{"-c", `i=0; while [ $i -lt 2000 ]; do echo "out $i"; echo "err $i" >&2; i=$((i+1)); done; exit 3`}}
	if err := c.RunSplit(context.Background(), &out, &errs); err == nil || err.Error() != "exit status 3" {
		t.Errorf("ended with %v", err)
	}
	for name, got := range map[string]string{"out": out.String(), "err": errs.String()} {
		if n := strings.Count(got, name+" "); n != 2000 || strings.Count(got, "\n") != 2000 {
			t.Errorf("%s: %d lines", name, n)
		}
	}
}
