package routes

import (
	"bytes"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"text/template"

	"dot4fa/internal/recipe"
)

var headers = []string{"packed16-config.h", "packed16-env.h", "packed16-routes.h"}

// renderHeaders writes the three headers for k into dir.
func renderHeaders(t *testing.T, dir string, k recipe.Kernel) {
	t.Helper()
	for _, h := range headers {
		text, err := os.ReadFile(filepath.Join("..", "..", "templates", h+".tmpl"))
		if err != nil {
			t.Fatal(err)
		}
		tmpl, err := template.New(h).Funcs(template.FuncMap{"packed16": CXX}).Parse(string(text))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := tmpl.Execute(&out, map[string]any{"Kernel": k}); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, h), out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func compiler(t *testing.T) string {
	t.Helper()
	cxx := os.Getenv("CXX")
	if cxx == "" {
		cxx = "c++"
	}
	path, err := exec.LookPath(cxx)
	if err != nil {
		t.Skipf("no C++ compiler: %v", err)
	}
	return path
}

// compile builds source beside the headers in dir and returns the program.
func compile(t *testing.T, dir, source string) (string, error) {
	t.Helper()
	src, bin := filepath.Join(dir, "main.cpp"), filepath.Join(dir, "main")
	if err := os.WriteFile(src, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(compiler(t), "-std=c++17", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wno-unused-function", "-Werror", "-o", bin, src)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return bin, nil
}

// judge reads cases from stdin: "E NAME=VALUE ..." sets the environment,
// "S k v nq nk d dv gqa bias softcap mask misaligned matrix shared" asks for a route.
const judge = `
#include "packed16-routes.h"
#include <iostream>
#include <map>
#include <sstream>

int main() {
    std::map<std::string, std::string> vars;
    packed16_env env = packed16_env_parse([](const char *) -> const char * { return nullptr; });
    for (std::string line; std::getline(std::cin, line); ) {
        std::istringstream in(line.substr(2));
        if (line[0] == 'E') {
            vars.clear();
            for (std::string pair; in >> pair; ) {
                vars[pair.substr(0, pair.find('='))] = pair.substr(pair.find('=') + 1);
            }
            env = packed16_env_parse([&](const char * name) -> const char * {
                auto it = vars.find(name);
                return it == vars.end() ? nullptr : it->second.c_str();
            });
            for (auto & e : env.errors) { std::cout << "error " << e << "\n"; }
            if (!env.errors.empty()) { continue; }
            for (auto & n : env.notes) { std::cout << "note " << n << "\n"; }
            std::cout << packed16_routes_line(env, false) << "\n" << packed16_routes_line(env, true) << "\n";
            continue;
        }
        int k, v;
        packed16_shape s = {};
        in >> k >> v >> s.nq >> s.nk >> s.d >> s.dv >> s.gqa >> s.max_bias >> s.softcap >> s.other_mask >> s.misaligned >> s.matrix_cores >> s.shared_mask;
        s.k = packed16_k_kind(k);
        s.v = packed16_v_kind(v);
        const packed16_decision d = packed16_route(s, env);
        std::cout << d.split << " " << packed16_why(d) << "\n";
    }
}
`

var (
	kNames = []string{"packed16", "f16", "q8_0"}
	vNames = []string{"f16", "q8_0", "q4_0", "q5_1"}
)

func pick[T any](r *rand.Rand, xs ...T) T { return xs[r.Intn(len(xs))] }

func randomShape(r *rand.Rand) (Shape, string) {
	k, v := pick(r, 0, 0, 0, 1, 1, 2), pick(r, 0, 1, 2, 0, 1, 2, 3)
	rare := func() bool { return r.Intn(20) == 0 }
	s := Shape{
		K: kNames[k], V: vNames[v],
		NQ: pick(r, 0, 1, 1, 1, 2, 3, 7, 8, 9, 64, 512), NK: pick(r, 0, 1, 255, 256, 511, 512, 2047, 2048, 2049, 4096, 131072),
		D: pick(r, 64, 128, 256, 256, 256, 80, 512, 576), GQA: pick(r, 0, 1, 2, 6, 8, 16, 17),
		MaxBias: rare(), Softcap: rare(), OtherMask: rare(), Misaligned: rare(), MatrixCores: r.Intn(2) == 0, SharedMask: r.Intn(4) == 0,
	}
	s.DV = s.D
	if rare() {
		s.DV = 512
	}
	b := func(v bool) int {
		if v {
			return 1
		}
		return 0
	}
	return s, fmt.Sprint("S ", k, " ", v, " ", s.NQ, " ", s.NK, " ", s.D, " ", s.DV, " ", s.GQA, " ",
		b(s.MaxBias), " ", b(s.Softcap), " ", b(s.OtherMask), " ", b(s.Misaligned), " ", b(s.MatrixCores), " ", b(s.SharedMask))
}

func randomEnv(r *rand.Rand, k recipe.Kernel) map[string]string {
	env := map[string]string{}
	for _, f := range Flags(k) {
		switch r.Intn(6) {
		case 0, 1:
			env[f.Name] = pick(r, append([]string{fmt.Sprint(f.Min), fmt.Sprint(f.Max), "512", "1024"}, f.Allowed...)...)
			if _, ok := f.value(env[f.Name]); !ok && r.Intn(8) > 0 {
				delete(env, f.Name)
			}
		case 2:
			if r.Intn(12) == 0 {
				env[f.Name] = pick(r, "yes", "-1", "00", "1x", "99999999999", "0|1", "|", "")
			}
		}
	}
	return env
}

// TestCXXAgrees compiles the rendered headers and asks them and this package
// for the same decisions, remarks, errors and start-up lines.
func TestCXXAgrees(t *testing.T) {
	base, other := kernel(), kernel()
	other.HeadSizes, other.VTypes = []int{128}, []string{"q8_0"}
	other.Chunk, other.SplitSize, other.SplitKThreshold, other.DecodeBN = 256, 1024, 4096, 32
	other.VerifyMaxNQ, other.KScale, other.PrefillVariant = 1, "mse", VariantDot4
	short := kernel() // some prefills are unpacked
	short.PrefillF16Below128, short.PrefillF16Below256 = 4096, 2048
	for name, k := range map[string]recipe.Kernel{"default": base, "other": other, "short": short} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			renderHeaders(t, dir, k)
			bin, err := compile(t, dir, judge)
			if err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewSource(1))
			var in, want strings.Builder
			seen := map[string]int{}
			for range 400 {
				vars := randomEnv(r, k)
				env, err := ParseEnv(k, func(n string) (string, bool) { v, ok := vars[n]; return v, ok })
				in.WriteString("E ")
				for n, v := range vars {
					fmt.Fprintf(&in, "%s=%s ", n, v)
				}
				in.WriteString("\n")
				if err != nil {
					seen["error"]++
					for _, e := range strings.Split(err.Error(), "\n") {
						fmt.Fprintf(&want, "error %s\n", e)
					}
					continue
				}
				for _, n := range env.Notes {
					fmt.Fprintf(&want, "note %s\n", n)
				}
				fmt.Fprintf(&want, "%s\n%s\n", Line(k, env, false), Line(k, env, true))
				for range 50 {
					s, line := randomShape(r)
					d := Route(s, k, env)
					seen[d.Route]++
					seen[d.Reason]++
					seen[d.Variant]++
					fmt.Fprintln(&in, line)
					fmt.Fprintf(&want, "%d %s\n", d.Split, d.Why(k))
				}
			}
			cmd := exec.Command(bin)
			cmd.Stdin = strings.NewReader(in.String())
			got, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			compareLines(t, string(got), want.String())
			ids := []string{"error", Refused, Upstream}
			if name == "short" {
				ids = append(ids, VariantF16)
			}
			if name == "default" { // the other kernel leaves some rows empty on purpose
				for _, row := range Table(k) {
					ids = append(ids, row.ID)
				}
				for _, reason := range Reasons(k) {
					if reason.ID != "VARIANT_DEVICE" || needsMatrix() {
						ids = append(ids, reason.ID)
					}
				}
			}
			for _, id := range ids {
				if seen[id] == 0 {
					t.Errorf("no random case reached %s", id)
				}
			}
		})
	}
}

func needsMatrix() bool {
	for _, v := range Variants() {
		if v.MatrixCores {
			return true
		}
	}
	return false
}

func compareLines(t *testing.T, got, want string) {
	t.Helper()
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			t.Fatalf("answer %d\n C++: %s\n  Go: %s", i, g[i], w[i])
		}
	}
	if len(g) != len(w) {
		t.Fatalf("%d answers from C++, %d from Go", len(g), len(w))
	}
}

// TestConfigSaysWhatBroke gives the config header parameters that do not fit
// together and wants the compiler to say which.
func TestConfigSaysWhatBroke(t *testing.T) {
	for want, change := range map[string]func(*recipe.Kernel){
		"decode_bn does not divide chunk":      func(k *recipe.Kernel) { k.DecodeBN = 48 },
		"v_sub_tile does not divide decode_bn": func(k *recipe.Kernel) { k.VSubTile = 7 },
		"chunk does not divide split_size":     func(k *recipe.Kernel) { k.SplitSize = 64 },
		"chunk does not divide super_chunk":    func(k *recipe.Kernel) { k.SuperChunk = 64 },
		"verify_max_nq is outside":             func(k *recipe.Kernel) { k.VerifyMaxNQ = 9 },
		"bm * gqa_group is not whole rows":     func(k *recipe.Kernel) { k.BM = 4 },
		"bn is not one or two cells per lane":  func(k *recipe.Kernel) { k.BN = 16 },
		"not whole blocks of 32":               func(k *recipe.Kernel) { k.HeadSizes = []int{80} },
		"gqa_group is":                         func(k *recipe.Kernel) { k.GQAGroup = "quad" },
	} {
		k := kernel()
		change(&k)
		dir := t.TempDir()
		renderHeaders(t, dir, k)
		_, err := compile(t, dir, `#include "packed16-config.h"`+"\nint main() {}\n")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want a static_assert that says %q, got %v", want, err)
		}
	}
}

// TestConfigIsSeenByThePreprocessor: kernels choose code with #if, where a
// name that is no macro counts as 0 without a word.
func TestConfigIsSeenByThePreprocessor(t *testing.T) {
	k := kernel()
	k.ScaleOnce = true
	dir := t.TempDir()
	renderHeaders(t, dir, k)
	source := "#include \"packed16-config.h\"\n#if !PACKED16_SCALE_ONCE\n#error not a macro\n#endif\nint main() {}\n"
	for _, c := range consts(k) {
		source += "#ifndef PACKED16_" + c.Name + "\n#error " + c.Name + "\n#endif\n"
	}
	if _, err := compile(t, dir, source); err != nil {
		t.Error(err)
	}
}

// TestEnvAbortsAtLoad runs packed16_env_get in a process of its own.
func TestEnvAbortsAtLoad(t *testing.T) {
	dir := t.TempDir()
	renderHeaders(t, dir, kernel())
	bin, err := compile(t, dir, `#include "packed16-env.h"
int main() { packed16_env_get(); packed16_env_get(); printf("loaded %d\n", packed16_env_get().value[PACKED16_FLAG_DECODE_SPLITK_SIZE]); }`)
	if err != nil {
		t.Fatal(err)
	}
	run := func(vars ...string) (string, error) {
		cmd := exec.Command(bin)
		cmd.Env = vars
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := run("GGML_CUDA_ROCM_Q8K_DOT4_DECODE_SPLITK_SIZE=256", "LLAMA_MTP_PREFILL_CHUNK=1024")
	if err != nil || !strings.HasSuffix(out, "loaded 256\n") || strings.Count(out, "does nothing") != 1 {
		t.Errorf("good environment: %v\n%s", err, out)
	}
	out, err = run("GGML_CUDA_ROCM_Q8K_DOT4_DECODE_SPLITK_SIZE=100", "GGML_CUDA_FA_ROUTE_REQUIRE=vec")
	if err == nil || strings.Contains(out, "loaded") {
		t.Errorf("bad environment loaded: %s", out)
	}
	for _, want := range []string{"a multiple of 128", "use rocm_q8k_dot4_kq"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in: %s", want, out)
		}
	}
}
