package bootstrap_test

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dot4fa/internal/cli"
	"dot4fa/internal/fixture"
	"dot4fa/internal/pipeline"
)

// TestFullBuild builds the whole of the patched llama.cpp for gfx1100 with the
// compile-only prefix: $DOT4FA_FULL_BUILD is the work tree to do it in, and
// $DOT4FA_UPSTREAM the repository. It takes half an hour on two cores, and
// seconds with a warm compiler cache.
func TestFullBuild(t *testing.T) {
	work := os.Getenv("DOT4FA_FULL_BUILD")
	if work == "" {
		t.Skip("DOT4FA_FULL_BUILD names no directory to build all of llama.cpp in")
	}
	if os.Getenv("DOT4FA_UPSTREAM") == "" {
		t.Skip("DOT4FA_UPSTREAM names no llama.cpp repository")
	}
	root, _ := prefix(t)
	var out, log bytes.Buffer
	code := cli.Run(t.Context(), os.DirFS(fixture.Root(t)), cli.Streams{In: strings.NewReader(""), Out: &out, Err: &log},
		[]string{"build", "--recipe", "rdna3", "--work", work, "--toolchain", root, "--json"})
	t.Logf("%s", log.String())
	if code != 0 {
		t.Fatalf("exit code %d", code)
	}
	var done pipeline.Done
	if err := json.Unmarshal(out.Bytes(), &done); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"llama-server", "llama-bench", "test-backend-ops"} {
		if !slices.ContainsFunc(done.Programs, func(p string) bool { return filepath.Base(p) == want }) {
			t.Errorf("%s is not among %v", want, done.Programs)
		}
	}
	for file, n := range done.Compiled.Warnings {
		if strings.Contains(file, "packed16") {
			t.Errorf("%d warnings in %s", n, file)
		}
	}
	if l := done.Libraries; !done.CompileOnly || l == nil || len(l.Problems) > 0 || len(l.FromRoot) < 3 {
		t.Errorf("libraries: %+v, compile only: %v", l, done.CompileOnly)
	}
	lib, err := elf.Open(filepath.Join(work, "build", "bin", "libggml-hip.so"))
	if err != nil {
		t.Fatal(err)
	}
	defer lib.Close()
	section := lib.Section(".hip_fatbin")
	if section == nil {
		t.Fatal("libggml-hip.so holds no code for a GPU")
	}
	data, err := section.Data()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"gfx1100", "packed16_decode", "packed16_prefill", "packed16_pack_rows"} {
		if !bytes.Contains(data, []byte(want)) {
			t.Errorf("the GPU's code has no %s", want)
		}
	}
}
