package syntax

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"

	"dot4fa/internal/fault"
	"dot4fa/internal/series"
	"dot4fa/internal/standin"
	"dot4fa/internal/upstream/gitobj"
)

// image is what compilers see of a commit: its headers, with the edits in them,
// and the units to compile.
type image struct {
	files  map[string]content
	byBase map[string][]string // base name to the paths of files, sorted
}

// content is a file's blob id, and how to get at its bytes.
type content struct {
	id   string
	read func() ([]byte, error)
}

func newImage() *image { return &image{files: map[string]content{}, byBase: map[string][]string{}} }

func (img *image) put(name, id string, read func() ([]byte, error)) {
	if _, have := img.files[name]; !have {
		base := path.Base(name)
		list := img.byBase[base]
		at, _ := slices.BinarySearch(list, name)
		img.byBase[base] = slices.Insert(list, at, name)
	}
	img.files[name] = content{id, read}
}

func (img *image) putData(name string, data []byte) {
	img.put(name, gitobj.Hash(gitobj.Blob, data), func() ([]byte, error) { return data, nil })
}

// Where files lie that are not of the commit.
const (
	// deviceDir holds the added device files apart from upstream's: beside its
	// common.cuh they would not find the stand-in for it.
	deviceDir  = ".device"
	standInDir = ".standin"
)

// upstreamFiles puts t's headers and the named units into an image, as upstream has them.
func (t *Tree) upstreamFiles(units map[string]bool) *image {
	img := newImage()
	for _, f := range t.Files {
		if isHeader(f.Path) || units[f.Path] {
			img.put(f.Path, f.ID, func() ([]byte, error) { return t.Read(f.Path) })
		}
	}
	return img
}

// pristine is t without the series.
func (t *Tree) pristine() *image {
	all := map[string]bool{}
	for _, f := range t.Files {
		if IsUnit(f.Path) {
			all[f.Path] = true
		}
	}
	return t.upstreamFiles(all)
}

func (t *Tree) hasUpstream(name string) bool {
	return slices.ContainsFunc(t.Files, func(f File) bool { return f.Path == name })
}

// edited is t with the series made, and the units to compile in it. named
// remembers which files name what.
func (t *Tree) edited(named map[string]bool) (*image, []Unit, error) {
	edits := map[string][]string{}
	for _, r := range t.Plan.Results {
		if r.Status == series.OK {
			edits[r.File] = append(edits[r.File], r.ID)
		}
	}
	var units []Unit
	done := map[string]bool{}
	kernels := slices.ContainsFunc(t.Added, func(f series.Rendered) bool { return IsDevice(f.Path) })
	add := func(u Unit) {
		if u.Device = IsDevice(u.File); u.Device && !kernels {
			u.Status, u.Detail = NotChecked, "the recipe has no kernels"
		}
		units = append(units, u)
		done[u.File] = true
	}
	for _, f := range t.Plan.Files {
		if IsUnit(f.Path) {
			add(Unit{File: f.Path, Edits: edits[f.Path]})
		}
	}
	for _, f := range t.Added {
		if IsUnit(f.Path) {
			add(Unit{File: f.Path})
		}
	}
	users, err := t.users(done, named)
	if err != nil {
		return nil, nil, err
	}
	for name, names := range users {
		add(Unit{File: name, Uses: names})
	}
	sort.Slice(units, func(i, j int) bool { return units[i].File < units[j].File })

	img := t.upstreamFiles(done)
	for _, f := range t.Plan.Files {
		img.putData(f.Path, f.Post)
	}
	for _, f := range t.Added {
		img.putData(f.Path, f.Data)
		if path.Base(path.Dir(f.Path)) == "ggml-cuda" {
			img.putData(path.Join(deviceDir, path.Base(f.Path)), f.Data)
		}
	}
	err = fs.WalkDir(standin.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(standin.FS(), name)
		img.putData(path.Join(standInDir, name), data)
		return err
	})
	return img, units, err
}

// Reads reports whether a check can come to read a file of upstream's.
func Reads(name string) bool { return isHeader(name) || IsUnit(name) }

// IsUnit reports whether a file is compiled by itself.
func IsUnit(name string) bool {
	switch path.Ext(name) {
	case ".c", ".cpp", ".cu":
		return true
	}
	return false
}

// IsDevice reports whether a unit is for a GPU.
func IsDevice(name string) bool { return path.Ext(name) == ".cu" }

func isHeader(name string) bool {
	switch path.Ext(name) {
	case ".h", ".hpp", ".cuh", ".inc", ".inl":
		return true
	}
	return false
}

// desk is a directory that holds one image at a time. From one commit to the
// next only what differs is written.
type desk struct {
	dir string
	has map[string]string // path to blob id
}

func (d *desk) lay(img *image) error {
	cannot := func(err error) error {
		return fault.New(fault.Environment, "cannot write the files to compile: %w", err).At("%s", d.dir).
			Hintf("set TMPDIR to a directory that can be written and has some space")
	}
	for name := range d.has {
		if _, keep := img.files[name]; !keep {
			if err := os.Remove(filepath.Join(d.dir, filepath.FromSlash(name))); err != nil {
				return cannot(err)
			}
			delete(d.has, name)
		}
	}
	for name, f := range img.files {
		if d.has[name] == f.id {
			continue
		}
		data, err := f.read()
		if err != nil {
			return err
		}
		to := filepath.Join(d.dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return cannot(err)
		}
		if err := os.WriteFile(to, data, 0o666); err != nil {
			return cannot(err)
		}
		d.has[name] = f.id
	}
	return nil
}
