// Package recipe reads what to build: which llama.cpp, for which GPU, with
// which kernel parameters, CMake cache entries, environment and targets.
//
// A recipe is one YAML file. Reading is strict: an unknown key, a key given
// twice, a value of the wrong type or out of range, an alias or a second
// document is an error that says where (file:line:col), what is allowed and
// which known name is nearest. The keys live in one table (Keys), from which
// the checks, the defaults, the JSON schema and the printed reference all come.
//
// # Extending
//
// `extends: NAME` puts a recipe on top of another one, up to eight deep:
//
//   - a single value replaces the inherited one;
//   - a list (gpu_targets, targets, upstream.exclude, kernel.head_sizes, ...)
//     replaces the inherited list as a whole, it is never appended to;
//   - cmake, env, kernel and upstream are merged key by key;
//   - a null (~) under cmake or env takes the inherited entry away;
//   - name and summary are not inherited;
//   - upstream.commit and upstream.tag are one pin: they are given together.
//
// NAME is looked for beside the extending file first, then among the recipes
// that come with dot4fa.
package recipe

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sort"
)

// Backend is the ggml backend a recipe builds.
type Backend string

// The backends there are recipes for.
const (
	CPU  Backend = "cpu"
	HIP  Backend = "hip"
	CUDA Backend = "cuda"
)

// Recipe is a complete, checked recipe: everything inherited is in place, every
// kernel parameter has a value. It is the data of the templates.
type Recipe struct {
	Name       string            `json:"name"`
	Summary    string            `json:"summary"`
	Upstream   Upstream          `json:"upstream"`
	Backend    Backend           `json:"backend"`
	GPUTargets []string          `json:"gpu_targets"` // gfx names (hip) or architecture numbers (cuda); empty for cpu
	Kernel     Kernel            `json:"kernel"`
	CMake      map[string]string `json:"cmake"` // complete: what gpu_targets implies is included
	Env        map[string]string `json:"env"`
	Targets    []string          `json:"targets"`

	origins map[string]Pos
	files   []string
}

// Upstream says which llama.cpp.
type Upstream struct {
	URL     string   `json:"url"`
	Commit  string   `json:"commit"`  // 40 hex digits
	Tag     string   `json:"tag"`     // the release the commit belongs to, as b10573
	Exclude []string `json:"exclude"` // paths that are not checked out, gitignore patterns
}

// Pos is a place in a recipe file.
type Pos struct {
	File      string
	Line, Col int
}

func (p Pos) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
}

// Origin returns where the value of a key ("upstream.commit", "kernel.chunk",
// "cmake.GGML_HIP") was given, and false when it is a default.
func (r *Recipe) Origin(key string) (Pos, bool) {
	p, ok := r.origins[key]
	return p, ok
}

// Files returns the files the recipe was made from, the recipe's own first,
// then the one it extends, and so on.
func (r *Recipe) Files() []string { return append([]string(nil), r.files...) }

// PinFile returns the file that holds the pin, for RewritePin.
func (r *Recipe) PinFile() string { return r.origins["upstream.commit"].File }

// Hash returns a sha256 (hex) over everything that decides what is built: all
// resolved values except the summary. Two spellings of the same recipe have
// the same hash.
func (r *Recipe) Hash() string {
	c := *r
	c.Summary = ""
	data, err := json.Marshal(&c) // maps are written in key order
	if err != nil {
		panic("recipe: " + err.Error()) // strings, ints and bools only: cannot happen
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// CacheEntry is one CMake cache entry.
type CacheEntry struct{ Key, Value string }

// Cache returns the CMake cache entries in key order.
func (r *Recipe) Cache() []CacheEntry {
	out := make([]CacheEntry, 0, len(r.CMake))
	for k, v := range r.CMake {
		out = append(out, CacheEntry{k, v})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Key < out[j].Key })
	return out
}
