package standin

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"dot4fa/internal/recipe"
	"dot4fa/internal/render"
)

// WriteKernels renders r's device code from assets into dir, all files side by
// side, and returns their names in order.
func WriteKernels(dir string, r *recipe.Recipe, assets fs.FS) ([]string, error) {
	files, err := render.Render(r, assets)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var names []string
	for _, f := range files {
		if path.Base(path.Dir(f.Path)) != "ggml-cuda" {
			continue
		}
		name := path.Base(f.Path)
		if err := os.WriteFile(filepath.Join(dir, name), f.Data, 0o644); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}
