package report

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

func TestScrub(t *testing.T) {
	t.Setenv("HOME", "/data/people/erika")
	t.Setenv("USER", "erika")
	t.Setenv("LOGNAME", "erika")
	t.Setenv("TMPDIR", "/scratch")
	s := NewScrubber(map[string]string{"/data/people/erika/src/dot4fa/work/rdna3": "WORK", "/data/people/erika/src/dot4fa": "DOT4FA"})
	for in, want := range map[string]string{
		"/data/people/erika/src/dot4fa/work/rdna3/build/bin": "WORK/build/bin",
		"cd /data/people/erika/src/dot4fa && go run .":       "cd DOT4FA && go run .",
		"/data/people/erika/models/a.gguf":                   "~/models/a.gguf",
		"/scratch/x and /scratchy":                           "TMP/x and /scratchy",
		"-I/data/people/erika/rocm":                          "-I~/rocm",
		"erika has no access to /dev/kfd, merika has":        "NAME has no access to /dev/kfd, merika has",
		"/home/max/rocm, /Users/Max Muster/x":                "~/rocm, ~/x",
		`in C:\Users\Max M. Muster\m.gguf`:                   `in ~\m.gguf`,
		"/home/max is full, /usr/lib is not":                 "~ is full, /usr/lib is not",
		`C:\Users\max\m.gguf and C:\\Users\\max\\m.gguf`:     `~\m.gguf and ~\\m.gguf`,
		"/root/.cache":                                    "~/.cache",
		"from /srv/mirror/llama.cpp: ok":                  "from …/llama.cpp: ok",
		"https://github.com/ggml-org/llama.cpp q8_0/q4_0": "https://github.com/ggml-org/llama.cpp q8_0/q4_0",
		"/opt/rocm-7.2/bin/clang++ of gfx1100":            "/opt/rocm-7.2/bin/clang++ of gfx1100",
		"/mnt/data/people/erika/x":                        "…/x",
	} {
		if got := s.Text(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if host, err := os.Hostname(); err == nil && len(host) > 2 && !common[host] {
		if got := s.Text("on " + host + ":"); got != "on NAME:" {
			t.Errorf("host name: %q", got)
		}
	}
	got, err := s.JSON([]byte(`{"/home/max":[{"path":"/data/people/erika/m","n":1234567890123456789,"x":2.5e-5}],"ok":true}`))
	if want := `{"ok":true,"~":[{"n":1234567890123456789,"path":"~/m","x":2.5e-5}]}`; err != nil || string(got) != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}

func TestMarkdown(t *testing.T) {
	r := &Report{Format: 1, Made: "2026-01-02T03:04:05Z", Parts: []Part{
		{Name: "machine", Command: "dot4fa doctor", State: Failed, Note: "a | b\nc", Text: "with ``` in it", Data: json.RawMessage(`{"ok":false}`)},
		{Name: "speed", Command: "dot4fa bench", State: Missing},
	}}
	var b strings.Builder
	if err := r.Markdown(&b); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, want := range []string{"| machine | failed | `dot4fa doctor` | a \\| b c |", "````\nwith ``` in it\n````", "Missing: it has not been run. `dot4fa bench` makes it."} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	_, rest, _ := strings.Cut(page, "```json\n")
	data, _, _ := strings.Cut(rest, "\n```")
	var back Report
	if err := json.Unmarshal([]byte(data), &back); err != nil || len(back.Parts) != 2 || string(back.Parts[0].Data) != `{"ok":false}` {
		t.Errorf("%v: %s", err, data)
	}
	if m := r.Missing(); len(m) != 1 || m[0].Name != "speed" {
		t.Errorf("missing %+v", m)
	}
}
