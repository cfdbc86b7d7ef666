package routes

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"dot4fa/internal/fault"
	"dot4fa/internal/recipe"
)

func TestPrintEnv(t *testing.T) {
	r := &recipe.Recipe{Kernel: kernel()}
	print := func(o EnvOptions) (string, string) {
		t.Helper()
		var out, warn bytes.Buffer
		if err := PrintEnv(&out, &warn, r, o); err != nil {
			t.Fatal(err)
		}
		return out.String(), warn.String()
	}
	if out, _ := print(EnvOptions{Format: "shell"}); strings.Contains(out, "export") || !strings.Contains(out, "nothing is needed") {
		t.Errorf("a recipe without flags: %s", out)
	}
	// The list of the seed document, as it stands there.
	seed := strings.Fields(`GGML_CUDA_ROCM_Q8K_DOT4_PACKED16_K_CACHE=1 GGML_CUDA_ROCM_EXPERIMENTAL_UNSAFE=1
		GGML_CUDA_ROCM_Q8K_DOT4_KQ=1 GGML_CUDA_FA_ROUTE_REQUIRE=rocm_q8k_dot4_kq
		GGML_CUDA_ROCM_Q8K_DOT4_KQ_VARIANT=blockfa_recthist_v4_single GGML_CUDA_ROCM_Q8K_DOT4_KQ_FULL_FA=1
		GGML_CUDA_ROCM_Q8K_DOT4_BLOCKFA_ASSUME_CAUSAL=1 GGML_CUDA_ROCM_QUANT_PREFILL_F16=1
		GGML_CUDA_ROCM_Q8K_DOT4_DECODE_BN=64 LLAMA_MTP_PREFILL_CHUNK=1024 LLAMA_MTP_PREFILL_FORCE_MMQ=1`)
	out, _ := print(EnvOptions{Format: "shell", Seed: true})
	want := "# " + SeedWarning + "\n"
	for _, s := range seed {
		want += "export " + s + "\n"
	}
	if out != want {
		t.Errorf("seed's list:\n%s\nwant\n%s", out, want)
	}
	if _, err := ParseEnv(kernel(), lookupOf(seed)); err != nil {
		t.Errorf("the seed's list is refused: %v", err)
	}
	out, warn := print(EnvOptions{Format: "json", Seed: true})
	vars := map[string]string{}
	if err := json.Unmarshal([]byte(out), &vars); err != nil || len(vars) != len(seed) || !strings.Contains(warn, "unsafe") {
		t.Errorf("%v, %d variables, warning %q", err, len(vars), warn)
	}
	r.Kernel.DecodeBN = 32
	if out, _ := print(EnvOptions{Format: "shell", Seed: true}); strings.Contains(out, "export GGML_CUDA_ROCM_Q8K_DOT4_DECODE_BN") {
		t.Errorf("a value that the kernels refuse is printed: %s", out)
	}
}

func TestPrintEnvQuotes(t *testing.T) {
	r := &recipe.Recipe{Kernel: kernel(), Env: map[string]string{"NOTE": `it's 100% "é" \ $x`}}
	var out bytes.Buffer
	if err := PrintEnv(&out, &out, r, EnvOptions{Format: "systemd"}); err != nil {
		t.Fatal(err)
	}
	if want := `Environment="NOTE=it's 100%% \"é\" \\ $x"` + "\n"; out.String() != want {
		t.Errorf("systemd: %s want %s", out.String(), want)
	}
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no sh")
	}
	out.Reset()
	if err := PrintEnv(&out, &out, r, EnvOptions{}); err != nil {
		t.Fatal(err)
	}
	got, err := exec.Command(sh, "-c", out.String()+`printf %s "$NOTE"`).Output()
	if err != nil || string(got) != r.Env["NOTE"] {
		t.Errorf("sh gives %q, %v", got, err)
	}
}

func TestPrintEnvRefuses(t *testing.T) {
	r := &recipe.Recipe{Kernel: kernel(), Env: map[string]string{"GGML_CUDA_ROCM_Q8K_DOT4_KQ": "yes"}}
	var out bytes.Buffer
	if err := PrintEnv(&out, &out, r, EnvOptions{}); fault.Code(err) != fault.Usage || !strings.Contains(err.Error(), "use 0, 1") {
		t.Errorf("a recipe with a bad flag: %v", err)
	}
	if err := PrintEnv(&out, &out, r, EnvOptions{Format: "fish"}); fault.Code(err) != fault.Usage || out.Len() > 0 {
		t.Errorf("an unknown format: %v, printed %q", err, out.String())
	}
}

func TestPrintRoutes(t *testing.T) {
	var out bytes.Buffer
	env, err := ParseEnv(kernel(), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	if err := PrintRoute(&out, Canonical(1, 3328), kernel(), env, true); err != nil {
		t.Fatal(err)
	}
	var d struct {
		Route   string
		Split   int
		Refused bool
	}
	if err := json.Unmarshal(out.Bytes(), &d); err != nil || d.Route != "long decode" || d.Split != 512 || d.Refused {
		t.Errorf("%v %+v", err, d)
	}
	out.Reset()
	if err := PrintTable(&out, kernel(), env, false); err != nil {
		t.Fatal(err)
	}
	for _, r := range Table(kernel()) {
		if !strings.Contains(out.String(), "\n"+r.Name) {
			t.Errorf("no row for %s in\n%s", r.Name, out.String())
		}
	}
	out.Reset()
	if err := PrintExplain(&out, kernel(), false); err != nil {
		t.Fatal(err)
	}
	for _, f := range Flags(kernel()) {
		if !strings.Contains(out.String(), f.Name+"\n  "+f.Effect) {
			t.Errorf("%s is not explained", f.Name)
		}
	}
}

func lookupOf(vars []string) func(string) (string, bool) {
	return func(n string) (string, bool) {
		for _, v := range vars {
			if name, value, _ := strings.Cut(v, "="); name == n {
				return value, true
			}
		}
		return "", false
	}
}
