package selfcheck

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"dot4fa/internal/rdna3"
)

// Print writes what ran, what it cost and how right it was, as tables.
func (r *Result) Print(w io.Writer) error {
	fmt.Fprintf(w, "%s machine code, executed by an emulator (disassembled by %s); not run on AMD hardware\n", r.Target, r.Disassembler)
	fmt.Fprintf(w, "%.1f M wave instructions a second of processor time, %.1f s in all\n\n", r.Rate/1e6, r.Seconds)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "KERNEL\tLAUNCHES\tWAVE INSTRUCTIONS\tM/S")
	for _, k := range r.Kernels {
		fmt.Fprintf(t, "%s\t%d\t%d\t%.1f\n", k.Name, k.Launches, k.Instr, k.Rate/1e6)
	}
	fmt.Fprintln(t, "\t\t\t")
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w, "lane instructions a (query, key) pair; wave instructions and bytes a key of a KV head")
	fmt.Fprintf(t, "CASE\tDOT4\tWMMA\tTRANS\tVALU\t/KEY: SALU\tLDS\tVMEM\tLOADED\tSCALAR\tLDS BYTES\n")
	for _, c := range r.Costs {
		pair := func(k rdna3.Class) string { return fmt.Sprintf("%.3g", c.PerPair[k.String()]) }
		key := func(k rdna3.Class) string { return fmt.Sprintf("%.3g", c.PerKey[k.String()]) }
		bytes := func(k string) string { return fmt.Sprintf("%.0f B", c.PerKey[k]) }
		fmt.Fprintln(t, strings.Join([]string{c.title(), pair(rdna3.Dot4), pair(rdna3.WMMA), pair(rdna3.Trans), pair(rdna3.VALU),
			key(rdna3.SALU), key(rdna3.LDS), key(rdna3.VMem), bytes("load bytes"), bytes("scalar bytes"), bytes("lds bytes")}, "\t"))
	}
	fmt.Fprintln(t, "\t\t\t\t\t\t\t\t\t\t")
	fmt.Fprintln(t, "ROUTE\tCASES\tWORST NMSE")
	for _, x := range r.Routes {
		worst := fmt.Sprintf("%.2g", x.Worst)
		switch x.Route {
		case "pack":
			worst = "same bytes"
		case "same bits":
			worst = "in every batch"
		}
		fmt.Fprintf(t, "%s\t%d\t%s\n", x.Route, x.Cases, worst)
	}
	return t.Flush()
}

// title is the case without what every counted case has.
func (c *Cost) title() string {
	var words []string
	for word := range strings.FieldsSeq(c.Case) {
		switch name, _, _ := strings.Cut(word, "="); name {
		case "order", "mask", "pad":
		default:
			words = append(words, word)
		}
	}
	return strings.Join(words, " ")
}
