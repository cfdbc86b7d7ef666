package bootstrap

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"dot4fa/internal/apt"
	"dot4fa/internal/fault"
	"dot4fa/internal/toolchain"
)

// Env names a prefix, or any other ROCm, for everything that compiles device
// code: it is the default of build's --toolchain and where check --compile and
// the tests have HIP's headers from.
const Env = toolchain.Named

// Root returns the directory that $DOT4FA_ROCM names, to be given to clang as
// --rocm-path; it is empty when the variable is not set.
func Root() (string, error) {
	dir := os.Getenv(Env)
	if dir == "" {
		return "", nil
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fault.Here(err)
	}
	if _, err := os.Stat(filepath.Join(abs, "include", "hip", "hip_runtime.h")); err != nil {
		return "", fault.New(fault.Environment, "$%s names no ROCm: it has no include/hip/hip_runtime.h", Env).At("%s", dir).
			Hintf("make one with dot4fa toolchain bootstrap %s, or unset the variable", dir)
	}
	return abs, nil
}

// Flags tell clang where everything of the prefix at root is.
func Flags(root string) []string {
	return toolchain.ROCm{Root: root, DeviceLibs: filepath.Join(root, deviceLibs)}.Flags()
}

// deviceLibs is the directory of the bitcode in a root, where clang looks too.
const deviceLibs = "amdgcn/bitcode"

// Record says what a prefix was made from. It lies in the prefix as
// toolchain.PrefixFile, whose fields come first.
type Record struct {
	toolchain.Prefix
	Kind      string        `json:"kind"` // always compile-only
	HIP       string        `json:"hip"`  // version
	Clang     string        `json:"clang"`
	Made      time.Time     `json:"made"`
	Suites    []string      `json:"suites"`
	Unchecked bool          `json:"valid_until_unchecked,omitempty"` // --allow-stale
	Files     []apt.Package `json:"files"`
	Stubs     []string      `json:"stubs"`    // import libraries, by soname
	Verified  []string      `json:"verified"` // what was tried with it
	Download  int64         `json:"download_bytes"`
	Disk      int64         `json:"disk_bytes"`
	Targets   []string      `json:"targets"` // GPUs that the bitcode knows
}

const compileOnly = "compile-only"

// ReadRecord reads the record of the prefix in dir; it is nil when dir is none.
func ReadRecord(dir string) (*Record, error) {
	name := filepath.Join(dir, toolchain.PrefixFile)
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Read(err, name)
	}
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fault.New(fault.Environment, "the record of the prefix is damaged: %w", err).At("%s", name).
			Hintf("remove %s and bootstrap it again", dir)
	}
	return &r, nil
}

func (r *Record) write(dir string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	name := filepath.Join(dir, toolchain.PrefixFile)
	if err := os.WriteFile(name, append(data, '\n'), 0o644); err != nil {
		return fault.Write(err, name)
	}
	return nil
}

// PackageBytes is the size of the packages that the prefix was made of.
func (r *Record) PackageBytes() (n int64) {
	for _, p := range r.Files {
		n += p.Size
	}
	return n
}
