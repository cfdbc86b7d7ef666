package recipe

import (
	"slices"
	"strings"

	"dot4fa/internal/fault"
	"dot4fa/internal/nearest"
)

// resolve merges the layers, fills in defaults and checks what no single value
// shows.
func resolve(layers []*layer) (*Recipe, error) {
	m := merge(layers)
	r := &Recipe{
		CMake:   map[string]string{},
		Env:     map[string]string{},
		origins: map[string]Pos{},
	}
	for _, l := range layers {
		r.files = append(r.files, l.file)
	}
	for p, it := range m {
		r.origins[p] = it.pos
		if name, ok := strings.CutPrefix(p, "cmake."); ok {
			r.CMake[name] = it.value.(string)
		} else if name, ok := strings.CutPrefix(p, "env."); ok {
			r.Env[name] = it.value.(string)
		}
	}
	str := func(p string) string { s, _ := m[p].value.(string); return s }
	list := func(p string) []string {
		if it, ok := m[p]; ok {
			return slices.Clone(it.value.([]string))
		}
		return []string{}
	}
	r.Name, r.Summary, r.Backend = str("name"), str("summary"), Backend(str("backend"))
	r.Upstream = Upstream{URL: str("upstream.url"), Commit: str("upstream.commit"), Tag: str("upstream.tag"), Exclude: list("upstream.exclude")}
	r.GPUTargets, r.Targets = list("gpu_targets"), list("targets")
	r.Kernel = kernelOf(m)

	file := layers[0].file
	for _, need := range []struct{ key, how string }{
		{"backend", "a recipe without a backend is there to be extended: name one that extends it, or add backend: cpu, hip or cuda"},
		{"upstream.url", "add it, or extend base"},
		{"upstream.commit", "add it with upstream.tag, or extend base"},
		{"targets", "list the CMake targets to build, as targets: [llama-cli]"},
	} {
		if _, ok := m[need.key]; !ok {
			return nil, bad(Pos{File: file, Line: 1, Col: 1}, "the recipe has no %s", need.key).Hintf("%s", need.how)
		}
	}
	if len(r.Targets) == 0 {
		return nil, bad(m["targets"].pos, "targets must not be empty").Hintf("list the CMake targets to build, as targets: [llama-cli]")
	}
	for _, check := range []func() *fault.Error{r.checkTargets, r.checkBackend, r.checkKernel} {
		if e := check(); e != nil {
			return nil, e
		}
	}
	return r, nil
}

// kernelOf returns the kernel parameters: given values over defaults.
func kernelOf(m map[string]item) Kernel {
	var k Kernel
	for _, p := range kernelKeys {
		v := p.Default
		if it, ok := m[p.Path]; ok {
			v = it.value
		}
		switch dst := p.field(&k).(type) {
		case *int:
			*dst = v.(int)
		case *bool:
			*dst = v.(bool)
		case *string:
			*dst = v.(string)
		case *[]int:
			*dst = slices.Clone(v.([]int))
		case *[]string:
			*dst = slices.Clone(v.([]string))
		}
	}
	return k
}

// at returns where a key was given; for a default, the recipe's own file.
func (r *Recipe) at(key string) Pos {
	if p, ok := r.origins[key]; ok {
		return p
	}
	return Pos{File: r.files[0], Line: 1, Col: 1}
}

// checkTargets checks gpu_targets against the backend and adds the cache entry
// they mean.
func (r *Recipe) checkTargets() *fault.Error {
	pos := r.at("gpu_targets")
	if r.Backend == CPU {
		if len(r.GPUTargets) > 0 {
			return bad(pos, "backend cpu has no gpu_targets").Hintf("write gpu_targets: [], or choose backend hip or cuda")
		}
		return nil
	}
	if len(r.GPUTargets) == 0 {
		return bad(pos, "backend %s needs gpu_targets", r.Backend).Hintf("%s", lookup("gpu_targets").Doc)
	}
	for _, t := range r.GPUTargets {
		switch {
		case r.Backend == HIP && !contains(HIPTargets, t):
			e := bad(pos, "unknown GPU target %s for backend hip", t)
			allowed := "allowed: " + strings.Join(HIPTargets, ", ") + " (the GPUs with v_dot4_i32_iu8)"
			if near := nearest.Hint(t, HIPTargets); near != "" {
				allowed = near + "? " + allowed
			}
			return e.Hintf("%s", allowed)
		case r.Backend == CUDA && t != "native" && !reArch.MatchString(t):
			return bad(pos, "unknown GPU target %s for backend cuda", t).
				Hintf("allowed: an architecture number such as 86, 90 or 120a, with -real or -virtual if wanted, or native")
		case t == "native" && len(r.GPUTargets) > 1:
			return bad(pos, "native cannot be combined with other GPU targets").Hintf("write gpu_targets: [native], or list the architectures")
		}
	}
	name := map[Backend]string{HIP: "GPU_TARGETS", CUDA: "CMAKE_CUDA_ARCHITECTURES"}[r.Backend]
	r.CMake[name] = strings.Join(r.GPUTargets, ";")
	return nil
}

// on reports whether CMake takes v for true.
func on(v string) bool {
	switch strings.ToUpper(v) {
	case "ON", "TRUE", "YES", "Y", "1":
		return true
	}
	return false
}

// checkBackend makes sure that the cache entries build the backend named: with
// the wrong option upstream silently builds for the CPU.
func (r *Recipe) checkBackend() *fault.Error {
	for _, o := range []struct {
		backend Backend
		option  string
	}{{HIP, "GGML_HIP"}, {CUDA, "GGML_CUDA"}} {
		v, given := r.CMake[o.option]
		switch {
		case r.Backend == o.backend && !on(v):
			return bad(r.at("backend"), "backend %s needs cmake %s: ON", o.backend, o.option).
				Hintf("add %s: ON under cmake; without it upstream silently builds for the CPU", o.option)
		case r.Backend != o.backend && given && on(v):
			return bad(r.at("cmake."+o.option), "cmake %s is on but the backend is %s", o.option, r.Backend).
				Hintf("remove %s, or write backend: %s", o.option, o.backend)
		}
	}
	return nil
}
