package selfcheck

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"dot4fa/internal/fault"
	"dot4fa/internal/hostrun"
	"dot4fa/internal/packed16"
)

// packChecks pack the model's vectors, from f32 and from f16 rows, in both scale modes: the bytes must be the model's.
func packChecks() []check {
	var out []check
	for _, kind := range []string{"f32", "f16"} {
		for mode := packed16.Absmax; mode <= packed16.MSE; mode++ {
			out = append(out, check{route: "pack", run: func(ctx context.Context, p *hostrun.Program) error { return pack(ctx, p, kind, mode) }})
		}
	}
	return out
}

func pack(ctx context.Context, p *hostrun.Program, kind string, mode packed16.Mode) error {
	vectors, err := packed16.Vectors()
	if err != nil {
		return err
	}
	const blocks = 3 // in a row
	rows := packed16.InRows(vectors, kind == "f16", mode, blocks)
	line := fmt.Sprintf("pack type=%s mode=%d blocks=%d tokens=%d", kind, mode, blocks, rows.Count)
	r, err := p.Run(ctx, []byte(line+"\n"+hex.EncodeToString(rows.Source)+"\n"))
	if err != nil {
		return err
	}
	if r.Status != 0 {
		return fault.New(fault.VerifyFailed, "stopped with status %d\n%s", r.Status, strings.TrimSpace(r.Stderr)).At("%s", line)
	}
	var got struct{ Payload, Scales string }
	if err := json.Unmarshal(r.Stdout, &got); err != nil {
		return fault.New(fault.Failure, "the harness printed %q: %w", r.Stdout, err).At("%s", line)
	}
	for _, c := range []struct {
		what, got string
		want      []byte
		each      int
	}{{"payload", got.Payload, rows.Payload, 32}, {"scale", got.Scales, rows.Scales, 2}} {
		have, err := hex.DecodeString(c.got)
		if err != nil || len(have) != len(c.want) {
			return fault.New(fault.Failure, "the harness printed %d bytes of %s, not %d", len(have), c.what, len(c.want)).At("%s", line)
		}
		for i := 0; i < len(have); i += c.each {
			if !bytes.Equal(have[i:i+c.each], c.want[i:i+c.each]) {
				return fault.New(fault.VerifyFailed, "%s % x of vector %q, not % x", c.what, have[i:i+c.each],
					vectors[i/c.each%len(vectors)].Name, c.want[i:i+c.each]).At("%s", line)
			}
		}
	}
	return nil
}
