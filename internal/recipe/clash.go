package recipe

import (
	"fmt"

	"dot4fa/internal/fault"
)

// Clash is a kernel parameter that does not go with the others, or with what the
// backend's compiler makes of them.
type Clash struct {
	Key  string
	Have any
	Want string
}

// Clash returns the first one, nil when the kernels compile for the backend. The
// limits are those that the kernels' own static_asserts hold.
func (k Kernel) Clash(b Backend) *Clash {
	triad := k.GQAGroup == "triad"
	for _, c := range []struct {
		wrong bool
		Clash
	}{
		{k.SplitSize%k.Chunk != 0, Clash{"kernel.split_size", k.SplitSize, fmt.Sprintf("a multiple of chunk (%d)", k.Chunk)}},
		{k.SuperChunk%k.Chunk != 0, Clash{"kernel.super_chunk", k.SuperChunk, fmt.Sprintf("a multiple of chunk (%d)", k.Chunk)}},
		{k.SplitKThreshold%256 != 0, Clash{"kernel.splitk_threshold", k.SplitKThreshold, "a multiple of 256, as upstream pads the cells"}},
		{k.Chunk%k.DecodeBN != 0, Clash{"kernel.decode_bn", k.DecodeBN, fmt.Sprintf("a divisor of chunk (%d)", k.Chunk)}},
		{k.BM > 32 && k.GQAGroup != "single", Clash{"kernel.bm", k.BM, "at most 32 with gqa_group " + k.GQAGroup + ", whose heads each take as many rows"}},

		{b == HIP && triad, Clash{"kernel.gqa_group", k.GQAGroup, "single or pair: on AMD the rows of a warp, whose Q is loaded as scalars, have to be of one head"}},

		// In shared memory, beside Q.
		{b == CUDA && triad && k.BM > 16 && k.HasHeadSize(256), Clash{"kernel.bm", k.BM, "at most 16 with gqa_group triad and head size 256 on backend cuda, where Q has to fit in 48 KiB too"}},
		// Decode on matrix tiles gives every lane of its warps at most one cell of a chunk: four warps at D=64, eight above.
		{b == CUDA && k.Chunk > 256, Clash{"kernel.chunk", k.Chunk, "at most 256 on backend cuda, a cell for each lane of eight warps"}},
		{b == CUDA && k.Chunk > 128 && k.HasHeadSize(64), Clash{"kernel.chunk", k.Chunk, "at most 128 with head size 64 on backend cuda, a cell for each lane of four warps"}},
		// There the masks of verify and the merge share memory, of which the launch counts the first alone.
		{b == CUDA && k.Chunk < 128 && k.VerifyMaxNQ < 5 && k.HasVType("f16"), Clash{"kernel.verify_max_nq", k.VerifyMaxNQ, fmt.Sprintf("at least 5 with chunk %d and f16 V on backend cuda", k.Chunk)}},
	} {
		if c.wrong {
			return &c.Clash
		}
	}
	return nil
}

// checkKernel checks what kernel parameters demand of each other.
func (r *Recipe) checkKernel() *fault.Error {
	c := r.Kernel.Clash(r.Backend)
	if c == nil {
		return nil
	}
	return bad(r.at(c.Key), "%s cannot be %v", c.Key, c.Have).Hintf("want %s", c.Want)
}
