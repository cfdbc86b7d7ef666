package vram

import (
	"slices"

	"dot4fa/internal/fault"
)

// Request is a question about memory.
type Request struct {
	Shape   Shape
	File    string // where the shape comes from; "" for numbers
	Use     Use
	Pairs   []Pair
	Asked   bool // the pairs were asked for: one that the model cannot have is an error
	Ctxs    []int
	Draft   *Draft
	Card    *Card
	MTP     bool // count the MTP head's own cache
	MTPPair Pair
}

// Draft is a second model that drafts tokens, with a cache of its own.
type Draft struct {
	Shape   Shape
	File    string
	Pair    Pair
	Weights int64 // bytes; 0 when not known
}

// Card is the memory there is.
type Card struct {
	Bytes   int64
	Weights int64 // of the model; 0 when not known
	Reserve int64 // for compute buffers and whatever else is on the card: an assumption
}

// Report is the answer, and what `dot4fa vram --json` prints. All sizes are
// bytes.
type Report struct {
	Model    Model     `json:"model"`
	Use      Use       `json:"use"`
	Contexts []Context `json:"contexts"`
	State    int64     `json:"recurrent_state"`          // of hybrid models, whatever the cache types
	Draft    []Context `json:"draft_contexts,omitempty"` // the draft model's or MTP head's cache, part of no size above
	Budget   *Budget   `json:"card,omitempty"`
	Notes    []string  `json:"notes,omitempty"`
}

// Model is the shape in short.
type Model struct {
	File            string  `json:"file,omitempty"`
	Arch            string  `json:"arch"`
	Blocks          int     `json:"layers"`
	ContextTrain    int     `json:"context_train,omitempty"`
	Attention       int     `json:"attention_layers"` // full attention
	WindowLayers    int     `json:"window_layers,omitempty"`
	Window          int     `json:"window,omitempty"` // cells
	RecurrentLayers int     `json:"recurrent_layers,omitempty"`
	MLA             bool    `json:"mla,omitempty"`
	Heads           []Layer `json:"heads"` // each kind of layer once
}

// Context is the cache at one context.
type Context struct {
	Ctx         int     `json:"context"`
	Cells       int     `json:"cells"`
	WindowCells int     `json:"window_cells,omitempty"`
	Sizes       []Sized `json:"sizes"`
}

// Sized is the cache of one pair of types.
type Sized struct {
	Pair  string  `json:"types"`
	K     int64   `json:"k"`
	V     int64   `json:"v"`
	Total int64   `json:"total"`
	Ratio float64 `json:"of_f16"`         // to f16/f16
	Fits  *bool   `json:"fits,omitempty"` // with --card-gib
}

// Budget is what a card leaves for the cache.
type Budget struct {
	Card    int64     `json:"card"`
	Weights int64     `json:"weights"` // 0 when not known
	Reserve int64     `json:"reserve"`
	Draft   int64     `json:"draft_weights,omitempty"`
	Free    int64     `json:"free"`    // for KV cache, recurrent state and the draft's cache; below 0 when nothing is left
	Largest []Largest `json:"largest"` // for each pair
}

// Largest is the largest context, in cells over all slots, that fits.
type Largest struct {
	Pair    string `json:"types"`
	Ctx     int    `json:"context"`
	Limited bool   `json:"limited_by_model,omitempty"` // the model was trained for no more
}

// DefaultPairs are the pairs that are compared unless others are asked for.
var DefaultPairs = []Pair{{"f16", "f16"}, {"q8_0", "q8_0"}, {"q8_0", "q4_0"}, {"packed16", "f16"}, {"packed16", "q8_0"}, {"packed16", "q4_0"}}

// DefaultCtxs are the contexts shown unless others are asked for.
var DefaultCtxs = []int{4096, 8192, 16384, 32768, 65536, 131072}

// Compute answers r.
func Compute(r Request) (*Report, error) {
	s := r.Shape
	rep := &Report{Model: model(s, r.File), Use: r.Use, Notes: slices.Clone(s.Notes), State: s.StateBytes(r.Use)}
	rep.Use.Parallel = max(rep.Use.Parallel, 1)
	if rep.Use.UBatch <= 0 {
		rep.Use.UBatch = 512
	}
	pairs, err := allowed(r, rep)
	if err != nil {
		return nil, err
	}
	draft, err := drafting(r)
	if err != nil {
		return nil, err
	}
	total := func(p Pair, ctx int) (k, v, all int64, err error) {
		u := r.Use
		u.Ctx = ctx
		if k, v, err = s.Bytes(p, u); err != nil {
			return 0, 0, 0, err
		}
		extra, err := draft(ctx)
		return k, v, k + v + extra + rep.State, err
	}
	if r.Card != nil {
		b := &Budget{Card: r.Card.Bytes, Weights: r.Card.Weights, Reserve: r.Card.Reserve}
		if r.Draft != nil {
			b.Draft = r.Draft.Weights
		}
		b.Free = b.Card - b.Weights - b.Reserve - b.Draft
		limit := 1 << 22
		if s.CtxTrain > 0 {
			limit = pad256(s.CtxTrain) * max(r.Use.Parallel, 1)
		}
		for _, p := range pairs {
			n, err := LargestCtx(b.Free, limit, func(ctx int) (int64, error) { _, _, all, err := total(p, ctx); return all, err })
			if err != nil {
				return nil, err
			}
			b.Largest = append(b.Largest, Largest{p.String(), n, n >= limit/256*256})
		}
		rep.Budget = b
	}
	for _, ctx := range r.Ctxs {
		u := r.Use
		u.Ctx = ctx
		c := Context{Ctx: ctx}
		c.Cells, c.WindowCells = s.Cells(u)
		if rep.Model.WindowLayers == 0 {
			c.WindowCells = 0
		}
		fk, fv, err := s.Bytes(Pair{"f16", "f16"}, u)
		if err != nil {
			return nil, err
		}
		for _, p := range pairs {
			k, v, all, err := total(p, ctx)
			if err != nil {
				return nil, err
			}
			z := Sized{Pair: p.String(), K: k, V: v, Total: k + v}
			if fk+fv > 0 {
				z.Ratio = float64(k+v) / float64(fk+fv)
			}
			if rep.Budget != nil {
				fits := all <= rep.Budget.Free
				z.Fits = &fits
			}
			c.Sizes = append(c.Sizes, z)
		}
		rep.Contexts = append(rep.Contexts, c)
		if n, err := draft(ctx); err != nil {
			return nil, err
		} else if n > 0 {
			rep.Draft = append(rep.Draft, Context{Ctx: ctx, Cells: c.Cells, Sizes: []Sized{{Pair: draftPair(r).String(), Total: n}}})
		}
	}
	return rep, nil
}

// allowed leaves out the pairs that the model cannot have, and says so.
func allowed(r Request, rep *Report) ([]Pair, error) {
	var out []Pair
	said := map[string]bool{}
	for _, p := range r.Pairs {
		why, instead := "", ""
		if p.Packed() {
			if why = r.Shape.Packable(); why != "" {
				why, instead = "packed16 cannot hold this model's K: "+why, "use -ctk q8_0, or f16"
			} else if why = p.unread(); why != "" {
				instead = "set -ctv to one of them"
			}
		}
		if r.Shape.MLA && p.K != p.V && why == "" {
			why, instead = "with MLA llama.cpp wants one type for K and V", "use a pair such as q8_0/q8_0"
		}
		if why == "" {
			if _, _, err := r.Shape.Bytes(p, Use{Ctx: 256}); err != nil {
				why, instead = err.Error(), fault.Hint(err)
			}
		}
		switch {
		case why == "":
			out = append(out, p)
		case r.Asked:
			return nil, fault.New(fault.Usage, "%s", why).At("%s", p).Hintf("%s", instead)
		case !said[why]:
			said[why] = true
			rep.Notes = append(rep.Notes, why+"; "+instead)
		}
	}
	return out, nil
}

func draftPair(r Request) Pair {
	if r.Draft != nil {
		return r.Draft.Pair
	}
	return r.MTPPair
}

// drafting returns the size of the draft's cache at a context.
func drafting(r Request) (func(ctx int) (int64, error), error) {
	at := func(f func(Pair, Use) (int64, int64, error), p Pair) func(int) (int64, error) {
		return func(ctx int) (int64, error) {
			u := r.Use
			u.Ctx = ctx
			k, v, err := f(p, u)
			return k + v, err
		}
	}
	switch {
	case r.Draft != nil:
		if why := r.Draft.Shape.Packable(); r.Draft.Pair.Packed() && why != "" {
			return nil, fault.New(fault.Usage, "packed16 cannot hold the draft model's K: %s", why).At("%s", r.Draft.File).Hintf("leave --draft-types out")
		}
		state := r.Draft.Shape.StateBytes(r.Use)
		kv := at(r.Draft.Shape.Bytes, r.Draft.Pair)
		return func(ctx int) (int64, error) { n, err := kv(ctx); return n + state, err }, nil
	case r.MTP && len(r.Shape.Draft) == 0:
		return nil, fault.New(fault.Usage, "this model's header has no MTP head").Hintf("leave --mtp out, or name a draft model with --draft")
	case r.MTP:
		return at(r.Shape.DraftBytes, r.MTPPair), nil
	}
	return func(int) (int64, error) { return 0, nil }, nil
}

func model(s Shape, file string) Model {
	m := Model{File: file, Arch: s.Arch, Blocks: s.Blocks, ContextTrain: s.CtxTrain, RecurrentLayers: s.State.Layers, MLA: s.MLA}
	for _, l := range s.Layers {
		if l.Window {
			m.WindowLayers++
			m.Window = s.Window
		} else {
			m.Attention++
		}
		if !slices.Contains(m.Heads, l) {
			m.Heads = append(m.Heads, l)
		}
	}
	return m
}
