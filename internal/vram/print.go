package vram

import (
	"fmt"
	"io"
	"strings"

	"dot4fa/internal/page"
	"dot4fa/internal/plot"
)

// MiB writes bytes as MiB, as llama.cpp's log does.
func MiB(n int64) string {
	s := fmt.Sprintf("%.2f", float64(n)/(1<<20))
	return strings.TrimSuffix(s, ".00")
}

// Print writes the report as text.
func (r *Report) Print(w io.Writer) error {
	m := r.Model
	fmt.Fprintf(w, "%s, %d layers\n", m.Arch, m.Blocks)
	for _, l := range m.Heads {
		n, kind := m.Attention, "full attention"
		if l.Window {
			n, kind = m.WindowLayers, fmt.Sprintf("a sliding window of %d cells", m.Window)
		}
		what := fmt.Sprintf("%d KV heads of %d", l.KVHeads, l.DK)
		switch {
		case m.MLA:
			what = fmt.Sprintf("%d latent values a cell (MLA), no V", l.KVHeads*l.DK)
		case l.DK != l.DV:
			what = fmt.Sprintf("%d KV heads of %d (K) and %d (V)", l.KVHeads, l.DK, l.DV)
		}
		if len(m.Heads) > 2 || len(m.Heads) == 2 && m.Heads[0].Window == m.Heads[1].Window {
			fmt.Fprintf(w, "  some of the layers with %s: %s\n", kind, what)
			continue
		}
		fmt.Fprintf(w, "  %d layers with %s: %s\n", n, kind, what)
	}
	if m.RecurrentLayers > 0 {
		fmt.Fprintf(w, "  %d recurrent layers: %s MiB of state for %s, whatever the cache types\n", m.RecurrentLayers, MiB(r.State), page.Plural(r.Use.Parallel, "sequence"))
	}
	fmt.Fprintf(w, "\nMiB of KV cache, %s%s\n", page.Plural(r.Use.Parallel, "slot"), map[bool]string{true: " that share the cells"}[r.Use.Unified])
	if err := r.table(w); err != nil {
		return err
	}
	if b := r.Budget; b != nil {
		fmt.Fprintf(w, "\n%s card − %s weights − %s reserve%s = %s for the cache\n", page.GiB(b.Card), weights(b.Weights), page.GiB(b.Reserve),
			map[bool]string{true: " − " + page.GiB(b.Draft) + " draft weights"}[b.Draft > 0], page.GiB(b.Free))
		for _, l := range b.Largest {
			note := ""
			switch {
			case l.Ctx == 0:
				note = "  (does not fit)"
			case l.Limited:
				note = "  (all that the model was trained for)"
			}
			fmt.Fprintf(w, "  %-14s context up to %d%s\n", l.Pair, l.Ctx, note)
		}
	}
	for _, n := range r.Notes {
		fmt.Fprintf(w, "note: %s\n", n)
	}
	return nil
}

func weights(n int64) string {
	if n == 0 {
		return "unknown"
	}
	return page.GiB(n)
}

func (r *Report) table(w io.Writer) error {
	if len(r.Contexts) == 0 {
		return nil
	}
	head := []string{"context"}
	for _, z := range r.Contexts[0].Sizes {
		head = append(head, z.Pair)
	}
	if len(r.Draft) > 0 {
		head = append(head, "+ draft")
	}
	rows := [][]string{head}
	over := false
	for i, c := range r.Contexts {
		row := []string{fmt.Sprint(c.Ctx)}
		for _, z := range c.Sizes {
			cell := MiB(z.Total)
			if z.Fits != nil && !*z.Fits {
				cell += " !"
				over = true
			}
			row = append(row, cell)
		}
		if len(r.Draft) > 0 {
			row = append(row, MiB(r.Draft[i].Sizes[0].Total))
		}
		rows = append(rows, row)
	}
	share := []string{"of f16/f16"}
	for _, z := range r.Contexts[len(r.Contexts)-1].Sizes {
		share = append(share, fmt.Sprintf("%.0f %%", 100*z.Ratio))
	}
	if err := page.RightColumns(w, append(rows, share)); err != nil {
		return err
	}
	if over {
		_, err := fmt.Fprintln(w, "! does not fit the card")
		return err
	}
	return nil
}

// SVG draws size over context, a line for each pair.
func (r *Report) SVG() []byte {
	p := plot.Panel{X: plot.Axis{Label: "context (cells)", Log: true}, Y: plot.Axis{Label: "GiB", Log: true}}
	for i, ctx := range r.Contexts {
		for k, z := range ctx.Sizes {
			if i == 0 {
				p.Lines = append(p.Lines, plot.Line{Name: z.Pair})
			}
			p.Lines[k].Points = append(p.Lines[k].Points, plot.Point{X: float64(ctx.Ctx), Y: float64(z.Total) / (1 << 30), Note: MiB(z.Total) + " MiB"})
		}
	}
	if r.Budget != nil && r.Budget.Free > r.State {
		p.Horizontal = []plot.Level{{Name: "left on the card", Y: float64(r.Budget.Free-r.State) / (1 << 30)}}
	}
	return plot.Chart{Title: "KV cache of " + r.Model.Arch, Panels: []plot.Panel{p},
		Note: fmt.Sprintf("%d of %d layers keep K and V, %s", r.Model.Attention+r.Model.WindowLayers, r.Model.Blocks, page.Plural(r.Use.Parallel, "slot"))}.SVG()
}
