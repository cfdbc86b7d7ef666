package recipe

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"dot4fa/internal/fault"
)

// shipped is the repository's root: the recipes that come with dot4fa.
var shipped = os.DirFS("../..")

func TestShippedRecipes(t *testing.T) {
	infos, err := List(shipped)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]Backend{}
	for _, in := range infos {
		if in.Err != nil {
			t.Errorf("%s: %v", in.Name, in.Err)
		}
		if in.Summary == "" {
			t.Errorf("%s has no summary", in.Name)
		}
		got[in.Name] = in.Backend
	}
	want := map[string]Backend{"base": "", "cpu": CPU, "cuda": CUDA, "rdna3": HIP}
	for name, b := range want {
		if have, ok := got[name]; !ok || have != b {
			t.Errorf("recipe %s: backend %q (listed: %v), want %q", name, have, ok, b)
		}
	}
}

func TestShippedValues(t *testing.T) {
	r, err := Load(shipped, "rdna3")
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Env) != 0 {
		t.Errorf("rdna3 sets run-time flags: %v", r.Env)
	}
	for k, v := range map[string]string{
		"GGML_HIP": "ON", "GPU_TARGETS": "gfx1100", "GGML_CUDA_FA_ALL_QUANTS": "ON", "CMAKE_BUILD_TYPE": "Release",
		"LLAMA_BUILD_UI": "OFF", "LLAMA_USE_PREBUILT_UI": "OFF",
	} {
		if r.CMake[k] != v {
			t.Errorf("rdna3: %s = %q, want %q", k, r.CMake[k], v)
		}
	}
	if r.Upstream.Commit != "d775b8967a46d8beb110d444aa3b8938179e0dd8" || r.Upstream.Tag != "b10573" {
		t.Errorf("pin = %+v", r.Upstream)
	}
	if r.PinFile() != "recipes/base.yaml" {
		t.Errorf("PinFile = %s", r.PinFile())
	}
	if r.Kernel.Chunk != 128 || r.Kernel.SplitSize != 512 || r.Kernel.SplitKThreshold != 256 || len(r.Kernel.HeadSizes) != 3 {
		t.Errorf("kernel = %+v", r.Kernel)
	}
	c, err := Load(shipped, "cuda")
	if err != nil {
		t.Fatal(err)
	}
	if c.CMake["CMAKE_CUDA_ARCHITECTURES"] != "90" {
		t.Errorf("cuda architectures = %q", c.CMake["CMAKE_CUDA_ARCHITECTURES"])
	}
	if c.Hash() == r.Hash() {
		t.Error("two recipes have one hash")
	}
	list := r.Cache()
	for i := 1; i < len(list); i++ {
		if list[i-1].Key >= list[i].Key {
			t.Errorf("cache entries not in order: %v", list)
		}
	}
}

func TestUnknownRecipe(t *testing.T) {
	_, err := Load(shipped, "rdna")
	if fault.Code(err) != fault.Usage || !strings.Contains(fault.Hint(err), "did you mean rdna3? known recipes: base, cpu, cuda, rdna3") {
		t.Errorf("error = %v, hint = %q", err, fault.Hint(err))
	}
	for _, name := range []string{"", "../base", "no/such.yaml", "nothing.yaml", "Ünknown"} {
		if _, err := Load(shipped, name); fault.Code(err) != fault.Usage || fault.Hint(err) == "" {
			t.Errorf("Load(%q) = %v, hint %q", name, err, fault.Hint(err))
		}
	}
}

func TestExtends(t *testing.T) {
	files := map[string]string{
		"base": "name: base\nsummary: b\n" + pin + "  exclude: [docs/, media/]\ncmake: {A: 1, B: true, C: x}\nenv: {V: on}\nkernel: {chunk: 64, bm: 16}\ntargets: [a, b]\nbackend: cpu\n",
		"mid":  "name: mid\nextends: base\ncmake: {B: false, C: ~}\nkernel: {chunk: 256}\n",
		"top":  "name: top\nextends: mid\nenv: {V: ~, W: true}\ntargets: [c]\nupstream: {exclude: []}\n",
	}
	r, err := load(files, "top")
	if err != nil {
		t.Fatal(err)
	}
	if r.CMake["A"] != "1" || r.CMake["B"] != "OFF" {
		t.Errorf("cmake = %v", r.CMake)
	}
	if _, there := r.CMake["C"]; there {
		t.Error("a null does not take an entry away")
	}
	if len(r.Env) != 1 || r.Env["W"] != "1" {
		t.Errorf("env = %v", r.Env)
	}
	if r.Kernel.Chunk != 256 || r.Kernel.BM != 16 {
		t.Errorf("kernel = %+v", r.Kernel)
	}
	if strings.Join(r.Targets, " ") != "c" || len(r.Upstream.Exclude) != 0 || r.Upstream.Tag != "b1" {
		t.Errorf("targets = %v, upstream = %+v", r.Targets, r.Upstream)
	}
	if r.Summary != "" {
		t.Error("the summary is inherited")
	}
	if got := strings.Join(r.Files(), " "); got != "recipes/top.yaml recipes/mid.yaml recipes/base.yaml" {
		t.Errorf("files = %s", got)
	}
	if p, ok := r.Origin("kernel.chunk"); !ok || p.String() != "recipes/mid.yaml:4:17" {
		t.Errorf("origin of chunk = %v, %v", p, ok)
	}
	if _, ok := r.Origin("kernel.bn"); ok {
		t.Error("a default has an origin")
	}
}

func TestExtendsCircleAndDepth(t *testing.T) {
	_, err := load(map[string]string{"a": "name: a\nextends: b\n", "b": "name: b\nextends: c\n", "c": "name: c\nextends: a\n"}, "a")
	if err == nil || !strings.Contains(err.Error(), "circle: a -> b -> c -> a") || !strings.HasPrefix(err.Error(), "recipes/c.yaml:2:10") {
		t.Errorf("circle: %v", err)
	}
	chain := func(n int) map[string]string {
		files := map[string]string{}
		for i := range n {
			id, next := string(rune('a'+i)), string(rune('b'+i))
			files[id] = "name: " + id + "\nextends: " + next + "\n"
		}
		id := string(rune('a' + n))
		files[id] = strings.Replace(ok, "name: x", "name: "+id, 1)
		return files
	}
	if _, err := load(chain(MaxExtends), "a"); err != nil {
		t.Errorf("depth %d: %v", MaxExtends, err)
	}
	if _, err := load(chain(MaxExtends+1), "a"); err == nil || !strings.Contains(err.Error(), "more than 8 deep") {
		t.Errorf("depth %d: %v", MaxExtends+1, err)
	}
}

// TestLocalFile: a file of the user's own extends a neighbour or a shipped one,
// also by the same name.
func TestLocalFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "with space é")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return p
	}
	mine := write("mine.yml", "name: mine\nextends: near\nkernel: {chunk: 64}\n")
	write("near.yaml", "name: near\nextends: cpu\ntargets: [llama-cli]\n")
	r, err := Load(shipped, mine)
	if err != nil {
		t.Fatal(err)
	}
	if r.Kernel.Chunk != 64 || len(r.Targets) != 1 || r.Backend != CPU || r.Upstream.Tag != "b10573" {
		t.Errorf("recipe = %+v", r)
	}
	same := write("rdna3.yaml", "name: rdna3\nextends: rdna3\ngpu_targets: [gfx1101, gfx11-generic]\n")
	if r, err = Load(shipped, same); err != nil {
		t.Fatal(err)
	}
	if r.CMake["GPU_TARGETS"] != "gfx1101;gfx11-generic" {
		t.Errorf("GPU_TARGETS = %q", r.CMake["GPU_TARGETS"])
	}
	a := write("a.yaml", "name: a\nextends: b\n")
	write("b.yaml", "name: b\nextends: a\n")
	if _, err = Load(shipped, a); err == nil || !strings.Contains(err.Error(), "circle") {
		t.Errorf("circle of files: %v", err)
	}
	if os.Getuid() != 0 {
		if err := os.Chmod(mine, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(shipped, mine); fault.Code(err) != fault.Environment {
			t.Errorf("unreadable file: %v", err)
		}
	}
}

func TestListHidesNothing(t *testing.T) {
	m := fstest.MapFS{
		"recipes/x.yaml":   {Data: []byte(ok)},
		"recipes/bad.yaml": {Data: []byte("name: bad\nsummary: s\nnope: 1\n")},
	}
	infos, err := List(m)
	if err != nil || len(infos) != 2 || infos[0].Name != "bad" || infos[0].Err == nil || infos[1].Err != nil {
		t.Errorf("List = %+v, %v", infos, err)
	}
}

func TestHash(t *testing.T) {
	hash := func(text string) string {
		r, err := load(map[string]string{"x": text}, "x")
		if err != nil {
			t.Fatal(err)
		}
		return r.Hash()
	}
	base := hash(ok)
	for _, same := range []string{
		ok + "# a comment\n", ok + "kernel: {chunk: 128}\n", ok + "summary: other words\n", ok + "gpu_targets: []\n",
	} {
		if hash(same) != base {
			t.Errorf("the hash changed with %q", strings.TrimPrefix(same, ok))
		}
	}
	seen := map[string]string{base: "nothing"}
	for _, more := range []string{
		"kernel: {chunk: 64}\n", "cmake: {A: 1}\n", "env: {A: 1}\n", "cmake: {A: 2}\n", "kernel: {scale_once: true}\n", "kernel: {v_types: [f16]}\n",
	} {
		h := hash(ok + more)
		if other, dup := seen[h]; dup {
			t.Errorf("%q and %q have one hash", more, other)
		}
		seen[h] = more
	}
}
