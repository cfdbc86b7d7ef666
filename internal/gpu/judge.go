package gpu

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dot4fa/internal/finding"
	"dot4fa/internal/machine"
	"dot4fa/internal/recipe"
)

// Judge says whether what r builds can run on the GPUs that were found. given
// says that the targets come from --gpu-targets and not from the recipe.
func (f Found) Judge(on machine.System, r *recipe.Recipe, given bool) finding.List {
	var l finding.List
	f.judgePresence(&l)
	if len(f.GPUs) == 0 {
		return l
	}
	f.judgeAccess(&l, on)
	seen := f.judgeOverrides(&l, on, r)
	f.judgeTargets(&l, seen, r, given)
	return l
}

// Plan says in one line which GPUs there are and what is built for, and why.
func (f Found) Plan(r *recipe.Recipe, given bool) string {
	why := "recipe " + r.Name
	if given {
		why = "--gpu-targets"
	}
	what := fmt.Sprintf("building for %s (%s)", strings.Join(r.GPUTargets, ", "), why)
	switch {
	case len(f.GPUs) > 0:
		return fmt.Sprintf("%s; found %s by %s", what, f.list(), f.Source)
	case f.Why == NotLooked:
		return fmt.Sprintf("%s; GPUs are not looked for in a CI job (%s)", what, f.Evidence)
	}
	return fmt.Sprintf("%s; no GPU here (%s)", what, f.Why)
}

func (f Found) list() string {
	var names []string
	for _, g := range f.GPUs {
		names = append(names, g.String())
	}
	return strings.Join(names, ", ")
}

func (f Found) judgePresence(l *finding.List) {
	switch {
	case len(f.GPUs) > 0:
		l.OK("gpu", fmt.Sprintf("%s, by %s (%s)", f.list(), f.Source, f.Evidence))
	case f.Why == NotLooked:
		l.OK("gpu", "not looked for in a CI job ("+f.Evidence+")")
	case f.Why == NoDriver:
		l.Fail("gpu", "an AMD GPU on the PCI bus and no "+topology+": the amdgpu driver does not drive it",
			"sudo modprobe amdgpu; sudo dmesg | grep -i -e amdgpu -e kfd  # says what it lacks; new GPUs need a new kernel")
	case f.Why == NotAllowed:
		l.Fail("gpu", kfd+" is there and may not be opened, and nothing else tells of a GPU", "sudo usermod -aG render,video $USER  # then log in again")
	case f.Why == BehindDXG:
		l.Warn("gpu", "WSL ("+dxg+"): only ROCm's programs see the GPU there, and none of them names one",
			"export HSA_ENABLE_DXG_DETECTION=1 && rocminfo  # for ROCm before 7.13; it takes librocdxg here and AMD's driver on Windows")
	case f.Why == NotReported:
		l.Warn("gpu", topology+" has no GPU: the driver is loaded and has none that can compute",
			"sudo dmesg | grep -i kfd  # says why", "docker run --device /dev/kfd --device /dev/dri --group-add $(stat -c %g /dev/kfd) ...")
	default:
		l.Warn("gpu", "none: no "+topology+", and no amdgpu-arch or rocminfo names one; a build works and cannot be run here",
			"run what was built on a machine that has one", "dot4fa build --recipe cpu  # runs here")
	}
}

func (f Found) judgeAccess(l *finding.List, on machine.System) {
	if f.Why == "" {
		l.OK("gpu access", strings.Join(f.Files, ", "))
		return
	}
	var what, groups, missing []string
	for _, d := range f.Denied {
		if !d.Exists {
			missing = append(missing, d.Path)
			continue
		}
		what = append(what, fmt.Sprintf("%s is %s:%s %04o", d.Path, d.Owner, d.Group, d.Mode))
		if d.Mode>>3&6 == 6 && !on.User.In(d.Group) && !slices.Contains(groups, d.Group) {
			groups = append(groups, d.Group)
		}
	}
	if f.Why == NotPassed {
		l.Fail("gpu access", fmt.Sprintf("the kernel shows the GPU and there is no %s: this container was not given it", strings.Join(missing, ", ")),
			"docker run --device /dev/kfd --device /dev/dri --group-add $(stat -c %g /dev/kfd) ...",
			"podman run --device /dev/kfd --device /dev/dri --group-add keep-groups ...",
			"sudo modprobe amdgpu  # outside of a container")
		return
	}
	evidence := fmt.Sprintf("%s, and %s cannot open it", strings.Join(what, "; "), on.User.Name)
	if len(f.Denied) > 1 {
		evidence = strings.TrimSuffix(evidence, "it") + "them"
	}
	switch {
	case len(groups) == 0:
		l.Fail("gpu access", evidence+": the mode would allow it, so a container or a security module forbids it",
			"docker run --device /dev/kfd --device /dev/dri --group-add $(stat -c %g /dev/kfd) ...", "sudo udevadm trigger --subsystem-match=kfd  # outside of one")
	case added(on, groups):
		l.Fail("gpu access", fmt.Sprintf("%s; /etc/group has %s in %s, this login does not", evidence, on.User.Name, strings.Join(groups, ", ")),
			"newgrp "+groups[0]+"  # or log out and in again")
	default:
		l.Fail("gpu access", evidence, fmt.Sprintf("sudo usermod -aG %s %s  # then log in again", strings.Join(groups, ","), on.User.Name))
	}
}

// added reports whether the user is in the groups from the next login on.
func added(on machine.System, groups []string) bool {
	for _, g := range groups {
		if !slices.Contains(on.Members(g), on.User.Name) {
			return false
		}
	}
	return true
}

// judgeOverrides looks at the variables that change what a program sees, and
// returns the GPUs as it sees them.
func (f Found) judgeOverrides(l *finding.List, on machine.System, r *recipe.Recipe) []GPU {
	seen := slices.Clone(f.GPUs)
	slices.SortStableFunc(seen, func(a, b GPU) int { // as HIP counts them
		switch {
		case a.Integrated == b.Integrated:
			return 0
		case b.Integrated:
			return -1
		}
		return 1
	})
	var say []string
	for _, name := range []string{"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"} {
		v := on.Getenv(name)
		if v == "" {
			continue
		}
		kept, ok := visible(seen, v)
		if ok && len(kept) == 0 {
			l.Fail("gpu overrides", fmt.Sprintf("%s=%s hides every GPU: there %s, counted from 0", name, v, number(len(seen))), "unset "+name, "export "+name+"=0")
			return nil
		}
		if ok {
			seen = kept
		}
		say = append(say, name+"="+v)
	}
	if v := on.Getenv("HSA_OVERRIDE_GFX_VERSION"); v != "" {
		target := overridden(v)
		if target == "" {
			l.Fail("gpu overrides", fmt.Sprintf("HSA_OVERRIDE_GFX_VERSION=%s is no version such as 11.0.0", v), "unset HSA_OVERRIDE_GFX_VERSION")
			return seen
		}
		say = append(say, "HSA_OVERRIDE_GFX_VERSION="+v)
		if f.Source == Kernel && slices.ContainsFunc(seen, func(g GPU) bool { return g.Target != target }) {
			return pass(l, seen, target, v, r)
		}
	}
	if len(say) > 0 {
		l.OK("gpu overrides", strings.Join(say, ", "))
	}
	return seen
}

// pass makes every GPU pass for target, as HSA_OVERRIDE_GFX_VERSION=v does.
func pass(l *finding.List, seen []GPU, target, v string, r *recipe.Recipe) []GPU {
	what := fmt.Sprintf("HSA_OVERRIDE_GFX_VERSION=%s: programs take %s for %s", v, seen[0], target)
	if runs(r, seen[0].Target) && !runs(r, target) {
		l.Fail("gpu overrides", what+", and find no code for that", "unset HSA_OVERRIDE_GFX_VERSION")
		return nil
	}
	l.Warn("gpu overrides", what+" and run code for that on it", "unset HSA_OVERRIDE_GFX_VERSION && dot4fa build --gpu-targets "+seen[0].Target)
	for i := range seen {
		seen[i].Target = target
	}
	return seen
}

func runs(r *recipe.Recipe, gpu string) bool {
	return slices.ContainsFunc(r.GPUTargets, func(t string) bool { return Runs(t, gpu) })
}

func number(gpus int) string {
	if gpus == 1 {
		return "is 1"
	}
	return "are " + strconv.Itoa(gpus)
}

// visible applies a list of indices; false when it holds something else, such as
// a unique ID. As in HIP, what follows an index that does not exist is ignored.
func visible(gpus []GPU, list string) ([]GPU, bool) {
	var out []GPU
	for _, word := range strings.Split(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil {
			return nil, false
		}
		if n < 0 || n >= len(gpus) {
			break
		}
		out = append(out, gpus[n])
	}
	return out, true
}

// overridden is the target that HSA_OVERRIDE_GFX_VERSION=11.0.0 stands for.
func overridden(v string) string {
	parts := strings.Split(v, ".")
	if len(parts) != 3 {
		return ""
	}
	var n [3]int
	for i, p := range parts {
		var err error
		if n[i], err = strconv.Atoi(p); err != nil {
			return ""
		}
	}
	return fmt.Sprintf("gfx%d%x%x", n[0], n[1], n[2])
}

// Runs reports whether code for a target of a build runs on a GPU: the same, or
// the generic one of its family.
func Runs(target, gpu string) bool {
	switch target {
	case "gfx11-generic":
		return strings.HasPrefix(gpu, "gfx11")
	case "gfx12-generic":
		return gpu == "gfx1200" || gpu == "gfx1201"
	}
	return target == gpu
}

func (f Found) judgeTargets(l *finding.List, seen []GPU, r *recipe.Recipe, given bool) {
	if len(seen) == 0 {
		return
	}
	var fit, unfit []GPU
	generic := ""
	for _, g := range seen {
		i := slices.IndexFunc(r.GPUTargets, func(t string) bool { return Runs(t, g.Target) })
		if i < 0 {
			unfit = append(unfit, g)
			continue
		}
		fit = append(fit, g)
		if strings.HasSuffix(r.GPUTargets[i], "-generic") && !slices.Contains(r.GPUTargets, g.Target) {
			generic = r.GPUTargets[i]
		}
	}
	what := fmt.Sprintf("%s names %s", whose(r, given), strings.Join(r.GPUTargets, ", "))
	switch {
	case len(fit) == 0:
		g := seen[0]
		if slices.Contains(recipe.HIPTargets, g.Target) {
			l.Fail("gpu target", fmt.Sprintf("%s, and the GPU here is %s: it would find no code for it", what, g),
				"dot4fa build --gpu-targets "+strings.Join(supported(seen), ","))
		} else {
			l.Fail("gpu target", fmt.Sprintf("%s, and the GPU here is %s: packed16 needs the DOT4 instructions of RDNA3 or newer (%s)", what, g, strings.Join(recipe.HIPTargets, ", ")),
				"build llama.cpp as it is for this GPU", "dot4fa build --recipe cpu")
		}
	case len(unfit) > 0:
		keep := make([]string, 0, len(fit))
		for i, g := range seen {
			if slices.Contains(fit, g) {
				keep = append(keep, strconv.Itoa(i))
			}
		}
		mend := []string{"export HIP_VISIBLE_DEVICES=" + strings.Join(keep, ",")}
		if s := supported(unfit); len(s) > 0 {
			mend = append(mend, "dot4fa build --gpu-targets "+strings.Join(append(slices.Clone(r.GPUTargets), s...), ","))
		}
		l.Warn("gpu target", fmt.Sprintf("%s; %s is there too, and llama.cpp uses every GPU it sees", what, unfit[0]), mend...)
	case generic != "":
		l.OK("gpu target", fmt.Sprintf("%s, which runs on %s with a runtime that knows code object version 6; its own target may be faster", what, fit[0]))
	default:
		l.OK("gpu target", what)
	}
}

func whose(r *recipe.Recipe, given bool) string {
	if given {
		return "--gpu-targets"
	}
	return "recipe " + r.Name
}

// supported are the GPUs' targets that a recipe can name.
func supported(gpus []GPU) []string {
	var out []string
	for _, g := range gpus {
		if slices.Contains(recipe.HIPTargets, g.Target) && !slices.Contains(out, g.Target) {
			out = append(out, g.Target)
		}
	}
	return out
}
