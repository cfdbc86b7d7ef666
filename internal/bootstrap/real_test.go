package bootstrap_test

import (
	"bytes"
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"dot4fa/internal/apt"
	"dot4fa/internal/bootstrap"
	"dot4fa/internal/fixture"
	"dot4fa/internal/progress"
	"dot4fa/internal/recipe"
	"dot4fa/internal/render"
	"dot4fa/internal/series"
	"dot4fa/internal/standin"
	"dot4fa/internal/toolchain"
)

// clang is the compiler of the tests: Debian's, which .ci/run installs.
const clang = "clang++-19"

// prefix returns a compile-only prefix: the one that $DOT4FA_ROCM names, else
// one made here from Debian's packages and kept in the user's cache. The test
// is skipped where there is no way to make one, and fails where making one fails.
func prefix(t *testing.T) (root, compiler string) {
	t.Helper()
	if root, err := bootstrap.Root(); err != nil {
		t.Fatal(err)
	} else if root != "" {
		r, err := bootstrap.ReadRecord(root)
		if err != nil || r == nil {
			t.Fatalf("$%s is no prefix of dot4fa: %v", bootstrap.Env, err)
		}
		return root, r.Compiler
	}
	for _, tool := range []string{"apt-get", "dpkg-deb", "cmake", "ninja", clang} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s on PATH to make a HIP prefix with", tool)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skipf("no cache directory for a HIP prefix: %v", err)
	}
	dir := filepath.Join(cache, "dot4fa-test", "rocm")
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		t.Skipf("no cache directory for a HIP prefix: %v", err)
	}
	start := time.Now()
	// The archive's index may be past its date on a day that is not ours to choose.
	r, err := bootstrap.Make(t.Context(), bootstrap.Options{Dir: dir, Clang: clang, AllowStale: true, Report: progress.New(os.Stderr, nil)})
	if errors.Is(err, apt.ErrUnreachable) {
		t.Skipf("no HIP prefix without a network: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if r.Done {
		t.Logf("bootstrapped in %.0fs: %.1f MB downloaded, %.1f MB on disk, HIP %s", time.Since(start).Seconds(),
			float64(r.Record.Download)/1e6, float64(r.Record.Disk)/1e6, r.Record.HIP)
	}
	return dir, r.Record.Compiler
}

// TestRealPrefix looks at a prefix made from Debian's packages.
func TestRealPrefix(t *testing.T) {
	root, _ := prefix(t)
	r, err := bootstrap.ReadRecord(root)
	if err != nil {
		t.Fatal(err)
	}
	if v := toolchain.Version(r.HIP); v.Less(toolchain.MinHIP) {
		t.Errorf("HIP %s is older than %s", v, toolchain.MinHIP)
	}
	if r.Kind != "compile-only" || !slices.Contains(r.Targets, "gfx1100") || len(r.Verified) == 0 {
		t.Errorf("the record: %+v", r)
	}
	for _, p := range r.Files {
		if p.Version == "" || len(p.SHA256) != 64 || p.Size == 0 || r.Packages[p.Name] != p.Version {
			t.Errorf("recorded: %+v", p)
		}
	}
	// Import libraries: the real sonames and symbols, no needs.
	for _, name := range []string{"libamdhip64.so", "libhipblas.so", "librocblas.so"} {
		f, err := elf.Open(filepath.Join(root, "lib", name))
		if err != nil {
			t.Fatal(err)
		}
		soname, err := f.DynString(elf.DT_SONAME)
		if err != nil || len(soname) != 1 || !slices.Contains(r.Stubs, soname[0]) {
			t.Errorf("%s: soname %v (%v), recorded %v", name, soname, err, r.Stubs)
		}
		if needed, _ := f.ImportedLibraries(); len(needed) > 0 {
			t.Errorf("%s needs %v", name, needed)
		}
		f.Close()
	}
	// No path of the machine that made it.
	if data, err := os.ReadFile(filepath.Join(root, "lib", "cmake", "hip-lang", "hip-lang-config.cmake")); err != nil || bytes.Contains(data, []byte(root)) {
		t.Errorf("the forwarder: %v\n%s", err, data)
	}
}

// TestUnitsCompileAndLink compiles every device unit of the rdna3 recipe with
// HIP's real headers for gfx1100, host side and device side, without a warning,
// and links them into a library with nothing left undefined.
func TestUnitsCompileAndLink(t *testing.T) {
	root, compiler := prefix(t)
	dir := t.TempDir()
	units := layUnits(t, dir)
	flags := []string{"-I" + filepath.Join(dir, "glue"), "-I" + filepath.Join(dir, "standin"),
		"-I" + filepath.Join(dir, "ggml", "include"), "-I" + filepath.Join(dir, "ggml", "src"), "-I" + filepath.Join(dir, "ggml", "src", "ggml-cuda"),
		"-O1", "-fPIC", "-Wall", "-Werror", "-Wno-unused-function", "-DGGML_USE_HIP", "-D__HIP_PLATFORM_AMD__"}
	g, ctx := errgroup.WithContext(t.Context())
	g.SetLimit(runtime.GOMAXPROCS(0))
	var objects []string
	for _, unit := range units {
		object := filepath.Join(dir, path.Base(unit)+".o")
		objects = append(objects, object)
		args := append([]string{"-c", unit, "-o", object}, flags...)
		if path.Ext(unit) == ".c" {
			args = append([]string{"-x", "c"}, args...)
		} else {
			args = append([]string{"-x", "hip", "-std=gnu++17", "--offload-arch=gfx1100"}, append(args, bootstrap.Flags(root)...)...)
		}
		g.Go(func() error {
			if out, err := exec.CommandContext(ctx, compiler, args...).CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", filepath.Base(unit), err, out)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil || t.Failed() {
		t.FailNow()
	}
	lib := filepath.Join(dir, "libunits.so")
	link := append(objects, "-shared", "-Wl,-z,defs", "-o", lib, "--hip-link", "--offload-arch=gfx1100", "-L"+filepath.Join(root, "lib"), "-lamdhip64", "-lm")
	if out, err := exec.Command(compiler, append(link, bootstrap.Flags(root)...)...).CombinedOutput(); err != nil {
		t.Fatalf("linking: %v\n%s", err, out)
	}
	f, err := elf.Open(lib)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ggml_cuda_packed16_flash_attn_ext", "ggml_cuda_op_pack_k_packed16"} {
		if !slices.ContainsFunc(symbols, func(s elf.Symbol) bool { return strings.Contains(s.Name, want) && s.Section != elf.SHN_UNDEF }) {
			t.Errorf("the library has no %s", want)
		}
	}
	if s := f.Section(".hip_fatbin"); s == nil || s.Size < 100_000 {
		t.Errorf("the library holds no code for the GPU: %+v", s)
	}
}

// layUnits writes the patched test tree and the rdna3 recipe's device code into
// dir, and returns the units to compile.
func layUnits(t *testing.T, dir string) []string {
	t.Helper()
	assets := os.DirFS(fixture.Root(t))
	r, err := recipe.Load(assets, "rdna3")
	if err != nil {
		t.Fatal(err)
	}
	tree := fixture.Files(t)
	edits, err := series.Load(assets)
	if err != nil {
		t.Fatal(err)
	}
	edits.Hooks.Contains = func(string) (bool, error) { return true, nil }
	plan, err := edits.Plan(tree.Read, r)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range plan.Files {
		tree[f.Path] = string(f.Post)
	}
	files, err := render.Render(r, assets)
	if err != nil {
		t.Fatal(err)
	}
	var units []string
	for _, f := range files {
		tree[f.Path] = string(f.Data)
		if path.Base(path.Dir(f.Path)) == "ggml-cuda" && path.Ext(f.Path) == ".cu" {
			units = append(units, filepath.Join(dir, filepath.FromSlash(f.Path)))
		}
	}
	if len(units) == 0 {
		t.Fatal("the recipe renders no device unit")
	}
	tree.Write(t, dir)
	if err := standin.Write(filepath.Join(dir, "standin")); err != nil {
		t.Fatal(err)
	}
	// The stand-in's own HIP is not what is tested here.
	if err := os.RemoveAll(filepath.Join(dir, "standin", standin.Hip)); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, "glue"), os.DirFS(filepath.Join("testdata", "glue"))); err != nil {
		t.Fatal(err)
	}
	return append(units, filepath.Join(dir, "glue", "backend.cpp"), filepath.Join(dir, "ggml", "src", "ggml.c"),
		filepath.Join(dir, "ggml", "src", "ggml-quants.c"))
}
