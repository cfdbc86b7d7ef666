package cli

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"dot4fa/internal/fault"
	"dot4fa/internal/output"
	"dot4fa/internal/vram"
)

// vramFlags are the flags of vram as they are given.
type vramFlags struct {
	layers, kvHeads, headSize int
	ctxs                      []int
	types                     []string
	use                       vram.Use
	draft, draftTypes         string
	mtp, check                bool
	card, reserve             float64
	svg                       string
}

func (a *app) vram() *cobra.Command {
	var o vramFlags
	c := &cobra.Command{
		Use:   "vram [MODEL.gguf]",
		Short: "Compute the memory of the KV cache, and which contexts fit a card",
		Long: `Computes what the K and V cache of a model takes, for each pair of types and each
context, as llama.cpp allocates it with flash attention on. The shape is read from
the header of a GGUF file, or given in numbers; the model is not loaded.

Only layers that attend have a cache: hybrids (Qwen3.5, Qwen3.6) keep a recurrent
state in the others, which is named apart. Layers with a sliding window (Gemma,
gpt-oss) have a cache of the window and one batch. A layout that is not known here
is refused, not guessed. packed16 takes as many bytes as q8_0.

llama-server takes four slots that share the cells, unless told otherwise:
--parallel 4 --unified.`,
		Example: `  dot4fa vram model.gguf
  dot4fa vram model.gguf --card-gib 24
  dot4fa vram --layers 16 --kv-heads 4 --head-size 256 --ctx 32768
  dot4fa vram model.gguf --types f16/f16,packed16/q4_0 --ctx 8192,131072 --json
  dot4fa vram model.gguf --check --recipe cpu    # hold it against the built llama.cpp`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.dryRun && !o.check {
				return noDryRun("vram without --check")
			}
			req, err := o.request(cmd, args)
			if err != nil {
				return err
			}
			rep, err := vram.Compute(req)
			if err != nil {
				return err
			}
			if o.check {
				return a.checkVRAM(cmd, req, rep)
			}
			if o.svg != "" {
				if err := output.Write(o.svg, rep.SVG(), 0o666); err != nil {
					return err
				}
			}
			if a.json {
				return a.printJSON(rep)
			}
			return rep.Print(a.Out)
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.IntVar(&o.layers, "layers", 0, "`number` of layers with attention, in place of a file")
	f.IntVar(&o.kvHeads, "kv-heads", 0, "KV heads of a layer")
	f.IntVar(&o.headSize, "head-size", 0, "values of a head")
	f.IntSliceVar(&o.ctxs, "ctx", nil, "`contexts` to show, in cells over all slots (default: 4096 to 131072)")
	f.StringSliceVar(&o.types, "types", nil, "pairs of `K/V` types to compare (default: f16, q8_0 and packed16 with common V types)")
	f.IntVar(&o.use.Parallel, "parallel", 1, "slots (llama.cpp's -np)")
	f.BoolVar(&o.use.Unified, "unified", false, "the slots share one pool of cells (-kvu)")
	f.BoolVar(&o.use.SWAFull, "swa-full", false, "sliding-window layers keep the whole context (--swa-full)")
	f.IntVar(&o.use.UBatch, "ubatch", 512, "physical batch (-ub), of which sliding-window caches keep one")
	f.StringVar(&o.draft, "draft", "", "a draft model's GGUF `file`, whose cache is counted too")
	f.BoolVar(&o.mtp, "mtp", false, "count the cache of the model's own MTP head")
	f.StringVar(&o.draftTypes, "draft-types", "f16/f16", "`K/V` types of the draft's cache")
	f.Float64Var(&o.card, "card-gib", 0, "memory of the card in `GiB`: say which contexts fit")
	f.Float64Var(&o.reserve, "reserve-gib", 1, "`GiB` to leave for compute buffers and the desktop")
	f.BoolVar(&o.check, "check", false, "compare every figure with the log of the built llama.cpp")
	f.StringVar(&o.svg, "svg", "", "draw size over context into this `file`")
	return c
}

// request turns the flags into a question.
func (o vramFlags) request(cmd *cobra.Command, args []string) (vram.Request, error) {
	r := vram.Request{Use: o.use, Pairs: vram.DefaultPairs, Ctxs: o.ctxs, MTP: o.mtp}
	numbers := false
	for _, name := range []string{"layers", "kv-heads", "head-size"} {
		numbers = numbers || cmd.Flags().Changed(name)
	}
	usage := func(hint, format string, args ...any) (vram.Request, error) {
		return r, fault.New(fault.Usage, format, args...).Hintf("%s", hint)
	}
	const example = "for example --layers 16 --kv-heads 4 --head-size 256"
	var weights int64
	var err error
	switch {
	case numbers && len(args) > 0:
		return usage("give one of the two", "a file and --layers, --kv-heads, --head-size exclude each other")
	case numbers && (o.layers < 1 || o.kvHeads < 1 || o.headSize < 1 || o.layers > 4096 || o.kvHeads > 4096 || o.headSize > 4096):
		return usage(example, "--layers, --kv-heads and --head-size must all be given, from 1 to 4096")
	case numbers:
		r.Shape = vram.Uniform(o.layers, o.kvHeads, o.headSize)
	case len(args) == 0:
		return usage(example, "name a GGUF file, or give the shape in numbers")
	default:
		r.File = args[0]
		if r.Shape, weights, err = vram.Load(args[0]); err != nil {
			return r, err
		}
	}
	if len(r.Ctxs) == 0 {
		for _, n := range vram.DefaultCtxs {
			if r.Shape.CtxTrain == 0 || n <= r.Shape.CtxTrain*max(o.use.Parallel, 1) {
				r.Ctxs = append(r.Ctxs, n)
			}
		}
		if len(r.Ctxs) == 0 {
			r.Ctxs = []int{r.Shape.CtxTrain}
		}
	}
	for _, n := range r.Ctxs {
		if n < 1 || n > 1<<24 {
			return usage("for example --ctx 8192,32768", "--ctx must be from 1 to %d, not %d", 1<<24, n)
		}
	}
	if o.use.Parallel < 1 || o.use.Parallel > 256 {
		return usage("llama.cpp takes 1 to 256 slots", "--parallel is %d", o.use.Parallel)
	}
	if o.use.UBatch < 1 {
		return usage("llama.cpp's default is 512", "--ubatch is %d", o.use.UBatch)
	}
	if len(o.types) > 0 {
		r.Pairs, r.Asked = nil, true
		for _, text := range o.types {
			p, err := vram.ParsePair(strings.TrimSpace(text))
			if err != nil {
				return r, err
			}
			r.Pairs = append(r.Pairs, p)
		}
	}
	if r.MTPPair, err = vram.ParsePair(o.draftTypes); err != nil {
		return r, err
	}
	if o.draft != "" {
		d := &vram.Draft{File: o.draft, Pair: r.MTPPair}
		if d.Shape, d.Weights, err = vram.Load(o.draft); err != nil {
			return r, err
		}
		r.Draft = d
	}
	if cmd.Flags().Changed("reserve-gib") && !cmd.Flags().Changed("card-gib") {
		return usage("for example --card-gib 24 --reserve-gib 1", "--reserve-gib is for --card-gib")
	}
	if cmd.Flags().Changed("card-gib") {
		if !(o.card > 0 && o.card < 1<<20) || !(o.reserve >= 0 && o.reserve < 1<<20) {
			return usage("for example --card-gib 24 --reserve-gib 1", "--card-gib is %s and --reserve-gib is %s",
				strconv.FormatFloat(o.card, 'g', -1, 64), strconv.FormatFloat(o.reserve, 'g', -1, 64))
		}
		r.Card = &vram.Card{Bytes: int64(o.card * (1 << 30)), Weights: weights, Reserve: int64(o.reserve * (1 << 30))}
	}
	return r, nil
}

// checkVRAM holds the figures against what the built llama.cpp logs.
func (a *app) checkVRAM(cmd *cobra.Command, req vram.Request, rep *vram.Report) error {
	r, err := a.run()
	if err != nil {
		return err
	}
	defer r.Close()
	program, err := r.Program("llama-perplexity")
	if err != nil {
		return err
	}
	if a.dryRun {
		return a.printCommands(vram.Probes(program, req, rep))
	}
	count := a.report.Count("vram")
	list, err := vram.Against(cmd.Context(), program, req, rep, count.Step)
	a.report.Clear()
	if err != nil {
		return err
	}
	if a.json {
		err = a.printJSON(list)
	} else {
		rows := [][]string{{"CONTEXT", "TYPES", "K", "LOG", "V", "LOG", "STATE", "LOG", ""}}
		for _, c := range list {
			rows = append(rows, []string{strconv.Itoa(c.Ctx), c.Pair, vram.MiB(c.K), two(c.Log.K), vram.MiB(c.V), two(c.Log.V),
				vram.MiB(c.State), two(c.Log.State), map[bool]string{true: "equal", false: "DIFFERS"}[c.Equal]})
		}
		err = a.table(rows)
	}
	for _, c := range list {
		if err == nil && !c.Equal {
			err = fault.New(fault.VerifyFailed, "llama.cpp allocates %s MiB more or less than was computed", two(c.Off)).
				At("%s at %d", c.Pair, c.Ctx).Hintf("the architecture's rules in internal/vram/arch.go and llama.cpp's differ")
		}
	}
	return err
}

func two(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }
