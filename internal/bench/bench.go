// Package bench measures a built tree: one attention call by test-backend-ops,
// whole models by llama-bench, packed16 next to the caches a user would pick
// instead, in the same run.
//
// Repetitions are interleaved: every one goes through all shapes and caches
// again, the odd ones backwards, so that a GPU that grows warm does not favour
// one of them. What is reported is the median of the repetitions, and as its
// spread the distance from the fastest to the slowest over the median.
package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"dot4fa/internal/fault"
	"dot4fa/internal/input"
	"dot4fa/internal/output"
)

// Result is a run, as it is stored: docs/bench/<gpu>.json.
type Result struct {
	Device   string    `json:"device"`   // the GPU's name
	Backend  string    `json:"backend"`  // ggml's name of the device, as CUDA0
	Commit   string    `json:"commit"`   // the dot4fa that made the tree
	Upstream string    `json:"upstream"` // the commit that the programs print
	Recipe   string    `json:"recipe"`
	When     time.Time `json:"when"`
	Repeat   int       `json:"repeat"` // repetitions asked for; each row says how many it got
	Memory   Memory    `json:"memory"`
	Peak     *Peak     `json:"peak,omitempty"`

	// Reference says where figures come from that are not of a run of dot4fa; its
	// rows have baselines only.
	Reference string `json:"reference,omitempty"`

	Rows     []Row    `json:"rows"`
	EndToEnd []Tokens `json:"end_to_end,omitempty"`
	Model    *Model   `json:"model,omitempty"` // of EndToEnd
	Failed   []Failed `json:"failed,omitempty"`
}

// Row is one shape on packed16 K beside one other cache. Times are those of one
// FLASH_ATTN_EXT call, all its launches, in µs.
type Row struct {
	NK       int     `json:"nk"`
	NQ       int     `json:"nq"`
	D        int     `json:"d"`
	GQA      int     `json:"gqa"`
	KVHeads  int     `json:"n_head_kv"`
	V        string  `json:"v"`
	US       float64 `json:"us"`
	Spread   float64 `json:"spread"` // (slowest - fastest)/median
	Repeat   int     `json:"repeat"`
	Route    string  `json:"route"`
	Baseline string  `json:"baseline"` // K/V
	BaseUS   float64 `json:"baseline_us"`
	BaseSpr  float64 `json:"baseline_spread"`
	FloorUS  float64 `json:"floor_us"` // K and V read once at the speed of the copy
}

// Shape returns the row's shape.
func (r Row) Shape() Shape { return Shape{D: r.D, KVHeads: r.KVHeads, GQA: r.GQA, NK: r.NK, NQ: r.NQ} }

// Ratio is the time over that of the baseline: below 1 is faster.
func (r Row) Ratio() float64 { return r.US / r.BaseUS }

// Slower reports whether the baseline is faster by more than both spreads.
func (r Row) Slower() bool { return beyond(r.US, r.Spread, r.BaseUS, r.BaseSpr) }

// Failed is a part of a run that gave no figures.
type Failed struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// notReached is why a part has no figures when the time given was over.
const notReached = "not reached in the time given"

// Broken is an error when a part of the run failed rather than was not reached.
func (r *Result) Broken() error {
	for _, f := range r.Failed {
		if f.Why != notReached {
			return fault.New(fault.Failure, "a part of the run gave no figures: %s: %s", f.What, f.Why).
				Hintf("the rest is reported; --dry-run prints the commands")
		}
	}
	return nil
}

// beyond reports whether a is larger than b by more than their spreads and by
// more than 2 %, which is what repeated runs differ by at the least.
func beyond(a, aSpread, b, bSpread float64) bool {
	return a > b*(1+max(aSpread+bSpread, 0.02))
}

// Median returns the median of values and their spread; 0, 0 of none.
func Median(values []float64) (mid, spread float64) {
	if len(values) == 0 {
		return 0, 0
	}
	s := slices.Sorted(slices.Values(values))
	n := len(s)
	mid = (s[(n-1)/2] + s[n/2]) / 2
	if mid == 0 {
		return 0, 0
	}
	return mid, (s[n-1] - s[0]) / mid
}

// Name is the device's name as a file name.
func Name(device string) string {
	var b strings.Builder
	for _, word := range strings.FieldsFunc(strings.ToLower(device), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}) {
		if b.Len() > 0 {
			b.WriteByte('-')
		}
		b.WriteString(word)
	}
	if b.Len() == 0 {
		return "device"
	}
	return b.String()
}

// Load reads a stored run.
func Load(path string) (*Result, error) {
	data, err := input.Read(path, "name a stored run: dot4fa bench --out DIR writes one")
	if err != nil {
		return nil, err
	}
	r := &Result{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fault.New(fault.Usage, "not a stored run: %w", err).At("%s", path).Hintf("name a file that dot4fa bench wrote")
	}
	if r.Device == "" || len(r.Rows)+len(r.EndToEnd) == 0 {
		return nil, fault.New(fault.Usage, "the stored run has no device or no figures").At("%s", path).Hintf("name a file that dot4fa bench wrote")
	}
	if strings.ContainsFunc(r.Device, unicode.IsControl) {
		return nil, fault.New(fault.Usage, "the stored run has a device %q, which no device is called", r.Device).At("%s", path).Hintf("name a file that dot4fa bench wrote")
	}
	for i, row := range r.Rows {
		if slices.ContainsFunc(r.Rows[:i], row.same) {
			return nil, fault.New(fault.Usage, "the stored run has two figures of nk %d, nq %d, d %d, gqa %d, %s beside %s", row.NK, row.NQ, row.D, row.GQA, row.V, row.Baseline).
				At("%s", path).Hintf("measure again, or leave one of them out")
		}
		if !row.whole(r.Reference) {
			return nil, fault.New(fault.Usage, "a row of the stored run is incomplete: nk %d, nq %d, d %d, %s", row.NK, row.NQ, row.D, row.V).At("%s", path).Hintf("measure again")
		}
	}
	return r, nil
}

// whole reports whether a row has what is printed and drawn of it; one of a run
// that is a reference for others has no packed16.
func (r Row) whole(reference string) bool {
	return (r.US > 0 || r.US == 0 && reference != "") && r.BaseUS > 0 && min(r.NK, r.NQ, r.D, r.GQA, r.KVHeads) > 0 && r.Baseline != "" && r.V != "" &&
		min(r.Spread, r.BaseSpr, r.FloorUS) >= 0
}

// Merge puts two runs of one device, one commit and one model together. Of a
// figure that both have the later one's stays; replaced says how many those are.
func Merge(earlier, later *Result) (all *Result, replaced int, err error) {
	out := *earlier
	if later.Device != out.Device || later.Commit != out.Commit {
		return nil, 0, fault.New(fault.Usage, "the runs do not belong together: %s with %s, and %s with %s", out.Device, out.Commit, later.Device, later.Commit).
			Hintf("measure all of it with one build")
	}
	if a, b := out.Model, later.Model; a != nil && b != nil && (a.Name != b.Name || a.Bytes != b.Bytes) {
		return nil, 0, fault.New(fault.Usage, "the runs do not belong together: they are of the models %s and %s", a.Name, b.Name).
			Hintf("leave one of the runs out")
	}
	out.Rows = slices.DeleteFunc(slices.Clone(out.Rows), func(a Row) bool {
		return slices.ContainsFunc(later.Rows, func(b Row) bool { return a.same(b) })
	})
	out.EndToEnd = slices.DeleteFunc(slices.Clone(out.EndToEnd), func(a Tokens) bool {
		return slices.ContainsFunc(later.EndToEnd, func(b Tokens) bool { return a.same(b) })
	})
	replaced = len(earlier.Rows) - len(out.Rows) + len(earlier.EndToEnd) - len(out.EndToEnd)
	out.Rows, out.EndToEnd = append(out.Rows, later.Rows...), append(out.EndToEnd, later.EndToEnd...)
	if later.Model != nil {
		out.Model = later.Model
	}
	if later.Memory.GBps > 0 {
		out.Memory = later.Memory
	}
	out.Failed = append(slices.Clone(out.Failed), later.Failed...)
	out.Repeat = min(out.Repeat, later.Repeat)
	if later.When.After(out.When) {
		out.When = later.When
	}
	return &out, replaced, nil
}

// same reports whether both are figures of the same thing.
func (r Row) same(s Row) bool {
	return r.Shape() == s.Shape() && r.V == s.V && r.Baseline == s.Baseline
}

// Write writes JSON, a page and pictures to dir, and returns their names.
func (r *Result) Write(dir string) ([]string, error) {
	if err := output.Dir(dir); err != nil {
		return nil, err
	}
	name := Name(r.Device)
	var files, pictures []string
	save := func(file string, data []byte) error {
		files = append(files, filepath.Join(dir, file))
		return write(files[len(files)-1], data)
	}
	picture := func(file string, data []byte) error {
		pictures = append(pictures, file)
		return save(file, data)
	}
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return nil, err
	}
	if err := save(name+".json", append(data, '\n')); err != nil {
		return nil, err
	}
	for _, h := range r.headShapes() {
		if err := picture(fmt.Sprintf("%s-d%d-gqa%d.svg", name, h.D, h.GQA), r.Times(h)); err != nil {
			return nil, err
		}
	}
	if len(r.Rows) > 0 {
		if err := picture(name+"-roofline.svg", r.Roofline()); err != nil {
			return nil, err
		}
	}
	if len(r.EndToEnd) > 0 {
		if err := picture(name+"-tokens.svg", r.Rates()); err != nil {
			return nil, err
		}
	}
	var page bytes.Buffer
	if err := r.Markdown(&page, pictures...); err != nil {
		return nil, err
	}
	err = save(name+".md", page.Bytes())
	return files, err
}

func write(path string, data []byte) error {
	return output.Write(path, data, 0o666)
}
