package seedbench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"dot4fa/internal/bench"
	"dot4fa/internal/output"
	"dot4fa/internal/page"
)

// Result is a run of the seed's experiments.
type Result struct {
	Device       string        `json:"device"`
	Commit       string        `json:"commit"`
	Recipe       string        `json:"recipe"`
	When         time.Time     `json:"when"`
	Measurements []Measurement `json:"measurements"`
	Decode       []Split       `json:"decode"`
	Threshold    int           `json:"threshold"` // the recipe's: cells from which decode goes split-K
	Packing      float64       `json:"packing_us"`

	Tokens []bench.Tokens `json:"tokens,omitempty"`
	Model  *bench.Model   `json:"model,omitempty"`
}

// Split is decode of one row at one depth with one size of split.
type Split struct {
	NK     int     `json:"nk"`
	Cells  int     `json:"cells"` // of a split; 0: one workgroup takes all cells of a KV head
	US     float64 `json:"us"`
	Spread float64 `json:"spread"`
}

// Write writes the run as JSON and as a page to dir, and returns their names.
func (r *Result) Write(dir string) ([]string, error) {
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := r.Markdown(&text); err != nil {
		return nil, err
	}
	if err := output.Dir(dir); err != nil {
		return nil, err
	}
	var files []string
	for ext, content := range map[string][]byte{".json": append(data, '\n'), ".md": text.Bytes()} {
		file := filepath.Join(dir, bench.Name(r.Device)+"-seed"+ext)
		if err := output.Write(file, content, 0o666); err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	slices.Sort(files)
	return files, nil
}

// Print writes the tables as text, Markdown writes them as a page.
func (r *Result) Print(w io.Writer) error { return r.tables(page.Text(w)) }

// Markdown writes the tables as a page.
func (r *Result) Markdown(w io.Writer) error { return r.tables(page.Markdown(w)) }

func (r *Result) tables(p *page.Page) error {
	p.Heading("The seed's experiments on " + r.Device)
	p.Line("dot4fa %s, recipe %s, %s; the seed's figures: %s, ROCm 7.2.3", r.Commit, r.Recipe, r.When.Format("2006-01-02"), seedGPU)
	p.Line("logits: D=256, one head; NMSE against float64 is the worst of the table; DOT4 GOP/s counts dot4 instructions")

	p.Heading("KQ by layout, 256 rows × 1024 cells")
	p.Table(r.layoutRows())
	p.Heading("KQ by layout and size")
	p.Table(r.sizeRows())
	p.Heading("What the seed tried around the loop, 512 rows × 2048 cells")
	p.Table(r.triedRows())
	p.Heading("Tile and staging of the dot4 prefill, 24 heads on 4, q4_0 V, causal")
	p.Table(r.tileRows())
	p.Heading("Recthist: tiles by class of the mask, 2048 rows × 2048 cells")
	p.Table(r.maskRows())
	p.Heading("Pipeline stages, 2048 rows × 2048 cells, one layer")
	p.Table(r.stageRows())
	p.Heading("Decode by split, one row, packed16/q4_0, ms of a call")
	p.Table(r.decodeRows())
	p.Line("%s", r.thresholdLine())
	if r.Model != nil {
		p.Heading("Whole model: prefill by length of the prompt, packed16/q4_0")
		p.Line("%s: %s; the seed's: Qwen3.6-27B Q4_K_M", r.Model.Name, r.Model.What)
		p.Table(r.prefillRows())
		p.Heading("Whole model: by configuration, tokens per second at 15,000 cells")
		p.Table(r.configRows())
	}
	return p.Err()
}

func (r *Result) find(what, name string, nq, nk int) (Measurement, bool) {
	for _, m := range r.Measurements {
		if m.What == what && m.Name == name && (nq == 0 || m.NQ == nq && m.NK == nk) {
			return m, true
		}
	}
	return Measurement{}, false
}

// rate is dot4 instructions a second, in 10^9.
func rate(m Measurement, heads int) float64 {
	return float64(m.NQ) * float64(m.NK) * float64(heads) * dot4PerLogit / m.US / 1000
}

func ms(us float64) string { return strconv.FormatFloat(us/1000, 'f', 4, 64) }

func times(a, b float64) string {
	if a == 0 || b == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f×", a/b)
}

func (r *Result) layoutRows() [][]string {
	rows := [][]string{{"Layout", "ms", "DOT4 GOP/s", "vs q8_0 baseline", "seed: ms", "DOT4 GOP/s", "vs q8_0 baseline", "NMSE"}}
	base, _ := r.find("kq", "q8_0 block", 256, 1024)
	for _, l := range seedLayouts {
		theirs := 256.0 * 1024 * dot4PerLogit / l.ms / 1e6
		line := []string{l.name, "–", "–", "–", fmt.Sprintf("%.4f", l.ms), fmt.Sprintf("%.1f", theirs), times(seedLayouts[0].ms, l.ms), "–"}
		if m, ok := r.find("kq", l.ours, 256, 1024); ok {
			line[1], line[2], line[3], line[7] = ms(m.US), fmt.Sprintf("%.1f", rate(m, 1)), times(base.US, m.US), fmt.Sprintf("%.0e", m.NMSE)
		}
		rows = append(rows, line)
	}
	return rows
}

func (r *Result) sizeRows() [][]string {
	rows := [][]string{{"nq", "nk", "q8block ms", "packed16 ms", "scale-once ms", "packed speedup", "seed: q8block ms", "packed16 ms", "scale-once ms", "packed speedup"}}
	for _, s := range seedShapes {
		q8, _ := r.find("kq", "q8_0 block", s.nq, s.nk)
		packed, _ := r.find("kq", "packed16", s.nq, s.nk)
		once, _ := r.find("kq", "packed16, one row scale", s.nq, s.nk)
		rows = append(rows, []string{strconv.Itoa(s.nq), strconv.Itoa(s.nk), ms(q8.US), ms(packed.US), ms(once.US), times(q8.US, packed.US),
			fmt.Sprintf("%.4f", s.q8), fmt.Sprintf("%.4f", s.packed), fmt.Sprintf("%.4f", s.scale), times(s.q8, s.packed)})
	}
	return rows
}

func (r *Result) triedRows() [][]string {
	rows := [][]string{{"Experiment", "ms", "over the scalar body", "seed: result"}}
	body, _ := r.find("kq", "packed16", 512, 2048)
	rows = append(rows, []string{"scalar body, a thread per logit", ms(body.US), "1.00×", "the fastest"})
	for _, t := range seedTried {
		m, _ := r.find("kq", t.ours, 512, 2048)
		rows = append(rows, []string{t.name, ms(m.US), times(m.US, body.US), t.result})
	}
	return rows
}

// tileRows lists the kernel parameters that were compiled, the recipe's first.
func (r *Result) tileRows() [][]string {
	rows := [][]string{{"tile", "512 × 3,328 ms", "over the recipe's", "2,048 × 2,048 ms", "over the recipe's", "NMSE"}}
	var first [2]float64
	var names []string
	for _, m := range r.Measurements {
		if m.What == "tile" && !slices.Contains(names, m.Name) {
			names = append(names, m.Name)
		}
	}
	for i, name := range names {
		a, _ := r.find("tile", name, 512, 3328)
		b, _ := r.find("tile", name, 2048, 2048)
		if i == 0 {
			first = [2]float64{a.US, b.US}
		}
		rows = append(rows, []string{name, ms(a.US), times(a.US, first[0]), ms(b.US), times(b.US, first[1]), fmt.Sprintf("%.0e", max(a.NMSE, b.NMSE))})
	}
	return append(rows, []string{"seed: bm 8, bn 8 or 16", "", "BN16: no gain", "", "BM16: no gain; K in LDS: -0.5–1.0%", ""})
}

func (r *Result) maskRows() [][]string {
	rows := [][]string{{"Kernel", "total ms", "DOT4 GOP/s", "PV GOP/s", "NMSE"}}
	for _, name := range []string{"tiles by class", "every tile reads the mask", "assumed causal"} {
		m, ok := r.find("mask", name, 2048, 2048)
		if !ok {
			continue
		}
		// of the pairs that are seen: half of them
		g := rate(m, headsMeasured) / 2
		rows = append(rows, []string{name, ms(m.US), fmt.Sprintf("%.1f", g), fmt.Sprintf("%.1f", 4*g), fmt.Sprintf("%.0e", m.NMSE)})
	}
	return append(rows, []string{fmt.Sprintf("seed: recthist_v2_prefix_exact, about %.2f M pairs", seedPairs/1e6), fmt.Sprintf("%.3f", seedRecthist), fmt.Sprint(seedDot4Rate), fmt.Sprint(seedPVRate), fmt.Sprintf("%.1e (relative RMS)", seedRelRMS)})
}

func (r *Result) stageRows() [][]string {
	rows := [][]string{{"Stage", "ms", "share", "seed: ms at pp2048, whole model"}}
	seed := map[string]string{"Q quantization": "1.9", "K packing": "0.3", "blockFA body": "658", "mask classes": "not there"}
	total := r.Packing * 4 // packing was timed for 512 tokens
	list := []Measurement{{Name: "K packing", US: total}}
	for _, m := range r.Measurements {
		if m.What == "stage" {
			list = append(list, m)
			total += m.US
		}
	}
	for _, m := range list {
		rows = append(rows, []string{m.Name, ms(m.US), fmt.Sprintf("%.2f %%", 100*m.US/total), seed[m.Name]})
	}
	return rows
}

func (r *Result) decodeRows() [][]string {
	var sizes, depths []int
	at := map[[2]int]float64{}
	for _, d := range r.Decode {
		if !slices.Contains(sizes, d.Cells) {
			sizes = append(sizes, d.Cells)
		}
		if !slices.Contains(depths, d.NK) {
			depths = append(depths, d.NK)
		}
		at[[2]int{d.NK, d.Cells}] = d.US
	}
	slices.Sort(sizes)
	slices.Sort(depths)
	head := []string{"nk"}
	for _, s := range sizes {
		if s == 0 {
			head = append(head, "one workgroup")
		} else {
			head = append(head, fmt.Sprintf("splits of %d", s))
		}
	}
	rows := [][]string{append(head, "seed: ms")}
	for _, nk := range depths {
		line := []string{strconv.Itoa(nk)}
		for _, s := range sizes {
			line = append(line, ms(at[[2]int{nk, s}]))
		}
		seed := "–"
		for _, d := range seedDecode {
			if d.nk == nk {
				seed = fmt.Sprintf("%.3f (%s)", d.ms, d.name)
			}
		}
		rows = append(rows, append(line, seed))
	}
	return rows
}

// thresholdLine says from which depth on splitting is faster than one workgroup.
func (r *Result) thresholdLine() string {
	one, best := map[int]float64{}, map[int]float64{}
	for _, d := range r.Decode {
		if d.Cells == 0 {
			one[d.NK] = d.US
		} else if best[d.NK] == 0 || d.US < best[d.NK] {
			best[d.NK] = d.US
		}
	}
	var faster []int
	for nk, us := range one {
		if best[nk] > 0 && best[nk] < us {
			faster = append(faster, nk)
		}
	}
	if len(faster) == 0 {
		return fmt.Sprintf("splitting is not faster at any of these depths; the recipe splits from %d cells, the seed from 2048", r.Threshold)
	}
	return fmt.Sprintf("splitting is faster from %d cells on; the recipe splits from %d, the seed from 2048", slices.Min(faster), r.Threshold)
}

// tokens finds a figure of llama-bench; "–" when it is not there.
func (r *Result) tokens(cache string, prompt, gen, depth int) string {
	for _, t := range r.Tokens {
		if t.Cache == cache && t.Prompt == prompt && t.Gen == gen && t.Depth == depth {
			return fmt.Sprintf("%.1f", t.PerSecond)
		}
	}
	return "–"
}

func (r *Result) prefillRows() [][]string {
	rows := [][]string{{"Prompt tokens", "t/s", "seed: v4 recthist (t/s)"}}
	for _, p := range seedPrefill {
		rows = append(rows, []string{strconv.Itoa(p.tokens), r.tokens("packed16/q4_0", p.tokens, 0, 0), fmt.Sprint(p.rate)})
	}
	return rows
}

func (r *Result) configRows() [][]string {
	rows := [][]string{{"Config", "cache", "Prefill", "Decode (15k ctx)", "seed: Prefill", "Decode (15k ctx)"}}
	for _, c := range seedConfigs {
		line := []string{c.name, c.Pair.String(), r.tokens(c.Pair.String(), seedContext, 0, 0), r.tokens(c.Pair.String(), 0, 64, seedContext), "–", "–"}
		if c.decode > 0 {
			line[4], line[5] = fmt.Sprint(c.prefill), fmt.Sprint(c.decode)
		}
		rows = append(rows, line)
	}
	return rows
}
