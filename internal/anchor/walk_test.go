package anchor

import (
	"io/fs"
	"os"
	"path/filepath"
)

// walkSources calls fn for every C, C++ and CUDA file under dir.
func walkSources(root, dir string, fn func(name string, data []byte)) error {
	return filepath.WalkDir(filepath.Join(root, dir), func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		switch filepath.Ext(p) {
		case ".c", ".h", ".cpp", ".hpp", ".cu", ".cuh":
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			fn(p, data)
		}
		return nil
	})
}
