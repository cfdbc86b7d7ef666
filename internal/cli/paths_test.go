package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dot4fa/internal/progress"
	"dot4fa/internal/randmodel"
)

// reads are the commands that read a path, which stands as @. A path ending in
// / is a directory's; model and run stand for files that are right.
var reads = []string{
	"vram @",
	"vram model --draft @",
	"bench --from @",
	"bench --from run --compare @",
	"bench --from run --targets --no-matrix @",
	"bench --suite model --model @",
	"verify --model @",
	"verify --model model --text @",
	"figures --write @",
	"recipe show @",
	"status --recipe @",
	"check --upstream @/",
	"status --toolchain @/",
	"export --verify @/",
	"isa --tree @/",
	"isa --run --tree @/",
	"isa --self-check @",
	"isa --compiler @",
	"toolchain bootstrap new --dry-run --keyring @",
	"toolchain bootstrap new --dry-run --debs @/",
	"toolchain bootstrap new --clang @",
}

// writes are the flags whose path is written to.
var writes = []string{
	"dot4fa --work", "bench --out", "bench --make-model", "check --svg", "check --html", "check --md", "ci workflow --out",
	"dist --out", "dist --sbom", "export --out", "report --out", "verify --svg", "verify --write", "vram --svg",
}

// A path that is not there, or that is not what is read there, is a mistake of
// the user's wherever one is taken: exit code 2, the path and a hint, at once.
func TestPaths(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	shape, err := randmodel.ByName("qwen3-27b")
	if err != nil {
		t.Fatal(err)
	}
	shape.Embd, shape.FF, shape.Heads, shape.KVHeads = 256, 256, 2, 1
	if err := randmodel.Make(context.Background(), at("model"), shape, 1, "q4_0"); err != nil {
		t.Fatal(err)
	}
	file, pipe, none := at("file"), at("pipe"), at("none")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wrong := []string{none}
	if exec.Command("mkfifo", pipe).Run() == nil {
		wrong = append(wrong, pipe)
	}
	for _, line := range reads {
		bad := append(wrong, filepath.Join(file, "x"))
		if strings.HasSuffix(line, "/") {
			bad = append(bad, file)
		}
		for _, path := range bad {
			var out, errs bytes.Buffer
			args := strings.Fields(line)
			for i, arg := range args {
				switch strings.TrimSuffix(arg, "/") {
				case "@":
					args[i] = path
				case "model", "new":
					if i == 0 || args[i-1] != "--suite" {
						args[i] = at(arg)
					}
				case "run":
					args[i] = "../../docs/bench/nvidia-h200.json"
				}
			}
			code := Run(context.Background(), os.DirFS("../.."), Streams{strings.NewReader(""), &out, &errs}, append(args, "--work", at("work")))
			if said := errs.String(); code != 2 || !strings.Contains(said, path) || !strings.Contains(said, "hint: ") {
				t.Errorf("%s: exit code %d, said:\n%s", strings.Join(args, " "), code, said)
			}
		}
	}
}

// Every flag that names a file or directory is in reads or in writes.
func TestPathFlags(t *testing.T) {
	known := map[string]bool{}
	for _, name := range writes {
		known[name] = true
	}
	for _, line := range append(reads, "dot4fa --recipe @", "dot4fa --upstream @", "dot4fa --toolchain @") {
		words := strings.Fields(line)
		command := words[:1]
		for _, w := range words[1:] {
			if !strings.HasPrefix(w, "-") && len(command) == 1 && (command[0] == "toolchain" || command[0] == "ci" || command[0] == "recipe") {
				command = append(command, w)
			}
		}
		for i, w := range words {
			if strings.HasPrefix(w, "@") {
				known[fmt.Sprint(strings.Join(command, " "), " ", words[i-1])] = true
			}
		}
	}
	a := &app{Streams: Streams{Out: io.Discard, Err: io.Discard}, embedded: os.DirFS("../.."), report: progress.New(io.Discard, nil)}
	found := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			what, _ := pflag.UnquoteUsage(f)
			if what != "file" && what != "directory" && what != "path" {
				return
			}
			found++
			name := strings.TrimPrefix(c.CommandPath(), "dot4fa ") + " --" + f.Name
			if !known[name] {
				t.Errorf("%s names a %s: put it into reads or writes, to be tested", name, what)
			}
		})
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(a.root())
	if found < 20 {
		t.Errorf("%d flags found that name a file or directory", found)
	}
}
