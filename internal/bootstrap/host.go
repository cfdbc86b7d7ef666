package bootstrap

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"

	"dot4fa/internal/fault"
	"dot4fa/internal/input"
	"dot4fa/internal/machine"
	"dot4fa/internal/shell"
	"dot4fa/internal/toolchain"
)

// host is what a prefix takes from the machine it is made on.
type host struct {
	clang   string // clang++, absolute
	version string
	major   int
	cmake   string
	ninja   string
}

// minClang is the first clang that reads bitcode of any suite.
const minClang = 17

var reClang = regexp.MustCompile(`clang version ((\d+)\.\d+\.\d+)`)

// findHost looks for the programs, and stops at what would fail later, some of
// it in silence. clang chooses the compiler, which otherwise is the newest.
func findHost(ctx context.Context, clang string) (*host, error) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return nil, fault.New(fault.Environment, "a prefix can be made on x86-64 Linux only, not on %s/%s", runtime.GOOS, runtime.GOARCH).
			Hintf("use a container with ROCm: dot4fa build --container IMAGE")
	}
	for _, name := range []string{"apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(name); err != nil {
			return nil, fault.New(fault.Environment, "no %s on PATH", name).
				Hintf("a prefix is made from Debian's packages: run it on Debian or Ubuntu, in a container too; or use one with ROCm: dot4fa build --container IMAGE")
		}
	}
	h, err := findClang(ctx, clang)
	if err != nil {
		return nil, err
	}
	// Without the bundler CMake says "The HIP compiler identification is
	// unknown" and goes on without -O3, -fPIC and -x hip.
	for _, need := range []struct{ name, pkg, why string }{
		{"clang-offload-bundler", "clang-tools-%d", "without it CMake takes clang for an unknown compiler and drops its flags"},
		{"ld.lld", "lld-%d", "it links device code"},
	} {
		if !h.beside(need.name) {
			pkg := fmt.Sprintf(need.pkg, h.major)
			return nil, fault.New(fault.Environment, "%s of clang %s is missing: %s", need.name, h.version, need.why).At("%s", h.clang).
				Hintf("apt-get install %s", pkg)
		}
	}
	if out, err := (shell.Command{Path: h.clang, Args: []string{"-print-libgcc-file-name", "--rtlib=compiler-rt"}}).Output(ctx); err == nil {
		if lib := strings.TrimSpace(string(out)); filepath.IsAbs(lib) {
			if _, err := os.Stat(lib); err != nil {
				return nil, fault.New(fault.Environment, "the run-time library of clang %s is missing: HIP's CMake package links it", h.version).At("%s", lib).
					Hintf("apt-get install libclang-rt-%d-dev", h.major)
			}
		}
	}
	tools := toolchain.Find(ctx, machine.Host())
	if !tools.CMake.Found() || toolchain.Version(tools.CMake.Version).Less(toolchain.MinCMake) {
		return nil, fault.New(fault.Environment, "no CMake %s or newer on PATH", toolchain.MinCMake).Hintf("apt-get install cmake")
	}
	if !tools.Ninja.Found() {
		return nil, fault.New(fault.Environment, "no ninja on PATH").Hintf("apt-get install ninja-build")
	}
	h.cmake, h.ninja = tools.CMake.Path, tools.Ninja.Path
	return h, nil
}

func findClang(ctx context.Context, named string) (*host, error) {
	var names []string
	if named != "" {
		path, err := input.Program(named, "--clang takes the path or the name of a clang++")
		if err != nil {
			return nil, err
		}
		names = []string{path}
	} else {
		for _, c := range toolchain.Clangs(ctx, machine.Host(), 0) { // one that is too old is said to be
			names = append(names, c.Path)
		}
	}
	var last error
	for _, name := range names {
		path, err := filepath.Abs(name)
		if err != nil {
			return nil, fault.Here(err)
		}
		h, err := probe(ctx, path)
		if err == nil {
			return h, nil
		}
		last = err
	}
	if last != nil {
		return nil, last
	}
	return nil, fault.New(fault.Environment, "no clang++ %d or newer on PATH", minClang).
		Hintf("apt-get install clang-19 clang-tools-19 lld-19 libclang-rt-19-dev, or name a clang++ with --clang")
}

func probe(ctx context.Context, path string) (*host, error) {
	out, err := shell.Command{Path: path, Args: []string{"--version"}}.Output(ctx)
	m := reClang.FindSubmatch(out)
	if err != nil || m == nil {
		return nil, fault.New(fault.Environment, "not a clang").At("%s", path).Hintf("name a clang++ with --clang")
	}
	h := &host{clang: path, version: string(m[1])}
	h.major, _ = strconv.Atoi(string(m[2]))
	if h.major < minClang {
		return nil, fault.New(fault.Environment, "clang %s reads no bitcode that Debian has: %d or newer is needed", h.version, minClang).At("%s", path).
			Hintf("apt-get install clang-19 clang-tools-19 lld-19 libclang-rt-19-dev, or name a clang++ with --clang")
	}
	if targets, err := (shell.Command{Path: path, Args: []string{"--print-targets"}}).Output(ctx); err != nil || !strings.Contains(string(targets), "amdgcn") {
		return nil, fault.New(fault.Environment, "clang %s has no amdgcn target", h.version).At("%s", path).Hintf("name another clang++ with --clang; Debian's have it")
	}
	return h, nil
}

// beside reports whether clang will find a program: beside its real file, beside
// the name it is called by, or on PATH.
func (h *host) beside(name string) bool {
	dirs := []string{filepath.Dir(h.clang)}
	if real, err := filepath.EvalSymlinks(h.clang); err == nil {
		dirs = append(dirs, filepath.Dir(real))
	}
	for _, dir := range dirs {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode()&0o111 != 0 {
			return true
		}
	}
	_, err := exec.LookPath(name)
	return err == nil
}
