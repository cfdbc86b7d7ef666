package rdna3

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dot4fa/internal/rdna3/code"
)

// The other tests write instructions as text; this one assembles those texts and sees that they come back from the
// disassembler as they are. It runs after them: by its name, in this file, last.
func TestZTextsAreWhatTheDisassemblerPrints(t *testing.T) {
	clang, err := exec.LookPath("clang-19")
	if err != nil {
		t.Skip("skipped: needs clang-19 with the amdgcn target")
	}
	dump, err := code.FindDisassembler(t.Context(), clang, 19)
	if err != nil {
		t.Skipf("skipped: needs llvm-objdump: %v", err)
	}
	var list []string
	for text := range texts {
		if !strings.Contains(text, ".h") && !strings.Contains(text, ".l") { // LLVM 20 syntax
			list = append(list, text)
		}
	}
	slices.Sort(list)
	if len(list) < 200 {
		t.Fatalf("only %d instructions are tested: run the whole package", len(list))
	}
	source := filepath.Join(t.TempDir(), "texts.s")
	text := "\t.amdgcn_target \"amdgcn-amd-amdhsa--gfx1100\"\n\t.text\n" + strings.Join(list, "\n") + "\n"
	if err := os.WriteFile(source, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	object := strings.TrimSuffix(source, ".s") + ".o"
	out, err := exec.CommandContext(t.Context(), clang, "-x", "assembler", "--target=amdgcn-amd-amdhsa", "-mcpu=gfx1100", "-c", source, "-o", object).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	data, err := os.ReadFile(object)
	if err != nil {
		t.Fatal(err)
	}
	printed, err := dump.Text(t.Context(), data, "gfx1100")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(printed)) {
		if body, _, ok := strings.Cut(line, "//"); ok && strings.HasPrefix(line, "\t") {
			got = append(got, strings.TrimSpace(body))
		}
	}
	if len(got) != len(list) {
		t.Fatalf("%d instructions assembled, %d printed", len(list), len(got))
	}
	for i := range got {
		if got[i] != list[i] {
			t.Errorf("%q is printed as %q", list[i], got[i])
		}
	}
	t.Logf("%d instructions", len(list))
}
