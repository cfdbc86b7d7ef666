package isa

import (
	"fmt"

	"dot4fa/internal/rdna3/code"
)

// metadata is what the code object says of one kernel, from its NT_AMDGPU_METADATA note.
type metadata struct {
	name                   string
	vgpr, sgpr             int
	vgprSpills, sgprSpills int
	scratch, lds           int
	maxWorkgroup           int
	wave                   int
}

// readMetadata returns the kernels of a code object by symbol name.
func readMetadata(object []byte) (map[string]metadata, error) {
	kernels, err := code.Metadata(object)
	if err != nil {
		return nil, fmt.Errorf("code object: %w", err)
	}
	out := map[string]metadata{}
	for _, k := range kernels {
		name, _ := k[".name"].(string)
		var bad error
		number := func(key string) int {
			n, ok := code.Number(k, key)
			if !ok {
				bad = fmt.Errorf("code object: kernel %s: no number %s in its metadata", name, key)
			}
			return n
		}
		m := metadata{
			name: name, vgpr: number(".vgpr_count"), sgpr: number(".sgpr_count"),
			vgprSpills: number(".vgpr_spill_count"), sgprSpills: number(".sgpr_spill_count"),
			scratch: number(".private_segment_fixed_size"), lds: number(".group_segment_fixed_size"),
			maxWorkgroup: number(".max_flat_workgroup_size"), wave: number(".wavefront_size"),
		}
		if bad != nil {
			return nil, bad
		}
		out[name] = m
	}
	return out, nil
}
