package build

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dot4fa/internal/fault"
	"dot4fa/internal/recipe"
	"dot4fa/internal/shell"
	"dot4fa/internal/toolchain"
)

func TestJobs(t *testing.T) {
	for _, c := range []struct {
		cores, free, perJob, asked int
		want                       int
		why                        string
	}{
		{8, 64000, 1200, 0, 8, "bound by 8 cores"},
		{16, 8000, 2500, 0, 3, "bound by memory"},
		{4, 500, 1200, 0, 1, "bound by memory"},
		{2, -1, 1200, 0, 2, "free memory is not known"},
		{2, 100, 1200, 7, 7, "as asked"},
		{1, 64000, 1200, 0, 1, "bound by 1 core;"},
	} {
		got := chooseJobs(c.cores, c.free, c.perJob, c.asked)
		if got.N != c.want || !strings.Contains(got.Why, c.why) {
			t.Errorf("%d cores, %d MiB free, asked %d: %v, want %d (%s)", c.cores, c.free, c.asked, got, c.want, c.why)
		}
	}
}

func TestCgroupRoom(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("memory.max", "max\n")
	if n := cgroupRoom(dir); n != -1 {
		t.Errorf("no limit gives %d MiB, want -1", n)
	}
	put("memory.max", "4294967296\n")
	put("memory.current", "3221225472\n")
	put("memory.stat", "anon 1\ninactive_file 1073741824\n")
	if n := cgroupRoom(dir); n != 2048 {
		t.Errorf("4 GiB less 3 GiB of which 1 is droppable gives %d MiB, want 2048", n)
	}
}

func TestWatcherReadsNinja(t *testing.T) {
	var steps []string
	w := &watcher{step: func(n, total int, what string) { steps = append(steps, what) }}
	out := "[1/3] Building CXX object ggml/src/CMakeFiles/ggml-base.dir/ggml.cpp.o\n" +
		"[2/3] Building C object common/CMakeFiles/common.dir/x.c.o\n" +
		"FAILED: common/CMakeFiles/common.dir/x.c.o \n" +
		"/usr/bin/cc -Werror=foo error: x.c\n" +
		"x.c:1:2: error: no such thing\n" +
		"[3/3] Linking CXX executable bin/a\n" +
		"later: error: of another step\n"
	for _, part := range strings.SplitAfter(out, "o") { // in pieces, as a pipe gives it
		w.Write([]byte(part))
	}
	if got := strings.Join(steps, "|"); got != "CXX ggml/src/ggml.cpp|C common/x.c|Linking CXX executable bin/a" {
		t.Errorf("steps: %s", got)
	}
	if w.units != 2 || w.linked != 1 {
		t.Errorf("%d object files, %d linked, want 2 and 1", w.units, w.linked)
	}
	if got := firstErrors(w.failure, 8); len(got) != 1 || got[0] != "x.c:1:2: error: no such thing" {
		t.Errorf("first errors: %q", got)
	}
}

func TestWarnings(t *testing.T) {
	tree := TreeOf(t.TempDir())
	out := tree.Source + "/a/b.cu:7:1: warning: unused\n" + tree.Source + "/a/x/../b.cu:8:1: warning: unused\n" +
		"/usr/include/x.h:3: warning: old\n\x1b[1m/usr/include/y.h:3:4: \x1b[0m\x1b[0;1;35mwarning: \x1b[0mold\n" +
		"80 warnings generated when compiling for gfx1100.\nnote: a.cu:1:1: warning: quoted\n"
	done, err := tree.Compile(context.Background(), shell.Command{Path: "/bin/echo", Args: []string{"-n", out}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"a/b.cu": 2, "/usr/include/x.h": 1, "/usr/include/y.h": 1}
	if !maps.Equal(done.Warnings, want) {
		t.Errorf("warnings %v, want %v", done.Warnings, want)
	}
}

func TestNothingToDo(t *testing.T) {
	for out, want := range map[string]bool{
		"ninja: no work to do.":                            true,
		"[1/8] Provisioning UI assets":                     true,
		"[1/2] Building C object a/CMakeFiles/a.dir/a.c.o": false,
		"[2/2] Linking CXX executable bin/a":               false,
	} {
		done, err := TreeOf(t.TempDir()).Compile(context.Background(), shell.Command{Path: "/bin/echo", Args: []string{out}}, nil)
		if err != nil || done.Nothing() != want {
			t.Errorf("%q: nothing to do is %v (%v), want %v", out, done.Nothing(), err, want)
		}
	}
}

func TestCMakeErrors(t *testing.T) {
	got := cmakeErrors("-- fine\nCMake Error at CMakeLists.txt:3 (find_package):\n  Could not find hip\n\nmore\n-- Configuring incomplete, errors occurred!\n")
	if len(got) != 2 || !strings.Contains(got[1], "Could not find hip") {
		t.Errorf("the error block: %q", got)
	}
}

func TestConfigureCommand(t *testing.T) {
	r := &recipe.Recipe{Backend: recipe.HIP, Upstream: recipe.Upstream{Commit: strings.Repeat("ab", 20), Tag: "b10573"},
		CMake: map[string]string{"GGML_HIP": "ON", "GPU_TARGETS": "gfx1100;gfx1101"}}
	tools := toolchain.Set{
		CMake: toolchain.Tool{Path: "/usr/bin/cmake"}, Launcher: toolchain.Tool{Path: "/usr/bin/ccache"},
		ROCm: toolchain.ROCm{Root: "/opt/rocm", Clang: toolchain.Tool{Path: "/opt/rocm/llvm/bin/clang++"}, DeviceLibs: "/opt/rocm/amdgcn/bitcode"},
	}
	got := TreeOf("/w s/ü").ConfigureCommand(r, tools).String()
	for _, want := range []string{
		"HIPCXX=/opt/rocm/llvm/bin/clang++ HIP_CLANG_PATH=/opt/rocm/llvm/bin HIP_DEVICE_LIB_PATH=/opt/rocm/amdgcn/bitcode HIP_PATH=/opt/rocm HIP_PLATFORM=amd ROCM_PATH=/opt/rocm /usr/bin/cmake -S '/w s/ü' -B '/w s/ü/build' -G Ninja ",
		"-DCMAKE_HIP_COMPILER_LAUNCHER=/usr/bin/ccache",
		"-DLLAMA_BUILD_NUMBER=10573", "-DLLAMA_BUILD_COMMIT=ababababa-dot4fa", "'-DGPU_TARGETS=gfx1100;gfx1101'",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the command lacks %s:\n%s", want, got)
		}
	}
}

func TestFailureShowsErrorsAndLog(t *testing.T) {
	tree := TreeOf(t.TempDir())
	_, err := tree.Compile(context.Background(), shell.Command{Path: "/bin/sh", Args: []string{"-c",
		"echo '[1/9] Building CXX object a/CMakeFiles/a.dir/a.cpp.o'; echo FAILED: a; echo c++ a.cpp; echo 'a.cpp:7:1: error: bad'; exit 1"}}, nil)
	if fault.Code(err) != fault.BuildFailed || !strings.Contains(err.Error(), "a.cpp:7:1: error: bad") || strings.Contains(err.Error(), "c++ a.cpp") {
		t.Fatalf("a failing compiler is reported as: %v", err)
	}
	log := strings.TrimPrefix(fault.Hint(err), "the full log is ")
	data, rerr := os.ReadFile(log)
	if rerr != nil || !strings.HasPrefix(string(data), "$ /bin/sh -c ") || !strings.Contains(string(data), "FAILED: a") {
		t.Errorf("log %s: %v\n%s", log, rerr, data)
	}
}

func TestInterruptEndsChildren(t *testing.T) {
	dir := t.TempDir()
	tree := TreeOf(dir)
	ctx, cancel := context.WithCancel(context.Background())
	mark := filepath.Join(dir, "survived")
	go func() {
		time.Sleep(300 * time.Millisecond)
		cancel()
	}()
	start := time.Now()
	_, err := tree.Compile(ctx, shell.Command{Path: "/bin/sh", Args: []string{"-c",
		"(trap '' INT; sleep 2; touch " + shell.Quote(mark) + ") & wait"}}, nil)
	if fault.Code(err) != fault.Interrupted || !strings.Contains(fault.Hint(err), "goes on where this one stopped") {
		t.Errorf("interrupted build reported as %v", err)
	}
	if time.Since(start) > 9*time.Second {
		t.Errorf("it took %v to stop", time.Since(start))
	}
	time.Sleep(2500 * time.Millisecond)
	if _, err := os.Stat(mark); err == nil {
		t.Error("a grandchild went on working after the interrupt")
	}
}
