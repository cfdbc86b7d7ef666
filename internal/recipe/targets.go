package recipe

import "slices"

// SetGPUTargets replaces the GPU targets, as a flag does for one build. All of
// them go into the same binaries.
func (r *Recipe) SetGPUTargets(targets []string) error {
	r.GPUTargets = nil
	for _, t := range targets {
		if !slices.Contains(r.GPUTargets, t) {
			r.GPUTargets = append(r.GPUTargets, t)
		}
	}
	if err := r.checkTargets(); err != nil {
		return err.At("--gpu-targets").Hintf("%s", err.Hint)
	}
	return nil
}
