// Package figures writes the figures of the README from the results that are
// stored in the repository, each with the condition it was measured in. A figure
// stands between two marks,
//
//	<!-- figures: NAME -->
//	<!-- /figures -->
//
// and what is between them is never written by hand.
package figures

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"sort"
	"strings"

	"dot4fa/internal/bench"
	"dot4fa/internal/fault"
	"dot4fa/internal/page"
	"dot4fa/internal/verify"
	"dot4fa/internal/vram"
)

// Results and Bench are where results are stored in the repository.
const (
	Results = "docs/results"
	Bench   = "docs/bench"
)

// blocks makes each block from the repository's files.
var blocks = map[string]func(fs.FS) (string, error){
	"quality": quality, "depth": depth, "attention": attention, "vram": memory, "vram-log": logged, "speed": speed,
}

var mark = regexp.MustCompile(`(?s)<!-- figures: ([\w-]+) -->\n(.*?)<!-- /figures -->`)

// Render returns a document with every block made anew, and the names of those
// that were not current.
func Render(repo fs.FS, doc []byte) (out []byte, stale []string, err error) {
	if opened, closed := bytes.Count(doc, []byte("<!-- figures: ")), bytes.Count(doc, []byte("<!-- /figures -->")); opened != closed || opened != len(mark.FindAll(doc, -1)) {
		return nil, nil, fault.New(fault.Failure, "%d marks open figures, %d close them", opened, closed).Hintf("each <!-- figures: NAME --> needs its <!-- /figures -->")
	}
	out = mark.ReplaceAllFunc(doc, func(m []byte) []byte {
		name := string(mark.FindSubmatch(m)[1])
		block, ok := blocks[name]
		if !ok {
			var known []string
			for k := range blocks {
				known = append(known, k)
			}
			sort.Strings(known)
			err = fault.New(fault.Failure, "there are no figures %q", name).Hintf("figures: %s", strings.Join(known, ", "))
			return m
		}
		text, makeErr := block(repo)
		if makeErr != nil {
			err = makeErr
			return m
		}
		fresh := []byte("<!-- figures: " + name + " -->\n" + text + "<!-- /figures -->")
		if !bytes.Equal(fresh, m) {
			stale = append(stale, name)
		}
		return fresh
	})
	return out, stale, err
}

// table writes a Markdown table.
func table(head []string, rows [][]string) string {
	var b strings.Builder
	page.Markdown(&b).Table(append([][]string{head}, rows...))
	return strings.TrimSuffix(b.String(), "\n")
}

// verified reads the stored verifications that have a quality part.
func verified(repo fs.FS) ([]*verify.Report, error) {
	files, err := fs.Glob(repo, path.Join(Results, "quality-*.json"))
	if err != nil {
		return nil, err
	}
	var out []*verify.Report
	for _, f := range files {
		data, err := fs.ReadFile(repo, f)
		if err != nil {
			return nil, err
		}
		r, err := verify.Parse(data)
		if err != nil {
			return nil, fault.New(fault.Failure, "%w", err).At("%s", f).Hintf("make it again: dot4fa verify --write %s", f)
		}
		if r.Quality == nil || len(r.Quality.Cells) == 0 {
			return nil, fault.New(fault.Failure, "no quality is stored in it").At("%s", f).Hintf("dot4fa verify --write %s", f)
		}
		out = append(out, r)
	}
	if len(out) == 0 {
		return nil, fault.New(fault.Failure, "no verification is stored").At("%s", Results).Hintf("dot4fa verify --write %s/quality-cpu.json", Results)
	}
	return out, nil
}

func condition(r *verify.Report) string {
	q := r.Quality
	return fmt.Sprintf("%s, `%s`, `%s`, llama.cpp %s, dot4fa %s, %s", q.Backend, q.Model.Name, q.Text.Name, r.About.Upstream, commit(r.About.Tool), r.Made[:10])
}

// commit is the commit in a version that Go made up, as v0.0.0-DATE-COMMIT.
func commit(version string) string {
	return version[strings.LastIndexByte(version, '-')+1:]
}

// quality is the divergence at the deepest context.
func quality(repo fs.FS) (string, error) {
	reports, err := verified(repo)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, r := range reports {
		q := r.Quality
		ctx := slices.Max(q.Ctxs)
		var rows [][]string
		for _, c := range q.Cells {
			if c.Ctx != ctx || c.Problem != "" {
				continue
			}
			if len(rows) == 0 {
				rows = append(rows, []string{"f16/f16", fmt.Sprintf("%.4f", c.BasePPL.Mean), "–", "–", "–"})
			}
			rows = append(rows, []string{c.K + "/" + c.V, fmt.Sprintf("%.4f", c.PPL.Mean), verify.Sci(c.KLD.Mean), verify.Sci(c.KLD.Err), fmt.Sprintf("%.2f %%", 100*c.SameTop)})
		}
		fmt.Fprintf(&b, "Against f16/f16, %d chunks of %d, flash attention; %s:\n\n%s\n", q.Chunks, ctx, condition(r),
			table([]string{"K/V", "perplexity", "mean KLD", "±", "same top token"}, rows))
	}
	return b.String(), nil
}

// depth is the divergence by position, for pairs with an f16 and a q4_0 V.
func depth(repo fs.FS) (string, error) {
	reports, err := verified(repo)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, r := range reports {
		q := r.Quality
		pairs := []string{"packed16/f16", "q8_0/f16", "packed16/q4_0", "q8_0/q4_0"}
		var rows [][]string
		for _, ctx := range q.Ctxs {
			row := []string{""}
			for _, p := range pairs {
				i := slices.IndexFunc(q.Cells, func(c verify.Cell) bool { return c.K+"/"+c.V == p && c.Ctx == ctx && c.Problem == "" })
				if i < 0 {
					row = append(row, "–")
					continue
				}
				c := q.Cells[i]
				row[0] = fmt.Sprintf("%d–%d", c.Bins[0].From, c.Bins[len(c.Bins)-1].To)
				row = append(row, fmt.Sprintf("%s ± %s", verify.Sci(c.KLD.Mean), verify.Sci(c.KLD.Err)))
			}
			rows = append(rows, row)
		}
		fmt.Fprintf(&b, "Mean KLD by cells before the query, %s:\n\n%s\n", condition(r), table(append([]string{"cells"}, pairs...), rows))
	}
	return b.String(), nil
}

// attention is the computed error of one call by depth.
func attention(repo fs.FS) (string, error) {
	reports, err := verified(repo)
	if err != nil {
		return "", err
	}
	for _, r := range reports {
		if rows := r.DepthTable(); len(rows) > 1 {
			return "NMSE of one attention call against float64, K and V of unit variance, head size 256, computed from the Go model of the format; +q8: the query rounded to int8, as the GPU kernels do:\n\n" +
				table(rows[0], rows[1:]) + "\n", nil
		}
	}
	return "", fault.New(fault.Failure, "no verification with its part depth is stored").At("%s", Results).Hintf("dot4fa verify without --skip depth")
}

// logged is what was computed beside what llama.cpp logged.
func logged(repo fs.FS) (string, error) {
	file := path.Join(Results, "vram-log.json")
	data, err := fs.ReadFile(repo, file)
	if err != nil {
		return "", fault.New(fault.Failure, "no comparison is stored: %w", err).Hintf("DOT4FA_VRAM_OUT=FILE go test ./internal/vram")
	}
	var list []struct {
		Model string   `json:"model"`
		Use   vram.Use `json:"use"`
		vram.Checked
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return "", fault.New(fault.Failure, "the stored comparison is damaged: %w", err).At("%s", file).
			Hintf("make it again: DOT4FA_VRAM_OUT=FILE go test ./internal/vram")
	}
	var rows [][]string
	equal := 0
	for _, c := range list {
		if c.Equal {
			equal++
		}
		wanted := c.Pair == "f16/f16" || c.Pair == "packed16/q4_0" || c.Log.V == 0 && c.Pair == "q8_0/q8_0"
		if c.Ctx < 8192 || !wanted || c.Use.SWAFull || c.Use.UBatch != 512 {
			continue
		}
		slots := fmt.Sprint(c.Use.Parallel)
		if c.Use.Unified {
			slots += " unified"
		}
		rows = append(rows, []string{c.Model, slots, page.Thousands(c.Ctx), c.Pair, vram.MiB(c.K), fmt.Sprintf("%.2f", c.Log.K), vram.MiB(c.V), fmt.Sprintf("%.2f", c.Log.V),
			vram.MiB(c.State), fmt.Sprintf("%.2f", c.Log.State)})
	}
	return fmt.Sprintf("%d of %d comparisons are equal to the rounding of the log; those at a depth of 8,192 and more with the default batch, MiB:\n\n%s\n", equal, len(list),
		table([]string{"model", "slots", "context", "K/V", "K", "log", "V", "log", "state", "log"}, rows)), nil
}

// memory is computed, for the shape of the 27B model.
func memory(fs.FS) (string, error) {
	pairs := []vram.Pair{{K: "f16", V: "f16"}, {K: "packed16", V: "f16"}, {K: "packed16", V: "q8_0"}, {K: "packed16", V: "q4_0"}, {K: "q8_0", V: "q4_0"}}
	rep, err := vram.Compute(vram.Request{Shape: vram.Uniform(16, 4, 256), Pairs: pairs, Ctxs: []int{8192, 32768, 131072}})
	if err != nil {
		return "", err
	}
	head := []string{"context"}
	for _, p := range pairs {
		head = append(head, p.String())
	}
	var rows [][]string
	for _, c := range rep.Contexts {
		row := []string{page.Thousands(c.Ctx)}
		for _, z := range c.Sizes {
			row = append(row, vram.MiB(z.Total))
		}
		rows = append(rows, row)
	}
	return "MiB of KV cache, 16 attention layers of 4 KV heads of 256 (Qwen3.5/3.6-27B), one slot, computed:\n\n" + table(head, rows) + "\n", nil
}

// speed is one attention call of each stored run in the canonical shape.
func speed(repo fs.FS) (string, error) {
	files, err := fs.Glob(repo, path.Join(Bench, "*.json"))
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, f := range files {
		data, err := fs.ReadFile(repo, f)
		if err != nil {
			return "", err
		}
		var r bench.Result
		if err := json.Unmarshal(data, &r); err != nil {
			return "", fault.New(fault.Failure, "the stored run is damaged: %w", err).At("%s", f).Hintf("make it again: dot4fa bench --out %s", Bench)
		}
		if r.Reference != "" {
			continue
		}
		if rows := calls(r.Rows); len(rows) > 0 {
			fmt.Fprintf(&b, "%s, head size 256, 4 KV heads, 6 query heads each, V q4_0, µs of one attention call, median of %s, all in one run (`%s`, %s):\n\n%s\n",
				r.Device, r.Repeats(canonical), f, r.When.Format("2006-01-02"),
				table([]string{"cells", "rows", "packed16/q4_0", "upstream q8_0/q4_0", "ratio", "upstream f16/f16", "ratio"}, rows))
		}
	}
	if b.Len() == 0 {
		return "", fault.New(fault.Failure, "no run of bench is stored").At("%s", Bench).Hintf("dot4fa bench --out %s", Bench)
	}
	return b.String(), nil
}

// canonical are the rows of the shape that the README shows.
func canonical(r bench.Row) bool { return r.D == 256 && r.GQA == 6 && r.KVHeads == 4 && r.V == "q4_0" }

// calls are the rows of the table of speed.
func calls(list []bench.Row) [][]string {
	var rows [][]string
	for _, r := range list {
		if !canonical(r) || r.Baseline != "q8_0/q4_0" {
			continue
		}
		row := []string{page.Thousands(r.NK), fmt.Sprint(r.NQ), us(r.US), us(r.BaseUS), fmt.Sprintf("%.2f", r.Ratio()), "–", "–"}
		i := slices.IndexFunc(list, func(o bench.Row) bool { return o.Shape() == r.Shape() && o.V == r.V && o.Baseline == "f16/f16" })
		if i >= 0 {
			row[5], row[6] = us(list[i].BaseUS), fmt.Sprintf("%.2f", list[i].Ratio())
		}
		rows = append(rows, row)
	}
	return rows
}

// us writes microseconds with three digits.
func us(v float64) string {
	switch {
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	return page.Thousands(int(v + 0.5))
}
