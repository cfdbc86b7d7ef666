package recipe

import (
	"regexp"
	"strconv"
	"strings"
)

// Kind is the type of a key's value.
type Kind int

// The kinds of value a recipe has.
const (
	String  Kind = iota
	Bool         // true or false
	Int          // a whole number
	Enum         // one of Allowed
	Ints         // a list of whole numbers, each one of Allowed
	Enums        // a list of names, each one of Allowed
	Strings      // a list of strings
	Entries      // a mapping of names to strings, numbers or booleans
)

func (k Kind) String() string {
	return [...]string{"string", "true or false", "whole number", "name", "list of whole numbers",
		"list of names", "list of strings", "mapping"}[k]
}

// Key describes one key of a recipe.
type Key struct {
	Path     string   // "backend", "upstream.commit", "kernel.chunk"
	Kind     Kind     //
	Default  any      // string, bool, int, []int or []string; nil when there is none
	Allowed  []string // every value allowed, when they can be listed
	Min, Max int      // for Int: the range, inclusive
	Pow2     bool     // for Int: a power of two
	Doc      string   // one line, lower case, no full stop

	check func(string) string        // one string or element: what is wrong with it, or ""
	field func(*Kernel) any          // where a kernel parameter lives
	entry func(key, v string) string // one Entries pair: what is wrong with it, or ""
}

// Name is the last part of the path.
func (k Key) Name() string { return k.Path[strings.LastIndexByte(k.Path, '.')+1:] }

// Keys returns every key a recipe can have, in the order it is documented.
func Keys() []Key { return append(append([]Key(nil), topKeys...), kernelKeys...) }

// HIPTargets are the GPU targets of a hip recipe: the ones with
// v_dot4_i32_iu8 (RDNA3, RDNA3.5, RDNA4) and their generic forms.
var HIPTargets = []string{
	"gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151",
	"gfx1200", "gfx1201", "gfx11-generic", "gfx12-generic",
}

// MaxExtends is how many recipes may lie under one.
const MaxExtends = 8

var (
	reName   = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*$`)
	reCommit = regexp.MustCompile(`^[0-9a-f]{40}$`)
	reTag    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	reArch   = regexp.MustCompile(`^([5-9][0-9]|1[0-9]{2})[af]?(-real|-virtual)?$`)
	reCMake  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	reEnv    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	reTarget = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.+-]*$`)
)

// retired are CMake names from older guides that upstream no longer reads, or
// that a recipe says in another way: what to write instead.
var retired = map[string]string{
	"GGML_HIPBLAS":             "upstream no longer has it, and alone it gives a CPU build: use GGML_HIP",
	"LLAMA_HIPBLAS":            "upstream no longer has it: use GGML_HIP",
	"GGML_HIP_ROCWMMA_FATTN":   "upstream removed it and ignores it: leave it out",
	"LLAMA_CUBLAS":             "upstream no longer has it: use GGML_CUDA",
	"GGML_CUBLAS":              "upstream no longer has it: use GGML_CUDA",
	"LLAMA_CUDA":               "upstream no longer has it: use GGML_CUDA",
	"LLAMA_CURL":               "upstream ignores it: https is LLAMA_OPENSSL now",
	"LLAMA_BUILD_WEBUI":        "use LLAMA_BUILD_UI",
	"LLAMA_USE_PREBUILT_WEBUI": "use LLAMA_USE_PREBUILT_UI",
	"AMDGPU_TARGETS":           "use the recipe's gpu_targets",
	"GPU_TARGETS":              "it is made from the recipe's gpu_targets",
	"CMAKE_HIP_ARCHITECTURES":  "it is made from the recipe's gpu_targets",
	"CMAKE_CUDA_ARCHITECTURES": "it is made from the recipe's gpu_targets",
	"LLAMA_BUILD_NUMBER":       "it is made from the pin's tag",
	"LLAMA_BUILD_COMMIT":       "it is made from the pin's commit",
}

var topKeys = []Key{
	{Path: "name", Kind: String, Doc: "the recipe's name, the same as the file's without .yaml",
		check: matches(reName, "lower-case letters, digits, '.', '_' and '-'")},
	{Path: "summary", Kind: String, Doc: "one line for recipe list", check: oneLine},
	{Path: "extends", Kind: String, Doc: "the recipe this one is put on top of",
		check: matches(reName, "the name of a recipe")},
	{Path: "upstream.url", Kind: String, Doc: "where llama.cpp comes from", check: oneLine},
	{Path: "upstream.commit", Kind: String, Doc: "the pinned commit, all 40 hex digits",
		check: matches(reCommit, "40 lower-case hex digits, not a short form, a tag or a branch")},
	{Path: "upstream.tag", Kind: String, Doc: "the release tag the commit belongs to, as b10573",
		check: matches(reTag, "a tag name such as b10573")},
	{Path: "upstream.exclude", Kind: Strings, Default: []string{}, Doc: "paths never read or checked out, as gitignore patterns",
		check: oneLine},
	{Path: "backend", Kind: Enum, Allowed: []string{"cpu", "hip", "cuda"}, Doc: "the ggml backend that gets the kernels"},
	{Path: "gpu_targets", Kind: Strings, Default: []string{},
		Doc: "hip: " + strings.Join(HIPTargets, " ") + "; cuda: architecture numbers (86, 90, 120a-real) or native; cpu: none", check: oneLine},
	{Path: "cmake", Kind: Entries, Doc: "CMake cache entries; true and false become ON and OFF", entry: cmakeEntry},
	{Path: "env", Kind: Entries, Doc: "environment of the programs that were built, where dot4fa starts them", entry: envEntry},
	{Path: "targets", Kind: Strings, Default: []string{}, Doc: "CMake targets to build",
		check: matches(reTarget, "the name of a CMake target")},
}

func matches(re *regexp.Regexp, want string) func(string) string {
	return func(s string) string {
		if re.MatchString(s) {
			return ""
		}
		return "want " + want
	}
}

func oneLine(s string) string {
	switch {
	case strings.TrimSpace(s) == "":
		return "must not be empty"
	case strings.ContainsAny(s, "\n\r\x00"):
		return "must be one line"
	}
	return ""
}

func cmakeEntry(key, v string) string {
	if why, ok := retired[key]; ok {
		return why
	}
	if !reCMake.MatchString(key) {
		return "want a CMake variable: letters, digits and '_'"
	}
	if strings.ContainsAny(v, "\n\r\x00") {
		return "must be one line"
	}
	return ""
}

func envEntry(key, v string) string {
	if !reEnv.MatchString(key) {
		return "want an environment variable: letters, digits and '_'"
	}
	if strings.ContainsAny(v, "\n\r\x00") {
		return "must be one line"
	}
	return ""
}

func pow2(n int) bool { return n > 0 && n&(n-1) == 0 }

// allowedText says in words what a key accepts.
func (k Key) allowedText() string {
	switch {
	case k.Kind == Bool:
		return "true or false"
	case len(k.Allowed) > 0 && (k.Kind == Ints || k.Kind == Enums):
		return "a list of " + strings.Join(k.Allowed, ", ")
	case len(k.Allowed) > 0:
		return "one of " + strings.Join(k.Allowed, ", ")
	case k.Kind == Int:
		s := strconv.Itoa(k.Min) + " to " + strconv.Itoa(k.Max)
		if k.Pow2 {
			s = "a power of two, " + s
		}
		return s
	}
	return "a " + k.Kind.String()
}
