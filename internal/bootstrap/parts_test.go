package bootstrap

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dot4fa/internal/toolchain"
)

func TestStubsFromCMakePackages(t *testing.T) {
	r := &root{dir: t.TempDir(), lib: "lib"}
	dir := filepath.Join(r.dir, "lib", "cmake", "x")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	text := "  IMPORTED_LOCATION_RELEASE \"${_IMPORT_PREFIX}/lib/librocblas.so.4.4\"\n  IMPORTED_SONAME_RELEASE \"librocblas.so.4\"\n" +
		"  IMPORTED_LOCATION_NONE \"${_IMPORT_PREFIX}/lib/libplain.so\"\n  IMPORTED_LOCATION_NONE \"${_IMPORT_PREFIX}/../../evil.so\"\n" +
		"  IMPORTED_LOCATION_NONE \"${_IMPORT_PREFIX}/lib/libstatic.a\"\n"
	if err := os.WriteFile(filepath.Join(dir, "x-targets-release.cmake"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	list, err := r.stubs()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range list {
		rel, _ := filepath.Rel(r.dir, s.Path)
		got = append(got, rel+" "+s.Soname)
	}
	slices.Sort(got)
	if want := []string{"lib/libplain.so libplain.so", "lib/librocblas.so.4.4 librocblas.so.4"}; !slices.Equal(got, want) {
		t.Errorf("stubs %q, want %q", got, want)
	}
}

func TestByCloseness(t *testing.T) {
	found := map[string]string{"17": "", "21": "", "19": "", "22": ""}
	for major, want := range map[int]string{19: "19 17 21 22", 20: "19 17 21 22", 21: "21 19 17 22", 17: "17 19 21 22", 23: "22 21 19 17"} {
		if got := strings.Join(byCloseness(found, major), " "); got != want {
			t.Errorf("for clang %d: %s, want %s", major, got, want)
		}
	}
}

func TestHIPVersion(t *testing.T) {
	r := &root{dir: t.TempDir()}
	if v := r.hip(); v != "" {
		t.Errorf("without a file: %q", v)
	}
	if err := os.MkdirAll(filepath.Join(r.dir, "share", "hip"), 0o755); err != nil {
		t.Fatal(err)
	}
	text := "# generated\nHIP_PACKAGING_VERSION_PATCH=0\nHIP_VERSION_MAJOR=6\nHIP_VERSION_MINOR=4\nHIP_VERSION_PATCH=43484\n"
	if err := os.WriteFile(filepath.Join(r.dir, "share", "hip", "version"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if v := r.hip(); v != "6.4.43484" || v.Less(toolchain.MinHIP) {
		t.Errorf("version %q", v)
	}
}
