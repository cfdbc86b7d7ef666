package picture

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dot4fa/internal/fault"
	"dot4fa/internal/syntax"
)

func TestMarkdown(t *testing.T) {
	in := commits()
	in[1].Ref = "b2"
	in[0].Units = append(in[0].Units, syntax.Unit{File: "v.c", Status: syntax.OK, Cached: true}, syntax.Unit{File: "w.cu", Status: syntax.NotChecked, Detail: "no | clang"})
	text := string(Markdown(in))
	for _, want := range []string{
		"| commits | 3, b1 to b3 (3) |\n",
		"| all edits hold | 2 of 3 (67 %) |\n",
		"| every unit that was checked compiles | 1 of 2 (50 %) |\n",
		"| units judged | 3: 2 by a compiler (0 s of its time), 1 from earlier verdicts on the same content; 1 could not be checked |\n",
		"| b1 | b1 | 1 | 2 ok | 2 units compile, 1 not checked |\n",
		"| b2 | b2 | 1 | 1 ok, failing: b | not compiled |\n",
		"| b3 | b3 | 1 | 1 ok, 1 skipped | 0 units compile, 1 fail u.c |\n",
		"| b | f.c | b1 to b2 (2) | b3: `",
		"| b | gone | b2 | `",
		"| u.c | does not compile | b3 | `",
		"| w.cu | not checked | b1 | `no \\| clang` |\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
	plain := commits()[:1]
	plain[0].Units = nil
	if text := string(Markdown(plain)); strings.Contains(text, "guarded") || strings.Contains(text, "edit or unit") || strings.Contains(text, "compiles") {
		t.Errorf("tables of nothing:\n%s", text)
	}
}

func TestWriteMarkdown(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.md")
	read := func() string {
		t.Helper()
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	write := func(report string) {
		t.Helper()
		if err := WriteMarkdown(name, []byte(report)); err != nil {
			t.Fatal(err)
		}
	}
	write("one\n")
	if got := read(); got != Begin+"one\n"+End {
		t.Errorf("a new file is %q", got)
	}
	if err := os.WriteFile(name, []byte("head\n"+read()+"tail\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	write("two\n")
	if got := read(); got != "head\n"+Begin+"two\n"+End+"tail\n" {
		t.Errorf("written again it is %q", got)
	}
	if err := os.WriteFile(name, []byte("mine\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := WriteMarkdown(name, nil); fault.Code(err) != fault.Usage || read() != "mine\n" {
		t.Errorf("over a file without a place for it: %v, %q", err, read())
	}
}
