package release

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"dot4fa/internal/fault"
	"dot4fa/internal/input"
)

// Write puts the release into dir, which is made or must be empty, or hold an
// earlier export that nobody has changed. It appears under its name when it is
// complete.
func (r *Release) Write(dir string) error {
	files, err := r.files()
	if err != nil {
		return err
	}
	dir = filepath.Clean(dir)
	old, err := replaceable(dir)
	if err != nil {
		return err
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return environment(err, parent)
	}
	temp, err := os.MkdirTemp(parent, ".dot4fa-export-*")
	if err != nil {
		return environment(err, parent)
	}
	defer os.RemoveAll(temp)
	fresh := filepath.Join(temp, "new")
	if err := os.Mkdir(fresh, 0o777); err != nil {
		return environment(err, temp)
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(fresh, name), data, 0o666); err != nil {
			return environment(err, fresh)
		}
	}
	if old {
		away := filepath.Join(temp, "old")
		if err := os.Rename(dir, away); err != nil {
			return environment(err, dir)
		}
		if err := os.Rename(fresh, dir); err != nil {
			return environment(errors.Join(err, os.Rename(away, dir)), dir)
		}
		return nil
	}
	return environment(os.Rename(fresh, dir), dir)
}

// replaceable reports whether dir is there and may be replaced; it is an error
// when it may not.
func replaceable(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case errors.Is(err, fs.ErrPermission):
		return false, environment(err, dir)
	case err != nil:
		return false, fault.New(fault.Usage, "the output is not a directory").At("%s", dir).Hintf("name another with --out")
	case len(entries) == 0:
		return true, nil
	}
	mine := map[string]string{}
	if data, err := input.Read(filepath.Join(dir, InfoFile), ""); err == nil {
		var info Info
		if json.Unmarshal(data, &info) == nil && info.Format == format {
			mine[InfoFile] = sum(data)
			for _, p := range info.Patches {
				mine[p.File] = p.SHA256
			}
		}
	}
	var foreign []string
	for _, e := range entries {
		data, err := input.Read(filepath.Join(dir, e.Name()), "")
		if err != nil || mine[e.Name()] != sum(data) {
			foreign = append(foreign, e.Name())
		}
	}
	if foreign != nil {
		sort.Strings(foreign)
		return false, fault.New(fault.Usage, "the output directory holds files that are not of an export: %s", strings.Join(foreign, ", ")).
			At("%s", dir).Hintf("name a new directory with --out, or empty this one yourself")
	}
	return true, nil
}

func environment(err error, at string) error {
	if err == nil {
		return nil
	}
	return fault.New(fault.Environment, "cannot write the export: %w", err).At("%s", at).
		Hintf("check the directory's permissions and the free space")
}
