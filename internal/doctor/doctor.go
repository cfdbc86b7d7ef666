// Package doctor says of a machine whether a recipe can be built and run on it,
// what stands in the way, and the command that mends it. A build judges its
// tools by the same functions.
package doctor

import (
	"context"
	"dot4fa/internal/page"
	"fmt"
	"path"

	"dot4fa/internal/build"
	"dot4fa/internal/fault"
	"dot4fa/internal/finding"
	"dot4fa/internal/gpu"
	"dot4fa/internal/machine"
	"dot4fa/internal/recipe"
	"dot4fa/internal/toolchain"
)

// Options say what is looked at and for what.
type Options struct {
	Machine machine.System
	Recipe  *recipe.Recipe
	Given   bool // the GPU targets come from --gpu-targets
	Work    string
	Jobs    build.Jobs

	// More looks at what only the caller can: upstream, the work tree.
	More func(context.Context, *finding.List)
}

// Report is what was found.
type Report struct {
	Recipe     string          `json:"recipe"`
	GPUTargets []string        `json:"gpu_targets"`
	OK         bool            `json:"ok"` // nothing failed
	Findings   finding.List    `json:"findings"`
	ROCm       *toolchain.ROCm `json:"rocm,omitempty"`
	GPU        *gpu.Found      `json:"gpu,omitempty"`
}

// Examine looks at everything that building and running the recipe takes. What
// cannot be judged because something before it failed is left out.
func Examine(ctx context.Context, o Options) *Report {
	r := &Report{Recipe: o.Recipe.Name, GPUTargets: o.Recipe.GPUTargets}
	tools := toolchain.Find(ctx, o.Machine)
	r.Findings = tools.Judge(o.Recipe)
	switch o.Recipe.Backend {
	case recipe.HIP:
		if tools.ROCm.Found() {
			r.ROCm = &tools.ROCm
		}
		found := gpu.Detect(ctx, o.Machine, tools.ROCm.Bin()...)
		r.GPU = &found
		r.Findings = append(r.Findings, found.Judge(o.Machine, o.Recipe, o.Given)...)
	case recipe.CUDA:
		found := gpu.DetectNVIDIA(ctx, o.Machine)
		r.GPU = &found
		r.Findings = append(r.Findings, found.JudgeNVIDIA(o.Recipe, o.Given)...)
	}
	judgeRoom(&r.Findings, o)
	if p := o.Machine.LookPath("git"); p != "" {
		r.Findings.OK("git", p)
	} else {
		r.Findings.Warn("git", "no git on PATH: a fetch moves five times as much, and history cannot be searched", toolchain.Install(o.Machine, "git"))
	}
	if o.More != nil {
		o.More(ctx, &r.Findings)
	}
	r.OK = r.Findings.Count(finding.Fail) == 0
	return r
}

// Err is an Environment fault when something failed.
func (r *Report) Err() error {
	n := r.Findings.Count(finding.Fail)
	if n == 0 {
		return nil
	}
	checks := "check"
	if n > 1 {
		checks = "checks"
	}
	return fault.New(fault.Environment, "%d %s failed", n, checks).Hintf("do what the report says under each, and run dot4fa doctor again")
}

// room is what a work tree and its build stay under, in MiB: an upper bound, to
// stop before the disk is full and not after.
var room = map[recipe.Backend]int64{recipe.CPU: 1 << 10, recipe.HIP: 2 << 10, recipe.CUDA: 3 << 10}

func judgeRoom(l *finding.List, o Options) {
	need := room[o.Recipe.Backend]
	switch free := o.Machine.FreeBytes(o.Work); {
	case free < 0:
		l.Warn("disk", fmt.Sprintf("the space left for %s is not known; a build may take %s", o.Work, page.GiB(need<<20)))
	case free>>20 < need:
		l.Fail("disk", fmt.Sprintf("%s left for %s; a build may take %s", page.GiB(free), o.Work, page.GiB(need<<20)),
			"dot4fa build --work /another/disk/"+path.Base(o.Work))
	default:
		l.OK("disk", fmt.Sprintf("%s left for %s", page.GiB(free), o.Work))
	}
	switch j := o.Jobs; {
	case j.Fit == 0:
		l.Warn("memory", fmt.Sprintf("%s: not even one job fits; a compiler that is killed looks like a broken file", j), "dot4fa build --jobs 1  # and end other programs, or add swap")
	case j.Fit > 0 && j.Fit < j.Cores:
		l.OK("memory", j.String()+"; more memory would build faster")
	default:
		l.OK("memory", j.String())
	}
}
