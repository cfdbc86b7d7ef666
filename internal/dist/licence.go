package dist

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"dot4fa/internal/fault"
)

var (
	licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|unlicense)([-._].*)?$`)
	sourceFile  = regexp.MustCompile(`\.(h|hpp|c|cpp|cc|cuh|cu)$`)
	comment     = regexp.MustCompile(`(?s)/\*.*?\*/|(?m:^[ \t]*//[^\n]*\n?)+`)
	licenceText = regexp.MustCompile(`(?i)licen[cs]e|copyright|public domain`)
)

// licences collects the licence texts that go with llama.cpp's binaries, by
// path under licenses/: upstream's own, what it keeps under licenses/, and
// those of what it vendors. A vendored directory without a licence file has
// the licence in its sources' comments; those are taken instead.
func licences(tree string) (map[string][]byte, error) {
	out := map[string][]byte{}
	own, err := os.ReadDir(tree)
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot read the work tree: %w", err).At("%s", tree).Hintf("check its permissions")
	}
	for _, e := range own {
		if licenceFile.MatchString(e.Name()) && e.Type().IsRegular() {
			if out["llama.cpp/"+e.Name()], err = os.ReadFile(filepath.Join(tree, e.Name())); err != nil {
				return nil, err
			}
		}
	}
	if len(out) == 0 {
		return nil, fault.New(fault.VerifyFailed, "llama.cpp's licence is not there").At("%s", tree).
			Hintf("do not exclude it in the recipe: the archive must carry it")
	}
	if err := each(tree, "licenses", func(name string, data []byte) {
		out["llama.cpp/"+name] = data
	}); err != nil {
		return nil, err
	}
	files := map[string][]byte{} // of each vendored directory: licence files
	texts := map[string][]byte{} // and licence comments
	err = each(tree, "vendor", func(name string, data []byte) {
		dir := path.Dir(name)
		switch {
		case licenceFile.MatchString(path.Base(name)):
			out[name], files[dir] = data, data
		case sourceFile.MatchString(name):
			for _, c := range comment.FindAll(data, -1) {
				if licenceText.Match(c) && !bytes.Contains(texts[dir], c) {
					texts[dir] = append(append(texts[dir], c...), '\n')
				}
			}
		}
	})
	for dir, text := range texts {
		if !covered(dir, files) {
			out[dir+"/LICENSE-from-sources"] = text
		}
	}
	return out, err
}

// covered reports whether a vendored directory, or one it lies in, has a
// licence file.
func covered(dir string, files map[string][]byte) bool {
	for ; dir != "vendor" && dir != "."; dir = path.Dir(dir) {
		if files[dir] != nil {
			return true
		}
	}
	return false
}

// each calls do for every file under tree/dir, with its path from tree. A
// directory that is not there has none.
func each(tree, dir string, do func(name string, data []byte)) error {
	err := filepath.WalkDir(filepath.Join(tree, dir), func(file string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(tree, file)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(file)
		if err == nil {
			do(filepath.ToSlash(rel), data)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// components are the vendored components that licence paths speak of:
// vendor/cpp-httplib/LICENSE is one of cpp-httplib.
func components(licences map[string][]byte) map[string]string {
	out := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(licences)) {
		if rest, ok := strings.CutPrefix(name, "vendor/"); ok {
			out[path.Dir(rest)] = name
		}
	}
	return out
}
