package gpu

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"dot4fa/internal/finding"
	"dot4fa/internal/machine"
	"dot4fa/internal/recipe"
)

// NVIDIASMI is the program that tells of NVIDIA GPUs.
const NVIDIASMI Source = "nvidia-smi"

// DetectNVIDIA looks for NVIDIA GPUs, whose targets are architecture numbers: 90
// is compute capability 9.0.
func DetectNVIDIA(ctx context.Context, on machine.System) Found {
	if name := InCI(on); name != "" {
		return Found{Why: NotLooked, Evidence: name + "=" + on.Getenv(name)}
	}
	file := on.LookPath(string(NVIDIASMI))
	if file == "" {
		return Found{Why: Absent}
	}
	f := Found{Source: NVIDIASMI, Evidence: file, Why: NotReported}
	out, err := on.Output(ctx, file, "--query-gpu=name,compute_cap,memory.total", "--format=csv,noheader,nounits")
	if err != nil {
		f.Why = NoDriver
		return f
	}
	for _, line := range strings.Split(string(out), "\n") {
		cells := strings.Split(line, ", ")
		if len(cells) != 3 {
			continue
		}
		mib, _ := strconv.ParseInt(strings.TrimSpace(cells[2]), 10, 64)
		f.GPUs = append(f.GPUs, GPU{Target: strings.ReplaceAll(cells[1], ".", ""), Name: cells[0], MiB: mib, Node: len(f.GPUs)})
		f.Why = ""
	}
	return f
}

// JudgeNVIDIA says whether what r builds can run on the NVIDIA GPUs that were
// found.
func (f Found) JudgeNVIDIA(r *recipe.Recipe, given bool) finding.List {
	var l finding.List
	switch {
	case f.Why == NotLooked:
		l.OK("gpu", "not looked for in a CI job ("+f.Evidence+")")
	case f.Why == NoDriver:
		l.Fail("gpu", f.Evidence+" fails: the driver does not answer", "sudo modprobe nvidia && nvidia-smi  # says what it lacks")
	case len(f.GPUs) == 0:
		l.Warn("gpu", "none: no nvidia-smi names one; a build works and cannot be run here", "run what was built on a machine that has one")
	default:
		l.OK("gpu", fmt.Sprintf("%s, by %s (%s)", f.list(), f.Source, f.Evidence))
		what := fmt.Sprintf("%s names %s", whose(r, given), strings.Join(r.GPUTargets, ", "))
		for _, g := range f.GPUs {
			if runsCUDA(r.GPUTargets, g.Target) {
				l.OK("gpu target", what)
				return l
			}
		}
		l.Fail("gpu target", fmt.Sprintf("%s, and the GPU here is %s: it would find no code for it", what, f.GPUs[0]), "dot4fa build --recipe "+r.Name+" --gpu-targets "+f.GPUs[0].Target)
	}
	return l
}

// runsCUDA reports whether code for one of the targets runs on a GPU: the same
// generation, not newer, or code that the driver compiles, for all newer ones.
func runsCUDA(targets []string, gpu string) bool {
	have, err := strconv.Atoi(gpu)
	if err != nil {
		return false
	}
	for _, t := range targets {
		if t == "native" {
			return true
		}
		number, real := strings.CutSuffix(strings.TrimSuffix(t, "-virtual"), "-real")
		exact := strings.HasSuffix(number, "a") || strings.HasSuffix(number, "f")
		want, err := strconv.Atoi(strings.TrimRight(number, "af"))
		switch {
		case err != nil:
		case exact && want == have:
			return true
		case !exact && want <= have && (!real || want/10 == have/10):
			return true
		}
	}
	return false
}
