package figures

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

// The figures of the documents are those that the stored results give.
func TestDocumentsAreCurrent(t *testing.T) {
	repo := os.DirFS("../..")
	for file, names := range map[string][]string{
		"README.md": {"quality", "depth", "vram", "speed"}, "docs/evidence.md": {"quality", "depth", "attention", "vram-log"},
	} {
		doc, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		_, stale, err := Render(repo, doc)
		if err != nil {
			t.Fatal(err)
		}
		if len(stale) > 0 {
			t.Errorf("%s: not current: %s; `go run . figures --write %s` makes them", file, strings.Join(stale, ", "), file)
		}
		for _, name := range names {
			if !strings.Contains(string(doc), "<!-- figures: "+name+" -->") {
				t.Errorf("%s has no figures %s", file, name)
			}
		}
	}
}

const stored = `{"format":1,"made":"2026-01-02T00:00:00Z","about":{"dot4fa":"devel","llama_cpp":"b1"},"depth":[@DEPTH@],"quality":{"model":{"name":"m.gguf"},"text":{"name":"t.txt"},
"backend":"CPU","contexts":[256,512],"chunks":2,"cells":[
{"k":"packed16","v":"f16","context":256,"kld":{"mean":1e-5,"standard_error":1e-6},"base_ppl":{"mean":3},"ppl":{"mean":3.1},"same_top":0.99,"by_position":[{"from":128,"to":254}]},
{"k":"packed16","v":"f16","context":512,"kld":{"mean":2e-5,"standard_error":1e-6},"base_ppl":{"mean":3},"ppl":{"mean":3.2},"same_top":0.9812,"by_position":[{"from":256,"to":510}]},
{"k":"packed16","v":"q4_0","context":512,"problem":"refused"}]}}`

const run = `{"device":"Toy","commit":"c","repeat":5,"when":"2026-01-02T00:00:00Z","rows":[
{"nk":16384,"nq":1,"d":256,"gqa":6,"n_head_kv":4,"v":"q4_0","us":5.25,"baseline":"q8_0/q4_0","baseline_us":10.5},
{"nk":16384,"nq":1,"d":256,"gqa":6,"n_head_kv":4,"v":"q4_0","us":5.25,"baseline":"f16/f16","baseline_us":2100},
{"nk":16384,"nq":1,"d":128,"gqa":6,"n_head_kv":4,"v":"q4_0","us":7.77,"baseline":"q8_0/q4_0","baseline_us":1}]}`

const compared = `[{"model":"toy","use":{"parallel":4,"unified":true,"ubatch":512},"context":8192,"types":"f16/f16","k":1048576,"v":2097152,"equal":true,"log":{"k_mib":1,"v_mib":2}},
{"model":"toy","use":{"parallel":1,"ubatch":128},"context":8192,"types":"f16/f16","k":1,"v":2,"equal":false,"log":{"k_mib":1,"v_mib":2}}]`

func repo() fstest.MapFS {
	var depth []string
	for _, types := range []string{"f16/f16", "q8_0/f16", "packed16/f16", "packed16-mse/f16", "packed16/f16 +q8", "q8_0/q4_0", "packed16/q4_0", "packed16/q4_0 +q8"} {
		depth = append(depth, `{"nk":2048,"sharp":4,"types":"`+types+`","nmse":2.5e-5}`)
	}
	return fstest.MapFS{
		"docs/results/vram-log.json":    {Data: []byte(compared)},
		"docs/results/quality-cpu.json": {Data: []byte(strings.Replace(stored, "@DEPTH@", strings.Join(depth, ","), 1))}, "docs/bench/toy.json": {Data: []byte(run)},
		"docs/bench/old.json": {Data: []byte(`{"device":"Old","reference":"a paper","rows":[]}`)},
	}
}

func TestRender(t *testing.T) {
	doc := "before\n"
	for _, name := range []string{"quality", "depth", "attention", "vram", "vram-log", "speed"} {
		doc += "<!-- figures: " + name + " -->\nold\n<!-- /figures -->\nafter " + name + "\n"
	}
	out, stale, err := Render(repo(), []byte(doc))
	if err != nil || len(stale) != 6 {
		t.Fatalf("%v, stale %q", err, stale)
	}
	for _, want := range []string{
		"| packed16/f16 | 3.2000 | 2.00e-05 | 1.00e-06 | 98.12 % |", "2 chunks of 512", "| f16/f16 | 3.0000 |",
		"| 128–254 | 1.00e-05 ± 1.00e-06 | – |", "| 32,768 | 2048 | 1568 | 1088 | 832 | 832 |",
		"| toy | 4 unified | 8,192 | f16/f16 | 1 | 1.00 | 2 | 2.00 |", "1 of 2 comparisons", "| 2048 | 4 | 2.5e-05 |",
		"| 16,384 | 1 | 5.25 | 10.5 | 0.50 | 2,100 | 0.00 |", "Toy, head size 256", "after speed",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	for _, not := range []string{"old", "7.77", "refused", "Old"} {
		if strings.Contains(string(out), not) {
			t.Errorf("%q is in\n%s", not, out)
		}
	}
	again, stale, err := Render(repo(), out)
	if err != nil || len(stale) != 0 || string(again) != string(out) {
		t.Errorf("a second time: %v, stale %q", err, stale)
	}
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		doc  string
		edit func(fstest.MapFS)
		want string
	}{
		"unknown":       {doc: "<!-- figures: qualty -->\n<!-- /figures -->", want: `no figures "qualty"`},
		"not closed":    {doc: "<!-- figures: quality -->\n", want: "1 marks open figures, 0 close"},
		"nothing there": {doc: "<!-- figures: quality -->\n<!-- /figures -->", edit: func(m fstest.MapFS) { delete(m, "docs/results/quality-cpu.json") }, want: "no verification is stored"},
		"damaged": {doc: "<!-- figures: quality -->\n<!-- /figures -->", edit: func(m fstest.MapFS) {
			m["docs/results/quality-cpu.json"] = &fstest.MapFile{Data: []byte("{")}
		}, want: "damaged"},
		"no speed": {doc: "<!-- figures: speed -->\n<!-- /figures -->", edit: func(m fstest.MapFS) { delete(m, "docs/bench/toy.json") }, want: "no run of bench"},
	} {
		m := repo()
		if c.edit != nil {
			c.edit(m)
		}
		if _, _, err := Render(m, []byte(c.doc)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
