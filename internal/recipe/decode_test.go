package recipe

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"dot4fa/internal/fault"
)

const pin = "upstream:\n  url: https://example.org/up\n  commit: 0123456789abcdef0123456789abcdef01234567\n  tag: b1\n"

// ok is a complete recipe called x.
const ok = "name: x\nbackend: cpu\ntargets: [a]\n" + pin

func load(files map[string]string, name string) (*Recipe, error) {
	m := fstest.MapFS{}
	for f, text := range files {
		m["recipes/"+f+".yaml"] = &fstest.MapFile{Data: []byte(text)}
	}
	return Load(m, name)
}

// TestBad: every kind of fault says where it is, what is allowed and what was
// probably meant.
func TestBad(t *testing.T) {
	amd := "name: x\nbackend: hip\ncmake: {GGML_HIP: ON}\ngpu_targets: [gfx1100]\ntargets: [a]\n" + pin
	nvidia := "name: x\nbackend: cuda\ncmake: {GGML_CUDA: ON}\ngpu_targets: ['90']\ntargets: [a]\n" + pin
	hip := "name: x\nbackend: hip\ncmake:\n  GGML_HIP: ON\ntargets: [a]\n" + pin
	tests := []struct {
		name, text string
		where      string // line:col
		what, hint string // parts of the message and the hint
	}{
		{"unknown key", ok + "backendd: cpu\n", "8:1", "unknown key backendd", "did you mean backend?"},
		{"unknown nested key", ok + "kernel:\n  split-size: 512\n", "9:3", "unknown key split-size", "did you mean split_size?"},
		{"unknown key far from all", ok + "zzzzzzzz: 1\n", "8:1", "unknown key zzzzzzzz", "allowed here: name, summary"},
		{"key twice", ok + "backend: cpu\n", "8:1", "backend is given twice", "line 2"},
		{"group twice", ok + "upstream: {}\n", "8:1", "upstream is given twice", "line 4"},
		{"nested key twice", ok + "kernel: {chunk: 64, chunk: 128}\n", "8:21", "chunk is given twice", "line 8"},
		{"entry twice", ok + "cmake:\n  A: 1\n  A: 2\n", "10:3", "A is given twice under cmake", "line 9"},
		{"list item twice", ok + "kernel: {head_sizes: [64, 64]}\n", "8:27", "has 64 twice", ""},
		{"string for a number", ok + "kernel: {chunk: big}\n", "8:17", `kernel.chunk: want a power of two, 64 to 1024, have "big"`, "recipe schema"},
		{"quoted number", ok + "kernel: {chunk: '64'}\n", "8:17", "want a power of two", ""},
		{"fraction", ok + "kernel: {chunk: 64.0}\n", "8:17", "have the fraction 64.0", ""},
		{"hex", ok + "kernel: {chunk: 0x40}\n", "8:17", "have the number 0x40", ""},
		{"huge number", ok + "kernel: {chunk: 99999999999999999999}\n", "8:17", "kernel.chunk", ""},
		{"negative", ok + "kernel: {chunk: -64}\n", "8:17", "cannot be -64", "power of two"},
		{"number for a string", "name: 3\n", "1:7", "name: want a string, have the number 3", ""},
		{"mapping for a string", "name: {a: b}\n", "1:7", "have a mapping", ""},
		{"list for a mapping", "name: x\nupstream: [a]\n", "2:11", "want a mapping of url, commit, tag, exclude", ""},
		{"nothing for a mapping", "name: x\nkernel:\n", "2:8", "have nothing", ""},
		{"nothing for a value", "name: x\nbackend:\n", "2:9", "backend: want one of cpu, hip, cuda", ""},
		{"yes for a boolean", ok + "kernel: {scale_once: yes}\n", "8:22", "want true or false", ""},
		{"scalar for a list", ok + "kernel: {head_sizes: 64}\n", "8:22", "want a list of 64, 128, 256", ""},
		{"list in a list", ok + "kernel: {head_sizes: [[64]]}\n", "8:23", "have a list", ""},
		{"empty list", ok + "kernel: {v_types: []}\n", "8:19", "must not be empty", "f16, q8_0, q4_0"},
		{"head size without kernel", ok + "kernel: {head_sizes: [64, 80]}\n", "8:27", "cannot be 80", "64, 128, 256"},
		{"V type without kernel", ok + "kernel: {v_types: [q8]}\n", "8:20", `cannot be "q8"`, "did you mean q8_0?"},
		{"chunk not a power of two", ok + "kernel: {chunk: 96}\n", "8:17", "cannot be 96", "power of two"},
		{"chunk larger than split", ok + "kernel: {chunk: 1024}\n", "1:1", "kernel.split_size cannot be 512", "multiple of chunk (1024)"},
		{"split not a multiple", ok + "kernel:\n  chunk: 512\n  split_size: 256\n", "10:15", "kernel.split_size cannot be 256", "chunk (512)"},
		{"super chunk below chunk", ok + "kernel: {super_chunk: 64}\n", "8:23", "kernel.super_chunk cannot be 64", "multiple of chunk (128)"},
		{"threshold off the padding", ok + "kernel: {splitk_threshold: 1000}\n", "8:28", "cannot be 1000", "256"},
		{"chunk below the merge", ok + "kernel: {chunk: 32}\n", "8:17", "kernel.chunk cannot be 32", "64 to 1024"},
		{"decode_bn over chunk", ok + "kernel: {chunk: 64, decode_bn: 128}\n", "8:32", "kernel.decode_bn cannot be 128", "divisor of chunk"},
		{"prefill tile too tall", ok + "kernel: {bm: 64, gqa_group: pair}\n", "8:14", "kernel.bm cannot be 64", "at most 32 with gqa_group pair"},
		{"triads on AMD", amd + "kernel: {gqa_group: triad, bm: 16}\n", "10:21", "kernel.gqa_group cannot be triad", "single or pair"},
		{"tall triads on NVIDIA", nvidia + "kernel: {gqa_group: triad, bm: 32}\n", "10:32", "kernel.bm cannot be 32", "at most 16"},
		{"chunk over two warps' lanes", nvidia + "kernel: {chunk: 256}\n", "10:17", "kernel.chunk cannot be 256", "at most 128 with head size 64"},
		{"chunk over every warp's lanes", nvidia + "kernel: {chunk: 512, head_sizes: [256]}\n", "10:17", "kernel.chunk cannot be 512", "at most 256"},
		{"few rows of short chunks", nvidia + "kernel: {chunk: 64, verify_max_nq: 4}\n", "10:36", "kernel.verify_max_nq cannot be 4", "at least 5"},
		{"short SHA", "name: x\nupstream: {commit: d775b89, tag: b1}\n", "2:20", "commit cannot be", "40 lower-case hex"},
		{"all-digit SHA", "name: x\nupstream: {commit: 0123456789012345678901234567890123456789, tag: b1}\n", "2:20", "upstream.commit: want a string", ""},
		{"upper-case SHA", "name: x\nupstream: {commit: 0123456789ABCDEF0123456789abcdef01234567, tag: b1}\n", "2:20", "cannot be", "40 lower-case hex"},
		{"commit without tag", "name: x\nupstream: {commit: 0123456789abcdef0123456789abcdef01234567}\n", "2:20", "without upstream.tag", "a pin is both"},
		{"tag without commit", "name: x\nupstream: {tag: b1}\n", "2:17", "without upstream.commit", "a pin is both"},
		{"no backend", "name: x\ntargets: [a]\n" + pin, "1:1", "has no backend", "extend"},
		{"no targets", "name: x\nbackend: cpu\n" + pin, "1:1", "has no targets", ""},
		{"empty targets", "name: x\nbackend: cpu\ntargets: []\n" + pin, "3:10", "targets must not be empty", ""},
		{"no pin", "name: x\nbackend: cpu\ntargets: [a]\n", "1:1", "has no upstream.url", ""},
		{"unknown backend", "name: x\nbackend: hpi\n", "2:10", `backend cannot be "hpi"`, "did you mean hip? allowed: cpu, hip, cuda"},
		{"GPU target of another maker", hip + "gpu_targets: [gfx906]\n", "10:14", "unknown GPU target gfx906", "gfx1100, gfx1101"},
		{"GPU target mistyped", hip + "gpu_targets: [gfx1104]\n", "10:14", "unknown GPU target gfx1104", "did you mean gfx1100?"},
		{"no GPU target", hip, "1:1", "needs gpu_targets", "gfx1100"},
		{"GPU target for the CPU", ok + "gpu_targets: [gfx1100]\n", "8:14", "backend cpu has no gpu_targets", ""},
		{"cuda target", "name: x\nbackend: cuda\ncmake: {GGML_CUDA: ON}\ngpu_targets: [sm_90]\ntargets: [a]\n" + pin, "4:14", "unknown GPU target sm_90", "90"},
		{"native and more", "name: x\nbackend: cuda\ncmake: {GGML_CUDA: ON}\ngpu_targets: [native, 90]\ntargets: [a]\n" + pin, "4:14", "native cannot be combined", ""},
		{"hip option missing", "name: x\nbackend: hip\ngpu_targets: [gfx1100]\ntargets: [a]\n" + pin, "2:10", "needs cmake GGML_HIP: ON", "silently"},
		{"hip option off", "name: x\nbackend: hip\ngpu_targets: [gfx1100]\ncmake: {GGML_HIP: false}\ntargets: [a]\n" + pin, "2:10", "needs cmake GGML_HIP: ON", ""},
		{"option of another backend", ok + "cmake: {GGML_CUDA: ON}\n", "8:20", "GGML_CUDA is on but the backend is cpu", ""},
		{"retired option", ok + "cmake: {GGML_HIPBLAS: ON}\n", "8:9", "GGML_HIPBLAS cannot be set", "use GGML_HIP"},
		{"option made from gpu_targets", ok + "cmake: {GPU_TARGETS: gfx1100}\n", "8:9", "GPU_TARGETS cannot be set", "gpu_targets"},
		{"option that is a list", ok + "cmake: {A: [x]}\n", "8:12", "cmake.A: want a string", ""},
		{"option name", ok + "cmake: {A B: x}\n", "8:9", "A B cannot be set", ""},
		{"env name", ok + "env: {A=B: x}\n", "8:7", "A=B cannot be set", ""},
		{"alias", "name: &n x\nsummary: *n\n", "1:7", "anchors and aliases", "extends"},
		{"merge key", "name: x\n<<: {backend: cpu}\n", "2:1", "merge keys", "extends"},
		{"second document", ok + "---\nname: y\n", "", "a second document", ""},
		{"empty file", "", "1:1", "the file is empty", ""},
		{"comment only", "# nothing\n", "1:1", "the file is empty", ""},
		{"not a mapping", "- a\n", "1:1", "want a mapping of keys, have a list", ""},
		{"not YAML", "name: x\n  bad: [\n", "", "not YAML", ""},
		{"tab", "name: x\nupstream:\n\turl: x\n", "3:2", "not YAML", ""},
		{"no name", "backend: cpu\n", "1:1", "has no name", "name: x"},
		{"name of another", "name: y\n", "1:7", "name is y but its file is called x", ""},
		{"name with a space", "name: x y\n", "1:7", "name cannot be", "lower-case"},
		{"circle of one", "name: x\nextends: x\n", "2:10", "circle: x -> x", ""},
		{"unknown parent", "name: x\nextends: y\n", "2:10", "unknown recipe y", "known recipes: x"},
		{"too large", "# " + strings.Repeat("x", maxSize), "", "too large", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := load(map[string]string{"x": tt.text}, "x")
			var e *fault.Error
			if !errors.As(err, &e) {
				t.Fatalf("error = %v, want a fault", err)
			}
			if tt.where != "" && e.Where != "recipes/x.yaml:"+tt.where {
				t.Errorf("where = %s, want recipes/x.yaml:%s (%v)", e.Where, tt.where, err)
			}
			if !strings.HasPrefix(e.Where, "recipes/x.yaml") || !strings.Contains(e.What, tt.what) {
				t.Errorf("error = %v, want %q", err, tt.what)
			}
			if e.Hint == "" || !strings.Contains(e.Hint, tt.hint) {
				t.Errorf("hint = %q, want %q in it", e.Hint, tt.hint)
			}
			if fault.Code(err) != fault.Usage {
				t.Errorf("exit code = %d, want %d", fault.Code(err), fault.Usage)
			}
			if strings.HasSuffix(e.What, ".") || strings.HasSuffix(e.Hint, ".") {
				t.Errorf("full stop in %q / %q", e.What, e.Hint)
			}
		})
	}
}
