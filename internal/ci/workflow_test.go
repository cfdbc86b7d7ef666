package ci

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rhysd/actionlint"
	"go.yaml.in/yaml/v3"
)

// lint runs actionlint on a workflow and returns what it finds. External
// linters stay off: they are not there everywhere.
func lint(t *testing.T, name string, data []byte) []string {
	t.Helper()
	l, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found, err := l.Lint(name, data, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range found {
		out = append(out, f.Error())
	}
	return out
}

func workflows(t *testing.T) []Workflow {
	t.Helper()
	list, err := Workflows()
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 4 {
		t.Fatalf("%d workflows, want 4", len(list))
	}
	return list
}

func TestWorkflowsLint(t *testing.T) {
	for _, w := range workflows(t) {
		for _, f := range lint(t, w.Name, w.Data) {
			t.Error(f)
		}
	}
}

// A workflow that is broken must not pass: each change is one that people make.
func TestLintSeesBrokenWorkflow(t *testing.T) {
	for _, c := range []struct{ file, old, new, want string }{
		{"build.yml", "needs: matrix\n", "needs: matrx\n", "does not exist"},
		{"build.yml", "steps.matrix.outputs", "steps.matri.outputs", `"matri" is not defined`},
		{"build.yml", "${{ github.event_name }}", "${{ github.evnt_name }}", "evnt_name"},
		{"build.yml", "runs-on: ubuntu-24.04", "runs_on: ubuntu-24.04", "runs_on"},
		{"canary.yml", "issues: write", "issue: write", `unknown permission scope "issue"`},
		{"canary.yml", `"17 5 * * *"`, `"17 5 * *"`, "CRON"},
		{"nightly.yml", "vars.DEBIAN_MIRROR", "varz.DEBIAN_MIRROR", "varz"},
		{"release.yml", "contents: write", "contents: rite", "rite"},
		{"release.yml", "${{ github.token }}", "${{ github.token }", "}"},
	} {
		for _, w := range workflows(t) {
			if w.Name != c.file {
				continue
			}
			broken := bytes.ReplaceAll(w.Data, []byte(c.old), []byte(c.new))
			if bytes.Equal(broken, w.Data) {
				t.Errorf("%s does not hold %q", c.file, c.old)
				continue
			}
			if found := strings.Join(lint(t, w.Name, broken), "\n"); !strings.Contains(found, c.want) {
				t.Errorf("%s with %q: found %q, want something about %s", c.file, c.new, found, c.want)
			}
		}
	}
}

// workflow is what the rules below look at.
type workflow struct {
	Permissions map[string]string `yaml:"permissions"`
	Jobs        map[string]struct {
		Permissions map[string]string `yaml:"permissions"`
		Timeout     int               `yaml:"timeout-minutes"`
		Steps       []struct {
			Uses string         `yaml:"uses"`
			Run  string         `yaml:"run"`
			With map[string]any `yaml:"with"`
		} `yaml:"steps"`
	} `yaml:"jobs"`
}

var (
	pinned   = regexp.MustCompile(`^actions/[a-z-]+@[0-9a-f]{40}$`)
	usesLine = regexp.MustCompile(`uses: [^ ]+@[0-9a-f]{40} # v[0-9]+\.[0-9]+\.[0-9]+$`)
	stepCall = regexp.MustCompile(`^bash ` + StepsDir + `/([a-z]+\.sh)$`)
)

// broken returns which of our own rules a workflow breaks: no expression in
// shell text, actions by commit with the version beside it, permissions named,
// no more writing than needed, no credentials left in the checkout, a time limit.
func broken(data []byte) (out []string) {
	var w workflow
	if err := yaml.Unmarshal(data, &w); err != nil {
		return []string{err.Error()}
	}
	if len(w.Permissions) == 0 {
		out = append(out, "the workflow names no permissions")
	}
	for name, j := range w.Jobs {
		if j.Timeout == 0 {
			out = append(out, name+": no timeout")
		}
		for _, s := range j.Steps {
			if strings.Contains(s.Run, "${{") {
				out = append(out, name+": expression in shell text: "+s.Run)
			}
			if s.Uses != "" && !pinned.MatchString(s.Uses) {
				out = append(out, name+": not by commit: "+s.Uses)
			}
			if strings.HasPrefix(s.Uses, "actions/checkout@") && s.With["persist-credentials"] != false {
				out = append(out, name+": checkout keeps the token")
			}
		}
	}
	for _, line := range strings.Split(string(data), "\n") {
		if strings.Contains(line, "uses:") && !usesLine.MatchString(line) {
			out = append(out, "no version beside the commit: "+strings.TrimSpace(line))
		}
	}
	return out
}

func TestWorkflowRules(t *testing.T) {
	writes := map[string]bool{}
	for _, w := range workflows(t) {
		for _, why := range broken(w.Data) {
			t.Errorf("%s: %s", w.Name, why)
		}
		var parsed workflow
		if err := yaml.Unmarshal(w.Data, &parsed); err != nil {
			t.Fatal(err)
		}
		note := func(where string, p map[string]string) {
			for scope, level := range p {
				if level != "read" {
					writes[w.Name+" "+where+" "+scope+" "+level] = true
				}
			}
		}
		note("", parsed.Permissions)
		for name, j := range parsed.Jobs {
			note(name, j.Permissions)
			for _, s := range j.Steps {
				m := stepCall.FindStringSubmatch(s.Run)
				if m == nil {
					continue
				}
				info, err := os.Stat(filepath.Join("../..", StepsDir, m[1]))
				if err != nil {
					t.Errorf("%s: %v", w.Name, err)
				} else if info.Mode()&0o111 == 0 {
					t.Errorf("%s is not executable", m[1])
				}
			}
		}
	}
	want := map[string]bool{"canary.yml  issues write": true, "release.yml publish contents write": true}
	if len(writes) != len(want) {
		t.Errorf("may write: %v, want %v", writes, want)
	}
	for k := range want {
		if !writes[k] {
			t.Errorf("may write: %v, want %v", writes, want)
		}
	}
	bad := "on: push\njobs:\n  x:\n    steps:\n      - uses: actions/checkout@v4\n      - run: echo ${{ github.head_ref }}\n"
	if n := len(broken([]byte(bad))); n != 6 {
		t.Errorf("the rules find %d faults in a workflow with 6: %q", n, broken([]byte(bad)))
	}
}

// The copies that people read and copy are those that would be written.
func TestCommittedWorkflows(t *testing.T) {
	stale, err := Stale("../../ci/workflows", workflows(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, why := range stale {
		t.Errorf("ci/workflows/%s: %s; run dot4fa ci workflow --out ci/workflows", name, why)
	}
	have, err := filepath.Glob("../../ci/workflows/*")
	if err != nil || len(have) != 4 {
		t.Errorf("ci/workflows holds %v, %v", have, err)
	}
}

func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	list := workflows(t)
	if written, err := Write(dir, list); err != nil || len(written) != 4 {
		t.Fatalf("first: wrote %v, %v", written, err)
	}
	if written, err := Write(dir, list); err != nil || len(written) != 0 {
		t.Errorf("again: wrote %v, %v", written, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "build.yml"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if stale, err := Stale(dir, list); err != nil || len(stale) != 1 || stale["build.yml"] != "differs" {
		t.Errorf("stale: %v, %v", stale, err)
	}
	if written, err := Write(dir, list); err != nil || len(written) != 1 {
		t.Errorf("after a change: wrote %v, %v", written, err)
	}
}

func TestUnpinnedActionIsRefused(t *testing.T) {
	_, err := generate(fstest.MapFS{"workflows/x.yml": {Data: []byte(`uses: [[.Use "someone/thing"]]`)}})
	if err == nil || !strings.Contains(err.Error(), "someone/thing has no pinned commit") {
		t.Errorf("error %v", err)
	}
}
