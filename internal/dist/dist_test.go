package dist

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"dot4fa/internal/fault"
	"dot4fa/internal/lock"
	"dot4fa/internal/recipe"
)

// tree is a small build: programs prog and plain, libraries libone (needs libtwo)
// and libtwo with a versioned file behind its soname, as CMake lays them out.
type tree struct {
	t        *testing.T
	dir, bin string
}

// The tree is compiled once and copied for each test.
var base, baseErr = os.MkdirTemp("", "dist")

func TestMain(m *testing.M) {
	code := m.Run()
	os.RemoveAll(base)
	os.Exit(code)
}

var compiled sync.Once

func newTree(t *testing.T) *tree {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("not on Linux: no ELF")
	}
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("no cc")
	}
	compiled.Do(func() { compile(t) })
	b := &tree{t: t, dir: t.TempDir()}
	b.bin = filepath.Join(b.dir, "build", "bin")
	if err := os.CopyFS(b.dir, os.DirFS(base)); err != nil {
		t.Fatal(err)
	}
	return b
}

// compile makes the tree. Its rpaths name a directory that does not exist, so
// that only a relative one finds anything.
func compile(t *testing.T) {
	t.Helper()
	if baseErr != nil {
		t.Fatal(baseErr)
	}
	b := &tree{t: t, dir: base, bin: filepath.Join(base, "build", "bin")}
	b.file("LICENSE", "MIT License\n\nCopyright the authors\n")
	b.file("licenses/LICENSE-json", "MIT json\n")
	b.file("vendor/http/LICENSE", "MIT http\n")
	b.file("vendor/http/http.h", "// Copyright of http\n")
	b.file("vendor/image/image.h", "/* an image loader */\nint x; /* public domain */\n// no more\n")
	b.file("vendor/hash/hash.h", "int hash;\n")
	b.file("vendor/hash/sum/LICENSE.md", "BSD sum\n")
	b.file("vendor/hash/sum/deep/a.c", "// Copyright, covered above\n")
	b.cc("int two(void) { return 2; }", "-shared", "-fPIC", "-Wl,-soname,libtwo.so.0", "-o", b.bin+"/libtwo.so.0.1.2")
	for link, to := range map[string]string{"libtwo.so.0": "libtwo.so.0.1.2", "libtwo.so": "libtwo.so.0"} {
		if err := os.Symlink(to, filepath.Join(b.bin, link)); err != nil {
			t.Fatal(err)
		}
	}
	rpath := "-Wl,-rpath,/no/such/build/bin:"
	b.cc("int two(void); int one(void) { return two() - 1; }", "-shared", "-fPIC", "-Wl,-soname,libone.so", "-L"+b.bin, "-ltwo", rpath, "-o", b.bin+"/libone.so")
	b.cc("int one(void); int puts(const char *); int main(void) { puts(\"ran\"); return one() - 1; }", "-L"+b.bin, "-lone", rpath, "-Wl,-rpath-link,"+b.bin, "-o", b.bin+"/prog")
	b.cc("int main(void) { return 0; }", "-o", b.bin+"/plain")
}

func (b *tree) file(name, text string) {
	b.t.Helper()
	name = filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *tree) cc(source string, args ...string) {
	b.t.Helper()
	if err := os.MkdirAll(b.bin, 0o755); err != nil {
		b.t.Fatal(err)
	}
	src := filepath.Join(b.t.TempDir(), "a.c")
	if err := os.WriteFile(src, []byte(source), 0o644); err != nil {
		b.t.Fatal(err)
	}
	if out, err := exec.Command("cc", append([]string{src}, args...)...).CombinedOutput(); err != nil {
		b.t.Fatalf("cc %v: %v\n%s", args, err, out)
	}
}

var testLock = &lock.Lock{
	Tool:   "devel",
	Recipe: lock.Recipe{Name: "cpu", Hash: strings.Repeat("a", 64)},
	Upstream: lock.Upstream{From: "/somewhere", Commit: strings.Repeat("1", 40), Tag: "b1", Tree: strings.Repeat("2", 40),
		Before: strings.Repeat("3", 40), After: strings.Repeat("4", 40)},
	Files:     []lock.Item{{ID: "ggml/src/packed16.h", SHA256: strings.Repeat("b", 64)}},
	Edits:     []lock.Item{{ID: "h.op", SHA256: strings.Repeat("c", 64)}},
	Toolchain: []lock.Tool{{Name: "cmake", Version: "3.30.1"}},
}

func (b *tree) source(programs ...string) Source {
	tool := &debug.BuildInfo{GoVersion: "go1.26.8", Deps: []*debug.Module{{Path: "example.invalid/Mod", Version: "v1.2.3+incompatible", Sum: "h1:abc="}}}
	return Source{
		Made: Made{Lock: testLock, URL: "https://github.com/ggml-org/llama.cpp", Tool: tool, Version: "v0", Tree: b.dir},
		Name: "llama.cpp-b1-cpu", Bin: b.bin, Programs: programs, Backend: recipe.CPU, Own: []byte("ours\n"),
	}
}

func (b *tree) write(s Source) (*Info, error) {
	return Write(filepath.Join(b.t.TempDir(), "x.tar.gz"), s)
}

// unpack returns the archive's directory.
func unpack(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	last := ""
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Name <= last || !h.ModTime.Equal(epoch) || h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Typeflag != tar.TypeReg {
			t.Errorf("entry %+v after %s", h, last)
		}
		last = h.Name
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, h.Name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, data, os.FileMode(h.Mode)); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "llama.cpp-b1-cpu")
}

func TestArchiveRunsElsewhere(t *testing.T) {
	b := newTree(t)
	info, err := b.write(b.source("prog", "plain"))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(info.Bundled, " "); got != "libone.so libtwo.so.0" {
		t.Errorf("bundled %s", got)
	}
	dir := unpack(t, info.Archive)
	if out, err := exec.Command(filepath.Join(b.bin, "prog")).CombinedOutput(); err == nil {
		t.Errorf("prog runs without a relative rpath too, so that the test shows nothing\n%s", out)
	}
	cmd := exec.Command(filepath.Join(dir, "bin", "prog"))
	cmd.Dir = t.TempDir()
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "ran\n" {
		t.Errorf("prog: %v\n%s", err, out)
	}
	for name, want := range map[string]string{"prog": "$ORIGIN", "libone.so": "$ORIGIN", "libtwo.so.0": "", "plain": ""} {
		f, err := elf.Open(filepath.Join(dir, "bin", name))
		if err != nil {
			t.Fatal(err)
		}
		run, _ := f.DynString(elf.DT_RUNPATH)
		old, _ := f.DynString(elf.DT_RPATH)
		if got := strings.Join(append(run, old...), "|"); got != want {
			t.Errorf("%s has rpath %q, want %q", name, got, want)
		}
		f.Close()
	}
	sums, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(sums), "\n"); n != len(info.Files)-1 {
		t.Errorf("SHA256SUMS has %d lines for %d other files", n, len(info.Files)-1)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(sums)), "\n") {
		want, name, _ := strings.Cut(line, "  ")
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if h := sha256.Sum256(data); hex.EncodeToString(h[:]) != want {
			t.Errorf("SHA256SUMS is wrong about %s", name)
		}
	}
	if l, err := lock.Read(filepath.Join(dir, lock.Name)); err != nil || l.Upstream.Commit != testLock.Upstream.Commit {
		t.Errorf("lock: %v", err)
	}
	text, _ := os.ReadFile(filepath.Join(dir, "REQUIRES.txt"))
	if !strings.Contains(string(text), "libc.so.6") || strings.Contains(string(text), "libtwo") {
		t.Errorf("REQUIRES.txt:\n%s", text)
	}
}

func TestLicences(t *testing.T) {
	b := newTree(t)
	info, err := b.write(b.source("prog"))
	if err != nil {
		t.Fatal(err)
	}
	want := "dot4fa/LICENSE llama.cpp/LICENSE llama.cpp/licenses/LICENSE-json vendor/hash/sum/LICENSE.md vendor/http/LICENSE vendor/image/LICENSE-from-sources"
	if got := strings.Join(info.Licences, " "); got != want {
		t.Errorf("licences\n%s\nwant\n%s", got, want)
	}
	dir := unpack(t, info.Archive)
	if text, _ := os.ReadFile(filepath.Join(dir, "licenses/vendor/image/LICENSE-from-sources")); string(text) != "/* public domain */\n" {
		t.Errorf("from sources: %q", text)
	}
	if err := os.Remove(filepath.Join(b.dir, "LICENSE")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.write(b.source("prog")); fault.Code(err) != fault.VerifyFailed || !strings.Contains(err.Error(), "licence is not there") {
		t.Errorf("without a licence: %v", err)
	}
}

func TestSameBytes(t *testing.T) {
	b := newTree(t)
	first, err := b.write(b.source("prog", "plain"))
	if err != nil {
		t.Fatal(err)
	}
	second, err := b.write(b.source("plain", "prog"))
	if err != nil {
		t.Fatal(err)
	}
	if first.SHA256 != second.SHA256 {
		t.Errorf("two archives of one build: %s and %s", first.SHA256, second.SHA256)
	}
}

func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*tree, *Source)
		code    int
		message string
	}{
		"a library nobody brings": {func(b *tree, s *Source) {
			b.cc("int far(void) { return 0; }", "-shared", "-fPIC", "-Wl,-soname,libfar.so.9", "-o", b.bin+"/libfar.so")
			b.cc("int far(void); int main(void) { return far(); }", "-L"+b.bin, "-lfar", "-o", b.bin+"/prog")
		}, fault.VerifyFailed, "neither in the build nor expected from the system: libfar.so.9 (needed by prog)"},
		"ROCm in a build for the CPU": {func(b *tree, s *Source) {
			b.cc("int hip(void) { return 0; }", "-shared", "-fPIC", "-Wl,-soname,libamdhip64.so.6", "-o", b.bin+"/libhip.so")
			b.cc("int hip(void); int main(void) { return hip(); }", "-L"+b.bin, "-lhip", "-o", b.bin+"/prog")
		}, fault.VerifyFailed, "libamdhip64.so.6"},
		"a CPU build for ROCm": {func(_ *tree, s *Source) { s.Backend = recipe.HIP }, fault.VerifyFailed, "the recipe is for hip, and nothing"},
		"no rpath": {func(b *tree, s *Source) {
			b.cc("int one(void); int main(void) { return one(); }", "-L"+b.bin, "-lone", "-Wl,-rpath-link,"+b.bin, "-o", b.bin+"/prog")
		}, fault.VerifyFailed, "rpath cannot be made relative: it has none"},
		"a short rpath": {func(b *tree, s *Source) {
			b.cc("int one(void); int main(void) { return one(); }", "-L"+b.bin, "-lone", "-Wl,-rpath-link,"+b.bin, "-Wl,-rpath,/b", "-o", b.bin+"/prog")
		}, fault.VerifyFailed, "it has /b"},
		"rpath shared with a name": {func(b *tree, s *Source) {
			b.cc("int one(void); int sharedname(void) { return one(); } int main(void) { return sharedname(); }",
				"-L"+b.bin, "-lone", "-rdynamic", "-Wl,-rpath-link,"+b.bin, "-Wl,-rpath,/x/sharedname", "-Wl,-O2", "-o", b.bin+"/prog")
		}, fault.VerifyFailed, "shares its text with a symbol"},
		"an absolute path": {func(b *tree, s *Source) {
			b.cc("int far(void) { return 0; }", "-shared", "-fPIC", "-o", b.dir+"/far.so")
			b.cc("int far(void); int main(void) { return far(); }", b.dir+"/far.so", "-o", b.bin+"/prog")
		}, fault.VerifyFailed, "/far.so (needed by prog)"},
		"a script":         {func(b *tree, s *Source) { b.file("build/bin/prog", "#!/bin/sh\n") }, fault.Environment, "not a program or library in ELF format"},
		"half a program":   {func(b *tree, s *Source) { b.truncate("prog") }, fault.Environment, "not a program or library in ELF format"},
		"no program":       {func(_ *tree, s *Source) { s.Programs = nil }, fault.Usage, "none of the recipe's targets is a program"},
		"not built":        {func(_ *tree, s *Source) { s.Programs = []string{"other"} }, fault.Environment, "cannot read what was built"},
		"named for nought": {func(_ *tree, s *Source) { s.System = []string{"libssl.so.3"} }, fault.Usage, "libssl.so.3: nothing needs it"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTree(t)
			s := b.source("prog")
			c.change(b, &s)
			_, err := b.write(s)
			if err == nil || fault.Code(err) != c.code || !strings.Contains(err.Error(), c.message) {
				t.Fatalf("error %v (code %d), want code %d with %q", err, fault.Code(err), c.code, c.message)
			}
			if fault.Hint(err) == "" {
				t.Errorf("no hint: %v", err)
			}
		})
	}
}

func (b *tree) truncate(program string) {
	if err := os.Truncate(filepath.Join(b.bin, program), 40); err != nil {
		b.t.Fatal(err)
	}
}

// What a recipe for a GPU needs of the GPU's runtime is expected and named.
func TestExpectedFromSystem(t *testing.T) {
	b := newTree(t)
	b.cc("int hip(void) { return 0; }", "-shared", "-fPIC", "-Wl,-soname,libamdhip64.so.6", "-o", b.bin+"/libhip.so")
	b.cc("int far(void) { return 0; }", "-shared", "-fPIC", "-Wl,-soname,libfar.so.9", "-o", b.bin+"/libfar.so")
	b.cc("int hip(void); int far(void); int main(void) { return hip() + far(); }", "-L"+b.bin, "-lhip", "-lfar", "-o", b.bin+"/prog")
	s := b.source("prog")
	s.Backend, s.System = recipe.HIP, []string{"libfar.so.9"}
	info, err := b.write(s)
	if err != nil {
		t.Fatal(err)
	}
	from := map[string]string{}
	for _, n := range info.System {
		from[n.Name] = n.From
	}
	if from["libamdhip64.so.6"] != "ROCm" || from["libc.so.6"] != "the C library" || !strings.Contains(from["libfar.so.9"], "--system") || len(from) != 3 {
		t.Errorf("from the system: %v", from)
	}
	if !slices.ContainsFunc(info.Versions, func(v string) bool { return strings.HasPrefix(v, "GLIBC_") }) {
		t.Errorf("versions %v", info.Versions)
	}
}

// Backends that are loaded while running are needed by nobody, and still go in.
func TestModules(t *testing.T) {
	b := newTree(t)
	b.cc("int two(void); int backend(void) { return two(); }", "-shared", "-fPIC", "-L"+b.bin, "-ltwo", "-Wl,-rpath,"+b.bin, "-o", b.bin+"/libggml-cpu.so")
	s := b.source("plain")
	s.Modules = true
	info, err := b.write(s)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(info.Bundled, " "); got != "libggml-cpu.so libtwo.so.0" {
		t.Errorf("bundled %s", got)
	}
}

func TestSBOM(t *testing.T) {
	b := newTree(t)
	info, err := b.write(b.source("prog"))
	if err != nil {
		t.Fatal(err)
	}
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(info.SBOM), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	byRef := map[string]cdx.Component{}
	for _, c := range *bom.Components {
		if _, twice := byRef[c.BOMRef]; twice {
			t.Errorf("bom-ref %s twice", c.BOMRef)
		}
		byRef[c.BOMRef] = c
	}
	up := byRef["llama.cpp"]
	if up.PackageURL != "pkg:github/ggml-org/llama.cpp@"+testLock.Upstream.Commit || (*up.Pedigree.Commits)[0].UID != testLock.Upstream.Commit {
		t.Errorf("llama.cpp: %+v", up)
	}
	for _, ref := range []string{"file:ggml/src/packed16.h", "bin:prog", "bin:libone.so", "bin:libtwo.so.0", "vendor:http", "vendor:image", "vendor:hash/sum"} {
		if byRef[ref].Name == "" {
			t.Errorf("no %s", ref)
		}
	}
	if h := (*byRef["file:ggml/src/packed16.h"].Hashes)[0]; h.Algorithm != cdx.HashAlgoSHA256 || h.Value != strings.Repeat("b", 64) {
		t.Errorf("hash %+v", h)
	}
	for _, f := range info.Files {
		if ref, ok := strings.CutPrefix(f.Path, "bin/"); ok && (*byRef["bin:"+ref].Hashes)[0].Value != f.SHA256 {
			t.Errorf("the SBOM has another hash for %s than the archive", f.Path)
		}
	}
	tool := (*bom.Metadata.Tools.Components)[0]
	if tool.Name != "dot4fa" || (*tool.Components)[0].PackageURL != "pkg:golang/example.invalid/mod@v1.2.3%2Bincompatible" {
		t.Errorf("tool %+v", tool)
	}
	var raw map[string]any
	if err := json.Unmarshal(info.SBOM, &raw); err != nil || raw["bomFormat"] != "CycloneDX" || raw["specVersion"] != "1.6" {
		t.Errorf("%v %v %v", err, raw["bomFormat"], raw["specVersion"])
	}
	again, err := SBOM(b.source("prog").Made)
	if err != nil {
		t.Fatal(err)
	}
	once, err := SBOM(b.source("prog").Made)
	if err != nil || !bytes.Equal(again, once) {
		t.Errorf("two SBOMs of the same differ: %v", err)
	}
	if bytes.Contains(again, []byte("bin:prog")) || !bytes.Contains(again, []byte("vendor:http")) {
		t.Errorf("the SBOM of the sources:\n%s", again)
	}
}

func TestOlder(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"GLIBC_2.4", "GLIBC_2.34", true}, {"GLIBC_2.34", "GLIBC_2.4", false}, {"GLIBC_2.2.5", "GLIBC_2.2", false},
		{"GLIBC_2.2", "GLIBC_2.2.5", true}, {"GLIBCXX_3.4.9", "GLIBCXX_3.4.30", true}, {"GLIBC_2.34", "GLIBC_2.34", false},
	} {
		if got := older(c.a, c.b); got != c.want {
			t.Errorf("older(%s, %s) = %v", c.a, c.b, got)
		}
	}
}

// TestArchiveSaysWhatIsMissing: no licence of our own, and a build for one CPU, are said in the archive.
func TestArchiveSaysWhatIsMissing(t *testing.T) {
	b := newTree(t)
	s := b.source("plain")
	s.Own, s.Native = nil, true
	info, err := b.write(s)
	if err != nil {
		t.Fatal(err)
	}
	if !info.NoOwn || !info.Native {
		t.Errorf("no licence %v, native %v", info.NoOwn, info.Native)
	}
	dir := unpack(t, info.Archive)
	for name, want := range map[string]string{"licenses/dot4fa/NO-LICENSE.txt": "has no LICENSE file", "REQUIRES.txt": "GGML_NATIVE"} {
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil || !strings.Contains(string(data), want) {
			t.Errorf("%s: %v\n%s", name, err, data)
		}
	}
	if info, err = b.write(b.source("plain")); err != nil || info.NoOwn || info.Native {
		t.Errorf("with a licence and for any CPU: %v, no licence %v, native %v", err, info.NoOwn, info.Native)
	}
	data, err := os.ReadFile(filepath.Join(unpack(t, info.Archive), "licenses", "dot4fa", "LICENSE"))
	if err != nil || string(data) != "ours\n" {
		t.Errorf("%v %q", err, data)
	}
}
