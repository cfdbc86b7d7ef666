// Package gpu finds the AMD GPUs of a machine and says whether a recipe's build
// can run on them. It chooses nothing: what is built for is what the recipe or
// --gpu-targets names.
package gpu

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"dot4fa/internal/machine"
)

// Source is where a GPU was seen.
type Source string

// The sources, in the order they are asked.
const (
	Kernel     Source = "kfd"         // the kernel driver's description of the machine
	AMDGPUArch Source = "amdgpu-arch" // a program of LLVM
	ROCmInfo   Source = "rocminfo"    // a program of ROCm
)

// GPU is one GPU.
type GPU struct {
	Target     string `json:"target"` // as gfx1100
	Name       string `json:"name,omitempty"`
	Integrated bool   `json:"integrated"` // in the processor, sharing its memory
	Units      int    `json:"compute_units,omitempty"`
	MiB        int64  `json:"memory_mib,omitempty"`
	Node       int    `json:"node"` // in the kernel's topology
	Render     string `json:"render,omitempty"`
}

func (g GPU) String() string {
	s := g.Target
	var about []string
	if g.Name != "" {
		about = append(about, g.Name)
	}
	if g.Integrated {
		about = append(about, "integrated")
	}
	if g.Units > 0 {
		about = append(about, fmt.Sprintf("%d CUs", g.Units))
	}
	if g.MiB > 0 && !g.Integrated { // of an integrated one this is part of the machine's
		about = append(about, fmt.Sprintf("%d GiB", (g.MiB+512)/1024))
	}
	if len(about) > 0 {
		s += " (" + strings.Join(about, ", ") + ")"
	}
	return s
}

// Why says why no GPU was found or none can be used.
type Why string

// The reasons, which take different ways to mend.
const (
	NotLooked   Why = "not looked for" // a CI job builds the same everywhere
	Absent      Why = "absent"
	NoDriver    Why = "no driver"        // there is one, and amdgpu does not drive it
	NotPassed   Why = "not passed"       // a container was not given the device files
	NotAllowed  Why = "not allowed"      // the device files are there and this user may not open them
	BehindDXG   Why = "behind dxg"       // WSL: only ROCm's programs can tell
	NotReported Why = "nothing reported" // a driver without GPUs that can compute
)

// Found is what Detect found.
type Found struct {
	GPUs     []GPU            `json:"gpus"`
	Source   Source           `json:"source,omitempty"`
	Evidence string           `json:"evidence,omitempty"` // a path or program
	Why      Why              `json:"why,omitempty"`      // empty: the GPUs can be used
	Files    []string         `json:"files,omitempty"`    // the device files that a program opens
	Denied   []machine.Device `json:"-"`                  // those that cannot be opened
}

// The kernel's places.
const (
	topology = "/sys/class/kfd/kfd/topology/nodes"
	kfd      = "/dev/kfd"
	dxg      = "/dev/dxg"
)

// Detect looks for GPUs: in the kernel's topology, which needs no permission and
// no ROCm, then by ROCm's programs, which are looked for in bin and on PATH. In
// a CI job it does not look: what is built must not depend on where.
func Detect(ctx context.Context, on machine.System, bin ...string) Found {
	if name := InCI(on); name != "" {
		return Found{Why: NotLooked, Evidence: name + "=" + on.Getenv(name)}
	}
	if f, ok := fromTopology(on); ok {
		f.access(on)
		return f
	}
	for _, ask := range []struct {
		source Source
		parse  func(string) []GPU
	}{{AMDGPUArch, parseArch}, {ROCmInfo, parseInfo}} {
		for _, p := range append(inDirs(bin, string(ask.source)), string(ask.source)) {
			file := on.LookPath(p)
			if file == "" {
				continue
			}
			out, err := on.Output(ctx, file)
			if gpus := ask.parse(string(out)); err == nil && len(gpus) > 0 {
				f := Found{GPUs: gpus, Source: ask.source, Evidence: file}
				f.access(on)
				return f
			}
		}
	}
	return Found{Why: absence(on)}
}

// InCI returns the variable that says that this is a CI job, "" when none does.
func InCI(on machine.System) string {
	for _, name := range []string{"DOT4FA_CI", "CI"} {
		switch strings.ToLower(on.Getenv(name)) {
		case "", "0", "false", "no", "off":
		default:
			return name
		}
	}
	return ""
}

func inDirs(dirs []string, name string) []string {
	var out []string
	for _, d := range dirs {
		out = append(out, path.Join(d, name))
	}
	return out
}

// fromTopology reads the kernel's topology; false when there is none.
func fromTopology(on machine.System) (Found, bool) {
	f := Found{Source: Kernel, Evidence: topology}
	if !on.IsDir(topology) {
		return f, false
	}
	for _, dir := range on.Glob(topology + "/*") {
		p := properties(on.ReadFile(dir + "/properties"))
		target := targetOf(p["gfx_target_version"])
		if p["simd_count"] == 0 || target == "" {
			continue // a processor, or one that this process may not see
		}
		g := GPU{Target: target, Integrated: p["cpu_cores_count"] > 0 || integrated(target)}
		g.Node, _ = strconv.Atoi(path.Base(dir))
		if per := p["simd_per_cu"]; per > 0 {
			g.Units = int(p["simd_count"] / per)
		}
		if minor := p["drm_render_minor"]; minor > 0 {
			g.Render = fmt.Sprintf("/dev/dri/renderD%d", minor)
		}
		for _, bank := range on.Glob(dir + "/mem_banks/*") {
			if b := properties(on.ReadFile(bank + "/properties")); b["heap_type"] == 1 || b["heap_type"] == 2 { // frame buffer, public or not
				g.MiB += b["size_in_bytes"] >> 20
			}
		}
		f.GPUs = append(f.GPUs, g)
	}
	slices.SortStableFunc(f.GPUs, func(a, b GPU) int { return a.Node - b.Node })
	if len(f.GPUs) == 0 {
		f.Why = NotReported
		if on.Device(dxg).Exists {
			return f, false
		}
	}
	return f, true
}

// access finds out whether the device files can be opened.
func (f *Found) access(on machine.System) {
	if len(f.GPUs) == 0 {
		return
	}
	f.Files = []string{kfd}
	for _, g := range f.GPUs {
		if g.Render != "" {
			f.Files = append(f.Files, g.Render)
		}
	}
	switch {
	case f.Source != Kernel && on.Device(dxg).Exists:
		f.Files = []string{dxg}
	case len(f.Files) == 1:
		f.Files = append(f.Files, on.DeviceNames("/dev/dri/renderD*")...)
	}
	for _, name := range f.Files {
		switch d := on.Device(name); {
		case !d.Exists:
			if f.Why == "" {
				f.Why = NotPassed
			}
			f.Denied = append(f.Denied, d)
		case d.Err != nil:
			f.Why = NotAllowed
			f.Denied = append(f.Denied, d)
		}
	}
}

// absence tells apart why there is no topology and no program that knows a GPU.
func absence(on machine.System) Why {
	if on.Device(dxg).Exists {
		return BehindDXG
	}
	for _, dir := range on.Glob("/sys/bus/pci/devices/*") {
		vendor, class := hexFile(on, dir+"/vendor"), hexFile(on, dir+"/class")
		if vendor == 0x1002 && (class>>16 == 0x03 || class>>8 == 0x1200) { // display, or processing accelerator
			return NoDriver
		}
	}
	if d := on.Device(kfd); d.Denied() {
		return NotAllowed
	}
	return Absent
}

func hexFile(on machine.System, name string) uint64 {
	n, _ := strconv.ParseUint(strings.TrimPrefix(strings.TrimSpace(string(on.ReadFile(name))), "0x"), 16, 64)
	return n
}

// properties reads "name value" lines.
func properties(data []byte) map[string]int64 {
	m := map[string]int64{}
	for _, line := range strings.Split(string(data), "\n") {
		name, value, _ := strings.Cut(line, " ")
		if n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64); err == nil {
			m[name] = n
		}
	}
	return m
}

// targetOf names the target of the kernel's number: 110001 is gfx1101, 90010 is
// gfx90a. The last two parts are hexadecimal digits in the name.
func targetOf(version int64) string {
	if version <= 0 {
		return ""
	}
	return fmt.Sprintf("gfx%d%x%x", version/10000, version/100%100, version%100)
}

// apus are the targets that only exist inside a processor, after the table of
// processors in LLVM's guide to the AMDGPU target. The kernel describes newer
// ones like a card, so that the number of processor cores does not tell.
var apus = []string{"gfx902", "gfx909", "gfx90c", "gfx1013", "gfx1033", "gfx1035", "gfx1036",
	"gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153"}

func integrated(target string) bool { return slices.Contains(apus, target) }

var reTarget = regexp.MustCompile(`^gfx[0-9a-f]+$`)

// parseArch reads what amdgpu-arch prints: a target a line.
func parseArch(text string) []GPU {
	var out []GPU
	for _, line := range strings.Fields(text) {
		target, _, _ := strings.Cut(line, ":") // gfx90a:sramecc+:xnack-
		if reTarget.MatchString(target) {
			out = append(out, GPU{Target: target, Integrated: integrated(target)})
		}
	}
	return out
}

// parseInfo reads what rocminfo prints: a block of "Key: value" lines for each
// agent.
func parseInfo(text string) []GPU {
	var out []GPU
	for _, block := range strings.Split(text, "\nAgent ")[1:] {
		var g GPU
		kind := ""
		for _, line := range strings.Split(block, "\n") {
			key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			value = strings.TrimSpace(value)
			switch {
			case key == "Name" && g.Target == "" && reTarget.MatchString(value):
				g.Target, g.Integrated = value, g.Integrated || integrated(value)
			case key == "Marketing Name":
				g.Name = value
			case key == "Device Type":
				kind = value
			case key == "Compute Unit":
				g.Units, _ = strconv.Atoi(value)
			case key == "Memory Properties" && value == "APU":
				g.Integrated = true
			}
		}
		if kind == "GPU" && g.Target != "" {
			out = append(out, g)
		}
	}
	return out
}
