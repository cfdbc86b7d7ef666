package bench

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dot4fa/internal/vram"
)

const sqlLine = "INSERT INTO test_backend_ops (test_time, build_commit, op_name, op_params, supported, error_message, time_us, n_runs) VALUES " +
	"('2026-11-30', 'abc', 'FLASH_ATTN_EXT', 'K=packed16,V=q4_0,hs=256,nh=4,gqa=6,kv=512,nb=4,ns=1,m=causal,sinks=0', '1', '', '12.500000', '8');"

func TestParseSQL(t *testing.T) {
	list, err := parseSQL("CREATE TABLE IF NOT EXISTS test_backend_ops (\n  op_name TEXT\n);\n\n" + sqlLine + "\n" + strings.Replace(sqlLine, "'1', '', '12.5", "'0', 'not supported', '0.0", 1) + "\n")
	if err != nil || len(list) != 2 {
		t.Fatalf("%d lines, %v", len(list), err)
	}
	s, p, ok := list[0].attention()
	want := Shape{D: 256, KVHeads: 4, GQA: 6, NK: 512, NQ: 4}
	if !ok || s != want || p != (vram.Pair{K: "packed16", V: "q4_0"}) || list[0].us != 12.5 || list[0].runs != 8 || list[0].commit != "abc" || !list[0].supported {
		t.Errorf("read as %+v", list[0])
	}
	if list[1].supported {
		t.Error("what is not supported is")
	}
}

// TestParseSQLCut: no prefix of a line is taken for a line, and none is overlooked.
func TestParseSQLCut(t *testing.T) {
	for n := 1; n < len(sqlLine); n++ {
		if list, err := parseSQL(sqlLine[:n]); err == nil {
			t.Fatalf("cut at %d, %q gave %d lines", n, sqlLine[:n], len(list))
		}
	}
	for name, line := range map[string]string{
		"a value too many": strings.Replace(sqlLine, "'abc'", "'abc', 'x'", 1),
		"no time":          strings.Replace(sqlLine, "'12.500000'", "''", 1),
		"time 0":           strings.Replace(sqlLine, "'12.500000'", "'0.000000'", 1),
		"runs":             strings.Replace(sqlLine, "'8'", "'many'", 1),
	} {
		if _, err := parseSQL(line); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if list, err := parseSQL("some remark\n\n"); err != nil || len(list) != 0 {
		t.Errorf("a remark is read as %v, %v", list, err)
	}
}

func TestParseParams(t *testing.T) {
	got := parseParams("a=1,ne=[1,2,3],b=x=y,flag")
	if d := cmp.Diff(map[string]string{"a": "1", "ne": "[1,2,3]", "b": "x=y"}, got); d != "" {
		t.Error(d)
	}
}

func TestParseDevices(t *testing.T) {
	out := "Testing 2 devices\n\nBackend 1/2: ROCm0\n  Device description: AMD Radeon RX 7900 XTX\r\n  Device memory: 24560 MB (24500 MB free)\n\n" +
		"  0/0 tests passed\n  Backend ROCm0: \x1b[1;32mOK\x1b[0m\nBackend 2/2: CPU\n  Skipping CPU backend\n2/2 backends passed\n"
	if d := cmp.Diff([]device{{"ROCm0", "AMD Radeon RX 7900 XTX"}, {"CPU", ""}}, parseDevices(out), cmp.AllowUnexported(device{})); d != "" {
		t.Error(d)
	}
}

func TestParseBench(t *testing.T) {
	m := ModelRun{Depths: []int{0, 512}, Gen: 64}
	c := vram.Pair{K: "packed16", V: "q4_0"}
	const one = `{"build_commit":"abc","type_k":"packed16","type_v":"q4_0","n_prompt":0,"n_gen":64,"n_depth":0,"avg_ts":12.5}`
	two := strings.Replace(one, `"n_depth":0`, `"n_depth":512`, 1)
	list, commit, err := parseBench("["+one+","+two+"]", m, c)
	if err != nil || commit != "abc" || len(list) != 2 || list[1] != (Tokens{Cache: "packed16/q4_0", Gen: 64, Depth: 512, PerSecond: 12.5}) {
		t.Errorf("%+v %s %v", list, commit, err)
	}
	for name, text := range map[string]string{
		"cut":       "[" + one + ",",
		"empty":     "",
		"one short": "[" + one + "]",
		"other K":   "[" + one + "," + strings.Replace(two, "packed16", "f16", 1) + "]",
		"no rate":   "[" + one + "," + strings.Replace(two, "12.5", "0", 1) + "]",
	} {
		if _, _, err := parseBench(text, m, c); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
