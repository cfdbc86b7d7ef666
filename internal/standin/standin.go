// Package standin carries the C++ headers that stand in for what a machine
// lacks: the part of ggml-cuda's common.cuh the kernels use, a small HIP header
// for device-only compilation without ROCm, and a header that runs a block on the CPU.
package standin

import (
	"embed"
	"io/fs"
	"os"
	"path/filepath"
)

//go:embed include
var files embed.FS

// The include directories below the root written by Write.
const (
	Ggml = "ggml" // common.cuh
	Hip  = "hip"  // <hip/hip_runtime.h>, <hip/hip_fp16.h>
	Host = "host" // hostrun.h: blocks as fibers on the CPU
)

// FS returns the headers, rooted so that its top-level directories are Ggml, Hip and Host.
func FS() fs.FS {
	sub, err := fs.Sub(files, "include")
	if err != nil {
		panic(err) // the embedded directory is part of this package
	}
	return sub
}

// Write puts all headers below dir.
func Write(dir string) error {
	return fs.WalkDir(FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dir, filepath.FromSlash(path))
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		data, err := fs.ReadFile(FS(), path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, data, 0o644)
	})
}
