package selfcheck

import (
	"bytes"
	"context"
	"encoding/binary"
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
	tokens := (len(vectors) + blocks - 1) / blocks
	var src, payload, scales bytes.Buffer
	for i := range tokens * blocks {
		v := vectors[i%len(vectors)]
		want := v.Want[mode]
		for j, x := range v.X {
			if kind == "f16" {
				h := packed16.ToF16(x)
				v.X[j] = h.Float32()
				binary.Write(&src, binary.LittleEndian, uint16(h))
			} else {
				binary.Write(&src, binary.LittleEndian, x)
			}
		}
		if kind == "f16" { // what rounding to f16 made of the vector
			q, s := packed16.QuantizeBlock(&v.X, mode)
			want = packed16.Quantized{Scale: s, Words: packed16.Words(&q)}
		}
		binary.Write(&payload, binary.LittleEndian, want.Words)
		binary.Write(&scales, binary.LittleEndian, uint16(want.Scale))
	}
	line := fmt.Sprintf("pack type=%s mode=%d blocks=%d tokens=%d", kind, mode, blocks, tokens)
	r, err := p.Run(ctx, []byte(line+"\n"+hex.EncodeToString(src.Bytes())+"\n"))
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
	}{{"payload", got.Payload, payload.Bytes(), 32}, {"scale", got.Scales, scales.Bytes(), 2}} {
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
