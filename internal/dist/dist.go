// Package dist packs what was built into an archive that runs wherever it is
// unpacked, with the licences, the lock and an SBOM:
//
//	NAME/bin/           programs, and the libraries of the build that they need
//	NAME/licenses/      licence texts
//	NAME/dot4fa.lock    what it was made from
//	NAME/sbom.cdx.json  the same as CycloneDX, with everything in the archive
//	NAME/REQUIRES.txt   what the system has to have
//	NAME/SHA256SUMS     of all of these
//
// The same build gives the same bytes: files are in order, and owners and times
// are fixed.
package dist

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"dot4fa/internal/fault"
	"dot4fa/internal/lock"
	"dot4fa/internal/output"
	"dot4fa/internal/recipe"
)

// Source is what goes into an archive.
type Source struct {
	Made
	Name     string   // of the archive's only top directory
	Bin      string   // where the programs and libraries were built
	Programs []string // names of programs in Bin
	Backend  recipe.Backend
	Modules  bool     // backends are separate files that are loaded while running
	Native   bool     // compiled for the CPU it was built on, and for no other
	Own      []byte   // licence of the files that dot4fa adds; nil when there is none
	System   []string // libraries besides the known ones that the system will have
}

// File is a file of an archive.
type File struct {
	Path   string `json:"path"` // from the top directory
	Size   int    `json:"size"`
	SHA256 string `json:"sha256"`

	data []byte
	mode int64
}

// Info says what an archive holds.
type Info struct {
	Archive  string   `json:"archive"`
	SHA256   string   `json:"sha256"`
	Size     int      `json:"size"`
	Programs []string `json:"programs"`
	Bundled  []string `json:"bundled"`  // libraries in it
	System   []System `json:"system"`   // libraries it leaves to the system
	Versions []string `json:"versions"` // newest symbol versions it needs of those
	Licences []string `json:"licences"`
	Native   bool     `json:"native"`     // it may not run on another CPU than that it was built on
	NoOwn    bool     `json:"no_licence"` // dot4fa's own files come without a licence
	Files    []File   `json:"files"`

	SBOM []byte `json:"-"` // sbom.cdx.json
}

// epoch is the time of every file: 1980, the oldest that all archivers take.
var epoch = time.Unix(315532800, 0).UTC()

// Write packs s into the archive file, a .tar.gz.
func Write(file string, s Source) (*Info, error) {
	info, err := s.collect()
	if err != nil {
		return nil, err
	}
	data, err := pack(s.Name, info.Files)
	if err != nil {
		return nil, err
	}
	if err := output.Write(file, data, 0o644); err != nil {
		return nil, err
	}
	info.Archive, info.SHA256, info.Size = file, sum(data), len(data)
	return info, nil
}

// Check refuses a name that is not one of a .tar.gz.
func Check(file string) error {
	if !strings.HasSuffix(file, ".tar.gz") {
		return fault.New(fault.Usage, "the archive is a .tar.gz, and its name has to say so").At("%s", file).
			Hintf("--out %s.tar.gz", strings.TrimSuffix(file, filepath.Ext(file)))
	}
	return nil
}

func (s Source) collect() (*Info, error) {
	if len(s.Programs) == 0 {
		return nil, fault.New(fault.Usage, "none of the recipe's targets is a program").At("%s", s.Bin).
			Hintf("name one under targets in the recipe")
	}
	names := append([]string(nil), s.Programs...)
	if s.Modules {
		modules, err := filepath.Glob(filepath.Join(s.Bin, "libggml-*.so"))
		if err != nil {
			return nil, err
		}
		for _, m := range modules {
			names = append(names, filepath.Base(m))
		}
	}
	objects, outside, err := closure(s.Bin, names)
	if err != nil {
		return nil, err
	}
	system, err := judge(outside, s.Backend, s.System)
	if err != nil {
		return nil, err
	}
	texts, err := licences(s.Tree)
	if err != nil {
		return nil, err
	}
	if s.Own != nil {
		texts["dot4fa/LICENSE"] = s.Own
	} else {
		texts["dot4fa/NO-LICENSE.txt"] = []byte(noLicence)
	}
	info := &Info{
		Programs: append([]string{}, s.Programs...), Bundled: []string{}, System: system, Versions: newest(objects),
		Native: s.Native, NoOwn: s.Own == nil,
	}
	sort.Strings(info.Programs)
	add := func(name string, data []byte, mode int64) {
		info.Files = append(info.Files, File{name, len(data), sum(data), data, mode})
	}
	program := map[string]bool{}
	for _, p := range s.Programs {
		program[p] = true
	}
	for _, o := range objects {
		add("bin/"+o.name, o.data, 0o755)
		if !program[o.name] {
			info.Bundled = append(info.Bundled, o.name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		add("licenses/"+name, texts[name], 0o644)
		info.Licences = append(info.Licences, name)
	}
	locked, err := s.Lock.Bytes()
	if err != nil {
		return nil, err
	}
	add(lock.Name, locked, 0o644)
	s.licences, s.objects, s.system = texts, objects, system
	sbom, err := SBOM(s.Made)
	if err != nil {
		return nil, err
	}
	info.SBOM = sbom
	add("sbom.cdx.json", sbom, 0o644)
	add("REQUIRES.txt", requires(system, info.Versions, s.Backend, s.Native), 0o644)
	sort.Slice(info.Files, func(i, j int) bool { return info.Files[i].Path < info.Files[j].Path })
	var sums strings.Builder
	for _, f := range info.Files {
		fmt.Fprintf(&sums, "%s  %s\n", f.SHA256, f.Path)
	}
	add("SHA256SUMS", []byte(sums.String()), 0o644)
	sort.Slice(info.Files, func(i, j int) bool { return info.Files[i].Path < info.Files[j].Path })
	return info, nil
}

// noLicence goes into an archive in the place of the licence that is not there.
const noLicence = `The programs in this archive contain code of dot4fa, and dot4fa's repository has no LICENSE file.
Without one, nobody but its owner may pass them on. llama.cpp's licence, and those of what it
contains, lie beside this directory.
`

// pack makes the archive of files, which are in order.
func pack(top string, files []File) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(z)
	for _, f := range files {
		h := &tar.Header{Name: top + "/" + f.Path, Size: int64(len(f.data)), Mode: f.mode, ModTime: epoch, Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
