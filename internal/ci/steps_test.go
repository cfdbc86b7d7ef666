package ci

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dot4fa/internal/recipe"
)

// bench is where a step's script runs: with programs that stand for the real
// ones, which log how they are called.
type bench struct {
	t   *testing.T
	dir string
	env []string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash")
	}
	b := &bench{t: t, dir: t.TempDir()}
	b.env = append(os.Environ(), "PATH="+b.dir+"/bin"+string(os.PathListSeparator)+os.Getenv("PATH"), "CALLS="+b.dir+"/calls")
	return b
}

// program makes a program that logs its name and arguments, and then runs body.
func (b *bench) program(name, body string) {
	b.t.Helper()
	b.file("bin/"+name, "#!/usr/bin/env bash\n{ printf '%s' "+name+"; printf ' [%s]' \"$@\"; echo; } >>\"$CALLS\"\n"+body+"\n", 0o755)
}

func (b *bench) file(name, data string, mode os.FileMode) {
	b.t.Helper()
	name = filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(data), mode); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) read(name string) string {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil && !os.IsNotExist(err) {
		b.t.Fatal(err)
	}
	return string(data)
}

// run runs ci/steps/script in the bench's directory and returns its exit code
// and all it printed.
func (b *bench) run(script string, env ...string) (int, string) {
	b.t.Helper()
	file, err := filepath.Abs(filepath.Join("../..", StepsDir, script))
	if err != nil {
		b.t.Fatal(err)
	}
	cmd := exec.Command("bash", file)
	cmd.Dir, cmd.Env = b.dir, append(slices.Clone(b.env), env...)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		b.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

func TestCanary(t *testing.T) {
	const report = "kc.push (patches/040-kv-cache.yaml): gone\n::set-env name=X::evil\n```\n@everyone closes #1"
	for name, c := range map[string]struct {
		check  int    // exit code of dot4fa check
		issues string // open issues, as gh prints them
		ghFail string // gh subcommand that fails
		code   int
		want   []string // calls of gh, by their first words
		output string
	}{
		"holds, no issue":        {0, "", "", 0, []string{"issue list"}, ""},
		"holds again":            {0, "7", "", 0, []string{"issue list", "issue close 7 --comment"}, ""},
		"breaks":                 {3, "", "", 3, []string{"issue list", "label create", "issue create"}, "::error::the series does not hold"},
		"still broken":           {3, "7", "", 3, []string{"issue list", "issue edit 7"}, "::error::the series does not hold"},
		"more than one issue":    {3, "7\n9", "", 3, []string{"issue list", "issue edit 7", "issue close 9"}, ""},
		"the check fails":        {1, "7", "", 1, nil, "::error::the check could not be made: dot4fa exited with 1"},
		"a tool is missing":      {4, "", "", 4, nil, "dot4fa exited with 4"},
		"gh cannot list":         {3, "", "list", 9, []string{"issue list"}, "::error::gh issue list failed with exit code 9"},
		"gh cannot list, holds":  {0, "", "list", 9, []string{"issue list"}, "::error::gh issue list failed"},
		"gh cannot create":       {3, "", "create", 9, []string{"issue list", "label create"}, "failed with exit code 9"},
		"gh cannot edit":         {3, "7", "edit", 9, []string{"issue list", "issue edit 7"}, "::error::gh issue edit failed"},
		"gh cannot close, holds": {0, "7", "close", 9, []string{"issue list", "issue close 7"}, "::error::gh issue close failed"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.file("report", report, 0o644)
			b.file("issues", c.issues, 0o644)
			b.program("dot4fa", `cat report; exit `+string(rune('0'+c.check)))
			b.program("gh", `[ "$2" = "`+c.ghFail+`" ] && { echo "gh: no" >&2; exit 9; }
[ "$2" = list ] && cat issues
while [ $# -gt 0 ]; do [ "$1" = --body-file ] && cp "$2" body; shift; done
exit 0`)
			code, out := b.run("canary.sh", "REF=master", "RUN_URL=https://example.invalid/run/1")
			if !strings.HasPrefix(b.read("calls"), "dot4fa [check] [--compile] [master]\n") {
				t.Errorf("calls\n%s", b.read("calls"))
			}
			if code != c.code {
				t.Errorf("exit code %d, want %d\n%s", code, c.code, out)
			}
			if !strings.Contains(out, c.output) {
				t.Errorf("output %q, want %q in it", out, c.output)
			}
			var calls []string
			for _, line := range strings.Split(strings.TrimSpace(b.read("calls")), "\n") {
				if rest, ok := strings.CutPrefix(line, "gh "); ok {
					calls = append(calls, strings.NewReplacer("[", "", "]", "").Replace(rest))
				}
			}
			ok := len(calls) == len(c.want)
			for i := 0; ok && i < len(calls); i++ {
				ok = strings.HasPrefix(calls[i], c.want[i])
			}
			if !ok {
				t.Errorf("gh was called\n%q\nwant\n%q", calls, c.want)
			}
			// The report is always in the log, and never a workflow command there.
			i, j := strings.Index(out, "::stop-commands::"), strings.Index(out, "::set-env")
			if i < 0 || j < i {
				t.Errorf("the report is printed unguarded:\n%s", out)
			}
			if slices.ContainsFunc(c.want, func(s string) bool { return strings.HasPrefix(s, "issue edit") || s == "issue create" }) && c.ghFail == "" {
				body := b.read("body")
				if !strings.Contains(body, "kc.push") || strings.Count(body, "```") != 2 || !strings.Contains(body, "https://example.invalid/run/1") {
					t.Errorf("the issue's body is\n%s", body)
				}
			}
		})
	}
}

func TestCanaryCutsLongReport(t *testing.T) {
	b := newBench(t)
	b.program("dot4fa", `head -c 200000 /dev/zero | tr '\0' x; exit 3`)
	b.program("gh", `while [ $# -gt 0 ]; do [ "$1" = --body-file ] && cp "$2" body; shift; done`)
	if code, out := b.run("canary.sh", "REF=master", "RUN_URL=u"); code != 3 {
		t.Fatalf("exit code %d\n%s", code, out[max(0, len(out)-500):])
	}
	if n := len(b.read("body")); n < 60000 || n > 65536 {
		t.Errorf("the body has %d bytes", n)
	}
}

// remote makes a repository with the release tags b9, b10 (annotated) and
// another tag, and returns it with the commits of the two.
func (b *bench) remote() (dir, b9, b10 string) {
	b.t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		b.t.Skip("no git")
	}
	dir = filepath.Join(b.dir, "up")
	git := func(args ...string) string {
		b.t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.invalid", "-c", "init.defaultBranch=master"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			b.t.Fatalf("git %v: %v\n%s", args, err, stderr.String())
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q", dir)
	for i, tag := range [][]string{{"b9"}, {"-m", "annotated", "b10"}, {"gguf-v99"}} {
		git("-C", dir, "commit", "-q", "--allow-empty", "-m", "commit")
		git(append([]string{"-C", dir, "tag"}, tag...)...)
		switch i {
		case 0:
			b9 = git("-C", dir, "rev-parse", "HEAD")
		case 1:
			b10 = git("-C", dir, "rev-parse", "HEAD")
		}
	}
	return dir, b9, b10
}

func TestBuildStep(t *testing.T) {
	up := newBench(t)
	dir, b9, b10 := up.remote()
	pin, err := recipe.Load(os.DirFS("../.."), "rdna3")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		recipe, target, upstream string
		commit, tag              string
		gpu                      []string
	}{
		"pin":        {"rdna3", "", "pin", pin.Upstream.Commit, pin.Upstream.Tag, pin.GPUTargets},
		"a target":   {"rdna3", "gfx1201", "pin", pin.Upstream.Commit, pin.Upstream.Tag, []string{"gfx1201"}},
		"latest":     {"rdna3", "gfx1100", "latest", b10, "b10", []string{"gfx1100"}},
		"a tag":      {"cpu", "", "b9", b9, "b9", nil},
		"a commit":   {"cpu", "", b9, b9, "b0", nil},
		"cpu latest": {"cpu", "", "latest", b10, "b10", nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.program("dot4fa", `[ "$1" = recipe ] && echo "upstream.url  `+dir+`  recipes/base.yaml:6:8"; exit 0`)
			code, out := b.run("build.sh", "RECIPE="+c.recipe, "TARGET="+c.target, "UPSTREAM="+c.upstream, "OUT=out", "DOT4FA_UPSTREAM=")
			if code != 0 {
				t.Fatalf("exit code %d\n%s", code, out)
			}
			file := filepath.Join(b.dir, "out", c.recipe+"-ci.yaml")
			r, err := recipe.Load(os.DirFS("../.."), file)
			if err != nil {
				t.Fatalf("%v\n%s", err, b.read("out/"+c.recipe+"-ci.yaml"))
			}
			if r.Upstream.Commit != c.commit || r.Upstream.Tag != c.tag || !slices.Equal(r.GPUTargets, c.gpu) {
				t.Errorf("the recipe has %s %s %v, want %s %s %v", r.Upstream.Commit, r.Upstream.Tag, r.GPUTargets, c.commit, c.tag, c.gpu)
			}
			calls := b.read("calls")
			if !strings.Contains(calls, "dot4fa [build] [--recipe] [out/"+c.recipe+"-ci.yaml]\n") || !strings.Contains(calls, "dot4fa [dist]") {
				t.Errorf("calls:\n%s", calls)
			}
		})
	}
	for name, env := range map[string][]string{
		"no such tag":    {"RECIPE=cpu", "UPSTREAM=b11"},
		"shell in value": {"RECIPE=cpu", "UPSTREAM=b9;touch x"},
		"a target":       {"RECIPE=rdna3", "UPSTREAM=pin", "TARGET=gfx1100]\nenv: {A: b}"},
		"an option":      {"RECIPE=cpu", "UPSTREAM=--upload-pack=x"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.program("dot4fa", "exit 0")
			code, out := b.run("build.sh", append(env, "OUT=out", "DOT4FA_UPSTREAM="+dir)...)
			if code != 2 || strings.Contains(b.read("calls"), "[build]") {
				t.Errorf("exit code %d\n%s\n%s", code, out, b.read("calls"))
			}
		})
	}
	t.Run("the build fails", func(t *testing.T) {
		b := newBench(t)
		b.program("dot4fa", `[ "$1" = build ] && exit 5; exit 0`)
		if code, _ := b.run("build.sh", "RECIPE=cpu", "UPSTREAM=pin", "OUT=out"); code != 5 || strings.Contains(b.read("calls"), "[dist]") {
			t.Errorf("exit code %d, calls\n%s", code, b.read("calls"))
		}
	})
}

func TestMatrixStep(t *testing.T) {
	for event, want := range map[string]string{
		"push":              "dot4fa [ci] [matrix] [--only] [upstream=pin] [--only] [target=gfx1100] [--only] [target=]\n",
		"pull_request":      "dot4fa [ci] [matrix] [--only] [upstream=pin] [--only] [target=gfx1100] [--only] [target=]\n",
		"schedule":          "dot4fa [ci] [matrix]\n",
		"workflow_dispatch": "dot4fa [ci] [matrix]\n",
	} {
		b := newBench(t)
		b.program("dot4fa", `echo '{"include":[]}'`)
		code, out := b.run("matrix.sh", "EVENT="+event, "GITHUB_OUTPUT="+b.dir+"/output")
		if code != 0 || b.read("calls") != want || b.read("output") != "jobs={\"include\":[]}\n" {
			t.Errorf("%s: exit code %d, output %q, calls %s\n%s", event, code, b.read("output"), b.read("calls"), out)
		}
	}
	b := newBench(t)
	b.program("dot4fa", "exit 2")
	if code, _ := b.run("matrix.sh", "EVENT=push", "GITHUB_OUTPUT="+b.dir+"/output"); code != 2 || b.read("output") != "" {
		t.Errorf("a failing matrix: exit code %d, output %q", code, b.read("output"))
	}
}

func TestReleaseStep(t *testing.T) {
	fake := `case "$1 $4" in
"export --out") mkdir -p "$5"; echo '{}' >"$5/release.json"; echo "patch of $3" >"$5/0001-a.patch";;
"dist --work") echo '{"bomFormat":"CycloneDX"}' >"$7";;
esac`
	sums := func() string {
		b := newBench(t)
		b.program("dot4fa", fake)
		if code, out := b.run("release.sh", "TAG=v1.2.0", "RECIPES=rdna3 cpu", "OUT=release"); code != 0 {
			t.Fatalf("exit code %d\n%s", code, out)
		}
		for _, want := range []string{"[--recipe] [rdna3] [--verify]", "[--recipe] [cpu] [--verify]"} {
			if !strings.Contains(b.read("calls"), want) {
				t.Errorf("no call with %s:\n%s", want, b.read("calls"))
			}
		}
		check := exec.Command("sha256sum", "--check", "--strict", "SHA256SUMS")
		check.Dir = filepath.Join(b.dir, "release")
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		b.program("gh", `[ "$2" = view ] && exit 1; exit 0`)
		if code, out := b.run("publish.sh", "TAG=v1.2.0", "OUT=release"); code != 0 || !strings.Contains(b.read("calls"), "gh [release] [create] [v1.2.0] [--verify-tag]") {
			t.Errorf("publish: exit code %d\n%s\n%s", code, out, b.read("calls"))
		}
		text := b.read("release/SHA256SUMS")
		b.file("release/sbom-cpu.cdx.json", "tampered", 0o644)
		if code, _ := b.run("publish.sh", "TAG=v1.2.0", "OUT=release"); code == 0 {
			t.Error("a file that is not that of SHA256SUMS is published")
		}
		return text
	}
	first, second := sums(), sums()
	if first != second {
		t.Errorf("two runs differ:\n%s\n%s", first, second)
	}
	if n := strings.Count(first, "\n"); n != 6 {
		t.Errorf("%d files, want 6:\n%s", n, first)
	}
	for name, c := range map[string]struct{ tag, body string }{
		"export fails":    {"v1.0.0", "exit 3"},
		"verify fails":    {"v1.0.0", `[ "$4" = --verify ] && exit 6; ` + fake},
		"no release's":    {"main", fake},
		"shell in a name": {"v1$(id)", fake},
	} {
		b := newBench(t)
		b.program("dot4fa", c.body)
		if code, out := b.run("release.sh", "TAG="+c.tag, "RECIPES=cpu", "OUT=release"); code == 0 || b.read("release/SHA256SUMS") != "" {
			t.Errorf("%s: exit code %d\n%s", name, code, out)
		}
	}
}

// archive makes what build.sh leaves in out/, with a test-backend-ops that runs
// body.
func (b *bench) archive(body string) {
	b.t.Helper()
	b.file("x/top/bin/test-backend-ops", "#!/bin/sh\n"+body+"\n", 0o755)
	b.file("pack.sh", "mkdir -p out && cd x/top && sha256sum bin/* >SHA256SUMS && cd .. && tar -czf ../out/a.tar.gz top\n", 0o644)
	cmd := exec.Command("bash", "pack.sh")
	cmd.Dir = b.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		b.t.Fatalf("%v\n%s", err, out)
	}
}

func TestSmokeStep(t *testing.T) {
	for name, c := range map[string]struct {
		body, target string
		ok           bool
		output       string
	}{
		"passes":          {`echo "  12/12 tests passed"`, "", true, "12/12"},
		"a test fails":    {`echo "  11/12 tests passed"; exit 1`, "", false, "11/12"},
		"nothing to test": {`echo "  0/0 tests passed"`, "", false, "no test was run: -o PACK_K_PACKED16"},
		"no attention":    {`case "$*" in *PACK*) echo "  1/1 tests passed";; *) echo "  0/0 tests passed";; esac`, "", false, "no test was run: -o FLASH_ATTN_EXT"},
		"for a GPU":       {"exit 1", "gfx1100", true, "nothing is run: there is no gfx1100 here"},
	} {
		b := newBench(t)
		b.archive(c.body)
		code, out := b.run("smoke.sh", "OUT=out", "TARGET="+c.target)
		if (code == 0) != c.ok || !strings.Contains(out, c.output) {
			t.Errorf("%s: exit code %d\n%s", name, code, out)
		}
	}
	b := newBench(t)
	if code, out := b.run("smoke.sh", "OUT="+b.dir, "TARGET=gfx1100"); code == 0 {
		t.Errorf("without an archive: exit code 0\n%s", out)
	}
	b.archive("exit 0")
	b.file("pack.sh", "echo 0 >x/top/SHA256SUMS && tar -czf out/a.tar.gz -C x top", 0o644)
	cmd := exec.Command("bash", "pack.sh")
	cmd.Dir = b.dir
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if code, out := b.run("smoke.sh", "OUT=out", "TARGET=gfx1100"); code == 0 {
		t.Errorf("wrong hashes: exit code 0\n%s", out)
	}
}

func TestToolStep(t *testing.T) {
	b := newBench(t)
	b.program("go", `echo "$GIT_CONFIG_KEY_0=$GIT_CONFIG_VALUE_0 cgo $CGO_ENABLED"; [ "$3" = -o ] && printf '#!/bin/sh\necho ran $*\n' >"$4" && chmod +x "$4"`)
	code, out := b.run("tool.sh", "GITHUB_PATH="+b.dir+"/path")
	if code != 0 || !strings.Contains(out, "ran version") || !strings.Contains(out, "safe.directory="+b.dir+" cgo 0") || b.read("path") != b.dir+"/.dot4fa/bin\n" {
		t.Errorf("exit code %d, PATH %q\n%s", code, b.read("path"), out)
	}
	b.program("go", "exit 1")
	if code, _ := b.run("tool.sh", "GITHUB_PATH="+b.dir+"/path2"); code == 0 || b.read("path2") != "" {
		t.Errorf("a program that does not build: exit code %d", code)
	}
}

func TestDepsStep(t *testing.T) {
	for uid, sudo := range map[string]bool{"0": false, "1000": true} {
		b := newBench(t)
		b.program("id", "echo "+uid)
		b.program("apt-get", "exit 0")
		b.program("sudo", `"$@"`)
		b.program("find", "exit 1") // no such library
		if code, out := b.run("deps.sh", "ROCM="); code != 0 {
			t.Fatalf("exit code %d\n%s", code, out)
		}
		if calls := b.read("calls"); !strings.Contains(calls, "\napt-get [install]") || strings.Contains(calls, "hipblas") || strings.Contains(calls, "clang") || strings.Contains(calls, "keyring") || strings.Contains(calls, "sudo [apt-get] [install]") != sudo {
			t.Errorf("uid %s: calls\n%s", uid, calls)
		}
		if code, _ := b.run("deps.sh", "ROCM=6.4.4"); code != 0 || !strings.Contains(b.read("calls"), "[hipblas-dev] [rocblas-dev]") {
			t.Errorf("uid %s with ROCm: exit code %d, calls\n%s", uid, code, b.read("calls"))
		}
	}
	b := newBench(t)
	b.program("id", "echo 0")
	b.program("apt-get", "exit 0")
	if code, _ := b.run("deps.sh", "CLANG=19", "DEBIAN=1"); code != 0 || !strings.Contains(b.read("calls"), "[clang-19] [clang-tools-19] [lld-19] [llvm-19] [libclang-rt-19-dev] [debian-archive-keyring]") {
		t.Errorf("with clang: exit code %d, calls\n%s", code, b.read("calls"))
	}
	b.program("apt-get", `[ "$1" = install ] && exit 100; exit 0`)
	if code, _ := b.run("deps.sh", "ROCM="); code != 100 {
		t.Errorf("apt-get fails: exit code %d", code)
	}
}

func TestKernelsStep(t *testing.T) {
	b := newBench(t)
	b.program("dot4fa", "exit 0")
	if code, out := b.run("kernels.sh"); code != 0 || b.read("calls") != "dot4fa [isa] [--all]\ndot4fa [isa] [--run]\n" {
		t.Errorf("exit code %d, calls\n%s\n%s", code, b.read("calls"), out)
	}
	b.program("dot4fa", `[ "$2" = --all ] && exit 6; exit 0`)
	if code, _ := b.run("kernels.sh"); code != 6 {
		t.Errorf("a budget is broken: exit code %d", code)
	}
}

func TestCrossStep(t *testing.T) {
	for fails, want := range map[string]int{"none": 0, "toolchain": 4, "check": 4, "build": 4} {
		b := newBench(t)
		b.program("dot4fa", `echo "rocm $DOT4FA_ROCM" >>"$CALLS"; [ "$1" = `+fails+` ] && exit 4; exit 0`)
		code, out := b.run("cross.sh", "REF=master", "DOT4FA_ROCM=")
		if code != want {
			t.Errorf("%s fails: exit code %d\n%s", fails, code, out)
		}
		rocm := b.dir + "/.dot4fa/rocm"
		all := "dot4fa [toolchain] [bootstrap] [" + rocm + "]\nrocm \n" +
			"dot4fa [check] [--compile]\nrocm " + rocm + "\ndot4fa [check] [--compile] [master]\nrocm " + rocm + "\ndot4fa [build] [--recipe] [rdna3]\nrocm " + rocm + "\n"
		if calls := b.read("calls"); fails == "none" && calls != all || !strings.HasPrefix(all, calls) {
			t.Errorf("%s fails: calls\n%s", fails, calls)
		}
	}
}

func TestProveStep(t *testing.T) {
	const all = "doctor build verify bench report"
	for fails, c := range map[string]struct {
		calls string
		code  int
	}{
		"none":   {all, 0},
		"doctor": {"doctor report", 6},
		"build":  {"doctor build report", 6},
		"verify": {all, 6},
		"bench":  {all, 6},
		"report": {all, 6},
	} {
		b := newBench(t)
		b.program("dot4fa", `[ "$1" = `+fails+` ] && exit 6; exit 0`)
		code, out := b.run("prove.sh", "RECIPE=cpu", "OUT=out")
		var verbs []string
		for line := range strings.Lines(b.read("calls")) {
			verb, _, _ := strings.Cut(strings.TrimPrefix(line, "dot4fa ["), "]")
			verbs = append(verbs, verb)
		}
		if code != c.code || strings.Join(verbs, " ") != c.calls {
			t.Errorf("%s fails: exit code %d, calls %v\n%s", fails, code, verbs, out)
		}
		if fails == "none" && !strings.Contains(b.read("calls"), "dot4fa [verify] [--recipe] [cpu] [--skip] [quality]\n") {
			t.Errorf("without a model quality is not left out by name:\n%s", b.read("calls"))
		}
	}
	b := newBench(t)
	b.program("dot4fa", `case $1 in verify) exit 6;; bench) exit 1;; esac`)
	if code, _ := b.run("prove.sh", "RECIPE=cpu", "OUT=out", "MODEL=m.gguf", "TEXT=t"); code != 6 || !strings.Contains(b.read("calls"), "[--model] [m.gguf] [--text] [t]") {
		t.Errorf("two parts fail: exit code %d, not that of the first\n%s", code, b.read("calls"))
	}
}

// What shellcheck finds is an error where shellcheck is.
func TestShellcheck(t *testing.T) {
	program, err := exec.LookPath("shellcheck")
	if err != nil {
		t.Skip("no shellcheck")
	}
	scripts, err := filepath.Glob(filepath.Join("../..", StepsDir, "*.sh"))
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	if out, err := exec.Command(program, append([]string{"--shell=bash"}, scripts...)...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, s := range scripts {
		data, err := os.ReadFile(s)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(data), "\nset -euo pipefail\n") {
			t.Errorf("%s goes on after a failure", s)
		}
	}
}
