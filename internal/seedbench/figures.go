package seedbench

import "dot4fa/internal/vram"

// The seed's figures, on an RX 7900 XTX with ROCm 7.2.3, as its document gives them.
const seedGPU = "RX 7900 XTX"

var (
	// ms of 256 rows against 1024 cells, one head
	seedLayouts = []struct {
		name, ours string
		ms         float64
	}{{"q8_0 block (34B)", "q8_0 block", 0.0385}, {"packed16 payload + q8 scales", "packed16", 0.0193}, {"packed16 + one row scale", "packed16, one row scale", 0.0104}}

	// ms of the same three, by shape
	seedShapes = []struct {
		nq, nk            int
		q8, packed, scale float64
	}{{256, 1024, 0.0316, 0.0181, 0.0173}, {512, 2048, 0.1361, 0.0672, 0.0570}, {1024, 4096, 0.3083, 0.1080, 0.1011}}

	// what it tried around the loop, over its scalar body
	seedTried = []struct{ name, result, ours string }{
		{"K LDS staging", "-0.5–1.0%", "K in LDS"},
		{"Cooperative warp2 KQ", "slower than scalar", "cooperative warp2"},
		{"Register 2×2 micro-tile", "1.2–7.4× slower", "register 2x2"},
		{"LDS tile cache (16×16 QK)", "4.5–5.9× slower", "LDS tile 16x16"},
		{"scales per DOT4, not per q8 block", "+4–18% from moving them", "scales per dot4"},
	}

	// tokens per second of the 27B model's prefill, by length of the prompt
	seedPrefill = []struct {
		tokens int
		rate   float64
	}{{512, 401}, {1024, 568}, {2048, 689}, {4096, 723}, {8192, 746}, {15000, 709}}

	// its configurations: prefill and decode at 15,000 cells
	seedConfigs = []struct {
		vram.Pair
		name            string
		prefill, decode float64
	}{
		{vram.Pair{K: "f16", V: "q4_0"}, "Baseline q4_0 V (standard FA)", 117, 13},
		{vram.Pair{K: "f16", V: "f16"}, "Baseline f16 V (standard FA)", 845, 29},
		{vram.Pair{K: "packed16", V: "q4_0"}, "Packed16 + q4_0 V", 706, 23},
		{vram.Pair{K: "q8_0", V: "q4_0"}, "not in the seed: stock cache of the same bytes", 0, 0},
	}

	// ms of a decode call by split
	seedDecode = []struct {
		name string
		nk   int
		ms   float64
	}{{"BN64", 256, 0.095}, {"split-K", 3328, 0.68}}
)

const (
	seedContext   = 15000
	seedRecthist  = 1.400 // ms, its best mask variant
	seedDot4Rate  = 191.7 // GOP/s of that
	seedPVRate    = 766.9
	seedRelRMS    = 8.2e-7
	seedPairs     = 4.19e6 // (query, key) pairs, from that time and rate
	dot4PerLogit  = 64     // D/4 at D=256
	headsMeasured = 24
)
