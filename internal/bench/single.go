package bench

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"dot4fa/internal/fault"
	"dot4fa/internal/vram"
)

// Packed times packed16 with V type v alone, once, with env on top of the
// environment. Call Start first.
func (b *Bench) Packed(ctx context.Context, shapes []Shape, v string, env ...string) (map[Shape]float64, error) {
	p := vram.Pair{K: "packed16", V: v}
	out := map[Shape]float64{}
	for _, g := range groups(shapes) {
		text, err := b.output(ctx, "test-backend-ops", append(b.env(g, []vram.Pair{p}), env...), b.perfArgs()...)
		if err != nil {
			return nil, err
		}
		list, err := parseSQL(text)
		if err != nil {
			return nil, b.unread(err)
		}
		for _, t := range list {
			if s, q, ok := t.attention(); ok && q == p && t.supported {
				out[s] = t.us
			}
		}
	}
	if len(out) != len(shapes) {
		return nil, fault.New(fault.Failure, "test-backend-ops timed %d of %d shapes", len(out), len(shapes)).
			Hintf("build it again: dot4fa build --recipe %s", b.Recipe)
	}
	return out, nil
}

// Packing times packing the K of n tokens of the canonical shape, once; n is 1, 4 or 512.
func (b *Bench) Packing(ctx context.Context, n int) (float64, error) {
	text, err := b.output(ctx, "test-backend-ops", b.timeEnv(b.Least), "perf", "-b", b.Device, "-o", "PACK_K_PACKED16", "-p", fmt.Sprintf("n_tokens=%d,", n), "--output", "sql")
	if err != nil {
		return 0, err
	}
	list, err := parseSQL(text)
	if err != nil {
		return 0, b.unread(err)
	}
	for _, t := range list {
		if t.op == "PACK_K_PACKED16" && t.supported {
			return t.us, nil
		}
	}
	return 0, fault.New(fault.Failure, "test-backend-ops timed no packing").Hintf("build it again: dot4fa build --recipe %s", b.Recipe)
}

// copySpeed returns what a large copy moves, in GB/s read and written.
func (b *Bench) copySpeed(ctx context.Context) (float64, error) {
	const bytes = "packed16_copy_bytes"
	out, err := b.output(ctx, "test-backend-ops", b.timeEnv(100*time.Millisecond), "perf", "-b", b.Device, "-o", "CPY", "-p", bytes, "--output", "sql")
	if err != nil {
		return 0, err
	}
	list, err := parseSQL(out)
	if err != nil {
		return 0, b.unread(err)
	}
	for _, t := range list {
		if n, err := strconv.ParseFloat(t.params[bytes], 64); err == nil && t.supported {
			return n / t.us / 1000, nil
		}
	}
	return 0, fault.New(fault.Failure, "test-backend-ops has no copy to time: it was built from another tree").
		At("%s", b.program("test-backend-ops")).Hintf("build it again: dot4fa build --recipe %s", b.Recipe)
}

// unread is the fault of output that does not hold what it should.
func (b *Bench) unread(err error) error {
	return fault.New(fault.Failure, "test-backend-ops: %w", err).Hintf("run it again; if that does not help, build it again: dot4fa build --recipe %s", b.Recipe)
}
