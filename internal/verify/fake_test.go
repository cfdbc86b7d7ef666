package verify

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"dot4fa/internal/gguf"
)

// The test binary stands for the programs of a built llama.cpp when it is called
// by their names. The environment says how they behave:
//
//	FAKE_RUNS   a file: each call is written there
//	FAKE_EPS    "packed16=0.01 q4_0=0.1": how far a type moves the predictions
//	FAKE_FAIL   a pair that llama-perplexity refuses
//	FAKE_TEXT   tokens of the text
//	FAKE_LOSE   how many of the divergence runs end without their last lines
//	FAKE_CUT    a pair whose logits are cut short
//	FAKE_OPS, FAKE_STATE   what test-backend-ops and test-packed16-state print
//	FAKE_EXIT   their exit code
func TestMain(m *testing.M) {
	name := filepath.Base(os.Args[0])
	if log := os.Getenv("FAKE_RUNS"); log != "" && !strings.HasSuffix(name, ".test") {
		f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
		if err != nil {
			panic(err)
		}
		fmt.Fprintln(f, name, os.Getenv(scaleMode), strings.Join(os.Args[1:], " "))
		f.Close()
	}
	code, _ := strconv.Atoi(os.Getenv("FAKE_EXIT"))
	switch name {
	case "llama-perplexity":
		os.Exit(fakePerplexity(os.Args[1:]))
	case "test-backend-ops":
		if slices.Contains(os.Args, "NONE") {
			fmt.Print("Testing 2 devices\n\nBackend 1/2: GPU0\n  Device description: Toy GPU\n\nBackend 2/2: CPU\n  Skipping CPU backend\n2/2 backends passed\n\x1b[1;32mOK\x1b[0m\n")
			os.Exit(0)
		}
		fmt.Print(os.Getenv("FAKE_OPS"))
		os.Exit(code)
	case "test-packed16-state":
		fmt.Print(os.Getenv("FAKE_STATE"))
		os.Exit(code)
	}
	os.Exit(m.Run())
}

func flagOf(args []string, name string) string {
	if i := slices.Index(args, name); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}

func fakePerplexity(args []string) int {
	ctx, _ := strconv.Atoi(flagOf(args, "-c"))
	chunks, _ := strconv.Atoi(flagOf(args, "--chunks"))
	pair := flagOf(args, "-ctk") + "/" + flagOf(args, "-ctv")
	file := flagOf(args, "--kl-divergence-base")
	tokens := 1 << 20
	if n, err := strconv.Atoi(os.Getenv("FAKE_TEXT")); err == nil {
		tokens = n
	}
	if pair == os.Getenv("FAKE_FAIL") {
		fmt.Fprintf(os.Stderr, "0.00.1 E packed16 K cache refused for toy: it is a toy\n")
		return 1
	}
	if tokens < 2*ctx {
		fmt.Printf("0.00.1 E perplexity: the data file tokenizes to only %d tokens\n", tokens)
		os.WriteFile(file, append([]byte(logitsMark), byte(ctx), byte(ctx>>8), 0, 0), 0o666)
		return 0 // as the real one does
	}
	eps := 0.0
	for _, f := range strings.Fields(os.Getenv("FAKE_EPS")) {
		name, value, _ := strings.Cut(f, "=")
		v, _ := strconv.ParseFloat(value, 64)
		if strings.HasPrefix(pair, name+"/") || strings.HasSuffix(pair, "/"+name) {
			eps += v
		}
	}
	if n := tokens / ctx; n < chunks && os.Getenv("FAKE_SILENT") == "" { // then it computes for a long time
		fmt.Printf("0.00.1 I perplexity: calculating perplexity over %d chunks, n_ctx=%d\n", n, ctx)
		time.Sleep(time.Minute)
	}
	for c := range chunks {
		fmt.Printf("[%d]3.0000,", c+1)
	}
	if !slices.Contains(args, "--kl-divergence") {
		data := predictions(ctx, min(chunks, tokens/ctx), eps)
		if pair == os.Getenv("FAKE_CUT") {
			data = data[:len(data)-7]
		}
		os.WriteFile(file, data, 0o666)
		return 0
	}
	other := file + ".other"
	defer os.Remove(other)
	os.WriteFile(other, predictions(ctx, chunks, eps), 0o666)
	c, err := compare(file, other, 1)
	if err != nil {
		fmt.Fprintln(os.Stderr, "0.00.1 E kl_divergence:", err)
		return 1
	}
	lost := file + ".lost"
	if n, _ := strconv.Atoi(os.Getenv("FAKE_LOSE")); n > 0 {
		before, _ := os.ReadFile(lost)
		if len(before) < n {
			os.WriteFile(lost, append(before, '.'), 0o666)
			return 0
		}
	}
	fmt.Printf("\nMean PPL(Q)                   :   %.6f ±   0.100000\nMean    KLD:   %.6f ±   0.000001\nSame top p: %.3f ± 0.100 %%\n", c.PPL.Mean, c.KLD.Mean, 100*c.SameTop)
	return 0
}

// predictions are saved logits over ten tokens, moved by eps.
func predictions(ctx, chunks int, eps float64) []byte {
	const vocab = 10
	var b bytes.Buffer
	put := func(v any) { binary.Write(&b, binary.LittleEndian, v) }
	b.WriteString(logitsMark)
	put([]int32{int32(ctx), vocab, int32(chunks)})
	for i := range ctx * chunks {
		put(int32(i * i % vocab))
	}
	for c := range chunks {
		for i := range rows(ctx) {
			logs, sum := make([]float64, vocab), 0.0
			for k := range logs {
				logs[k] = 2*math.Sin(float64(k*7+i*3+c)) + eps*math.Cos(float64(k*5+i))
				sum += math.Exp(logs[k])
			}
			lo, hi := math.Inf(1), math.Inf(-1)
			for k := range logs {
				logs[k] -= math.Log(sum)
				lo, hi = min(lo, logs[k]), max(hi, logs[k])
			}
			step := (hi - lo) / 65535
			put(float32(step))
			put(float32(lo))
			for k := range logs {
				put(uint16(math.Round((logs[k] - lo) / step)))
			}
		}
	}
	return b.Bytes()
}

// toy is options for the fake programs, a toy model and a text.
func toy(t *testing.T) Options {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"llama-perplexity", "test-backend-ops", "test-packed16-state"} {
		if err := os.Symlink(self, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	model, text := filepath.Join(dir, "toy.gguf"), filepath.Join(dir, "toy.txt")
	writeToy(t, model, 64)
	if err := os.WriteFile(text, []byte("a text"), 0o666); err != nil {
		t.Fatal(err)
	}
	t.Setenv("FAKE_RUNS", filepath.Join(dir, "runs"))
	t.Setenv("FAKE_EPS", "q8_0=0.004 packed16=0.004 q4_0=0.05")
	return Options{
		Program: func(name string) (string, error) { return filepath.Join(dir, name), nil },
		Dir:     filepath.Join(dir, "results"), Model: model, Text: text, Types: []Pair{{"q8_0", "f16"}, {"packed16", "f16"}, {"packed16-mse", "q4_0"}},
		Ctxs: []int{256}, Chunks: 2, Bins: 4, CrossCheck: "first", Skip: []string{Ops, State, Depth},
	}
}

func writeToy(t *testing.T, file string, head uint32) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	err = gguf.Write(f, []gguf.Pair{
		{Key: "general.architecture", Value: "llama"}, {Key: "llama.block_count", Value: uint32(2)}, {Key: "llama.context_length", Value: uint32(512)},
		{Key: "llama.embedding_length", Value: uint32(64)}, {Key: "llama.attention.head_count", Value: uint32(2)},
		{Key: "llama.attention.key_length", Value: head}, {Key: "llama.attention.value_length", Value: head},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
}

// runs are the calls of the fake programs so far.
func runs(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile(os.Getenv("FAKE_RUNS"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}
