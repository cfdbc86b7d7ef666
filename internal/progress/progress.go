// Package progress tells a user what a run is doing. On a terminal there is one
// status line that is rewritten in place; elsewhere there are plain lines, few
// enough to read in a log.
package progress

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// plainEvery is how often a running count is repeated when it cannot be
// rewritten in place.
const plainEvery = 10 * time.Second

// Reporter writes progress. A nil Reporter is silent.
type Reporter struct {
	w     io.Writer
	width func() int // columns of the terminal; nil when w is none

	mu    sync.Mutex
	drawn bool      // a status line stands on the terminal
	plain time.Time // when the last plain count was printed
}

// New returns a Reporter on w. width returns the terminal's columns and is nil
// when w is not a terminal.
func New(w io.Writer, width func() int) *Reporter {
	return &Reporter{w: w, width: width}
}

// Terminal reports whether the Reporter rewrites its line in place.
func (r *Reporter) Terminal() bool { return r != nil && r.width != nil }

// Say prints a line that stays.
func (r *Reporter) Say(format string, args ...any) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.erase()
	fmt.Fprintf(r.w, format+"\n", args...)
}

// Status shows a line for as long as nothing else is shown. It is not printed
// where it cannot be taken back.
func (r *Reporter) Status(format string, args ...any) {
	if !r.Terminal() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.draw(fmt.Sprintf(format, args...))
}

// Clear takes the status line away.
func (r *Reporter) Clear() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.erase()
}

func (r *Reporter) erase() {
	if r.drawn {
		io.WriteString(r.w, "\r\x1b[K")
		r.drawn = false
	}
}

func (r *Reporter) draw(line string) {
	line = strings.Map(func(c rune) rune {
		if c < ' ' {
			return ' '
		}
		return c
	}, line)
	if max := r.width() - 1; max > 0 && utf8.RuneCountInString(line) > max {
		line = string([]rune(line)[:max])
	}
	io.WriteString(r.w, "\r"+line+"\x1b[K")
	r.drawn = true
}

// Counter is a count with a known end: [n/m], percentage and time left.
type Counter struct {
	r     *Reporter
	label string
	start time.Time
	first int // n of the first step seen; what came before it took no time here
}

// Count begins a count.
func (r *Reporter) Count(label string) *Counter {
	now := time.Now()
	if r != nil {
		r.mu.Lock()
		r.plain = now // what is over at once needs no line
		r.mu.Unlock()
	}
	return &Counter{r: r, label: label, start: now, first: -1}
}

// Step shows that n of total are done and what the last one was.
func (c *Counter) Step(n, total int, what string) {
	if c.r == nil {
		return
	}
	now := time.Now()
	if c.first < 0 {
		c.first = n - 1
	}
	line := fmt.Sprintf("%s [%d/%d] %s%s", c.label, n, total, percent(n, total), eta(now.Sub(c.start), n-c.first, total-n))
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	if c.r.width != nil {
		c.r.draw(line + "  " + what)
		return
	}
	if n == total || now.Sub(c.r.plain) >= plainEvery {
		c.r.plain = now
		fmt.Fprintln(c.r.w, line+"  "+what)
	}
}

func percent(n, total int) string {
	if total <= 0 {
		return ""
	}
	return fmt.Sprintf("%3d%%", n*100/total)
}

// eta estimates the time left from the pace so far: done steps took spent, left
// are to come.
func eta(spent time.Duration, done, left int) string {
	if left <= 0 || done <= 0 {
		return ""
	}
	return " eta " + Duration(spent/time.Duration(done)*time.Duration(left))
}

// Duration writes d in the unit a person would use: 0.4s, 12s, 3m07s, 1h05m.
func Duration(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}
