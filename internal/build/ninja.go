package build

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// ninjaStatus makes Ninja say how far it is in a form we can read.
const ninjaStatus = "NINJA_STATUS=[%f/%t] "

var reStep = regexp.MustCompile(`^\[(\d+)/(\d+)\] (.*)$`)

// watcher is fed a build's output and picks from it the steps done and the
// first failure.
type watcher struct {
	step func(n, total int, what string)

	partial []byte
	units   int // object files that were made
	linked  int // libraries and programs that were made
	warned  map[string]int
	failure []string // the first failure, from its FAILED line to the next step
	inside  bool     // of that failure
}

func (w *watcher) Write(p []byte) (int, error) {
	w.partial = append(w.partial, p...)
	for {
		i := bytes.IndexByte(w.partial, '\n')
		if i < 0 {
			return len(p), nil
		}
		w.line(strings.TrimRight(string(w.partial[:i]), "\r"))
		w.partial = w.partial[i+1:]
	}
}

func (w *watcher) line(s string) {
	m := reStep.FindStringSubmatch(s)
	switch {
	case m != nil:
		w.inside = false
		n, _ := strconv.Atoi(m[1])
		total, _ := strconv.Atoi(m[2])
		switch {
		case compiles(m[3]):
			w.units++
		case strings.HasPrefix(m[3], "Linking "):
			w.linked++
		}
		w.step(n, total, brief(m[3]))
	case strings.HasPrefix(s, "FAILED: ") && w.failure == nil:
		w.inside = true
	}
	if m := reWarning.FindStringSubmatch(s); m != nil {
		if w.warned == nil {
			w.warned = map[string]int{}
		}
		w.warned[filepath.Clean(m[1])]++
	}
	if w.inside {
		w.failure = append(w.failure, s)
	}
}

// reWarning matches a warning of gcc or clang, and the file it is about.
var reWarning = regexp.MustCompile(`^(?:\x1b\[[0-9;]*[mK])*([^\s:][^:]*):\d+(?::\d+)?:(?:\x1b\[[0-9;]*[mK]| )*warning: `)

// compiles reports whether a step makes an object file.
func compiles(what string) bool {
	return strings.HasPrefix(what, "Building ") && strings.Contains(what, " object ")
}

// brief shortens Ninja's description to the part that differs from step to step.
func brief(what string) string {
	if i := strings.LastIndex(what, "/CMakeFiles/"); i >= 0 && strings.HasPrefix(what, "Building ") {
		if j := strings.Index(what[i:], ".dir/"); j >= 0 {
			verb, _, _ := strings.Cut(what, " object ")
			dir := what[strings.LastIndexByte(what[:i], ' ')+1 : i]
			return strings.TrimPrefix(verb, "Building ") + " " + dir + "/" + strings.TrimSuffix(what[i+j+len(".dir/"):], ".o")
		}
	}
	return what
}

var reError = regexp.MustCompile(`(?i)(^|[^a-z])(fatal )?error[: ]|undefined reference|undefined symbol|CMake Error|Killed|No space left|internal compiler error`)

// firstErrors picks the lines a person looks for out of a failed command's
// output: the first that name an error, up to n; without any, the last n.
func firstErrors(lines []string, n int) []string {
	if len(lines) > 1 && strings.HasPrefix(lines[0], "FAILED: ") {
		lines = append([]string{lines[0]}, lines[2:]...) // without the compiler's command line
	}
	var errors, text []string
	for _, s := range lines {
		if strings.TrimSpace(s) == "" {
			continue
		}
		text = append(text, s)
		if reError.MatchString(s) && len(errors) < n {
			errors = append(errors, s)
		}
	}
	if errors != nil {
		return errors
	}
	return text[max(0, len(text)-n):]
}
