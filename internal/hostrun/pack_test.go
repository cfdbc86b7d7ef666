package hostrun

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"testing"

	"dot4fa/internal/packed16"
)

// The pack kernel writes the bytes of the model's vectors, from f32 and from f16 rows, in both modes,
// to rows that are further apart than they are long and in another order.
func TestPackKernelEqualsVectors(t *testing.T) {
	p := amd(t)
	vectors, err := packed16.Vectors()
	if err != nil {
		t.Fatal(err)
	}
	for _, blocks := range []int{1, 3, 8} { // blocks in a row
		for _, kind := range []string{"f32", "f16"} {
			for mode := packed16.Absmax; mode <= packed16.MSE; mode++ {
				rows := packed16.InRows(vectors, kind == "f16", mode, blocks)
				got := pack(t, p, fmt.Sprintf("pack type=%s mode=%d blocks=%d tokens=%d", kind, mode, blocks, rows.Count), rows.Source)
				for i := range rows.Count * blocks {
					name := vectors[i%len(vectors)].Name
					if want := rows.Payload[32*i : 32*i+32]; !bytes.Equal(got.payload[32*i:32*i+32], want) {
						t.Errorf("%s, %s, %v, %d blocks in a row: payload % x, want % x", name, kind, mode, blocks, got.payload[32*i:32*i+32], want)
					}
					if want := rows.Scales[2*i : 2*i+2]; !bytes.Equal(got.scales[2*i:2*i+2], want) {
						t.Errorf("%s, %s, %v, %d blocks in a row: scale % x, want % x", name, kind, mode, blocks, got.scales[2*i:2*i+2], want)
					}
				}
			}
		}
	}
	t.Logf("%d vectors, f32 and f16, both modes", len(vectors))
}

type packedRows struct{ payload, scales []byte }

func pack(t *testing.T, p *Program, line string, src []byte) packedRows {
	t.Helper()
	r, err := p.Run(t.Context(), []byte(line+"\n"+hex.EncodeToString(src)+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	if r.Status != 0 {
		t.Fatalf("%s: status %d\n%s", line, r.Status, r.Stderr)
	}
	var out struct{ Payload, Scales string }
	if err := json.Unmarshal(r.Stdout, &out); err != nil {
		t.Fatal(err)
	}
	payload, err1 := hex.DecodeString(out.Payload)
	scales, err2 := hex.DecodeString(out.Scales)
	if err1 != nil || err2 != nil || len(payload) != 16*len(scales) || len(payload) == 0 {
		t.Fatalf("%s: the harness printed %q", line, r.Stdout)
	}
	return packedRows{payload, scales}
}
