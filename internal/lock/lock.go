// Package lock reads and writes dot4fa.lock, the record of what a work tree was
// made from. The file is written as a whole or not at all and carries a sum of
// itself: one that was cut short, merged or edited by hand is reported and not
// believed.
//
// The file is YAML:
//
//	format      version of this layout, 1
//	tool        version of dot4fa that wrote it
//	recipe      name, and hash of the resolved recipe (recipe.Hash)
//	upstream    url or directory it came from; commit and tag of the pin (commit
//	            is empty for a plain directory, which proves none); tree: git
//	            tree id of the commit; before and after: tree ids of the files
//	            checked out, without and with the series and the rendered files
//	files       rendered files: path in the work tree, sha256 of the content
//	edits       edits of the series: id, sha256 of what the edit says
//	toolchain   tools used: name, version
//	stages      finished stages and the fingerprint of what each was made from
//	sum         sha256 of all bytes above this line
package lock

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"syscall"

	"github.com/google/renameio/v2"
	"go.yaml.in/yaml/v3"

	"dot4fa/internal/fault"
)

// Name is the lock's file name in a work tree.
const Name = "dot4fa.lock"

// Format is the version of the layout this package reads and writes.
const Format = 1

// Lock says what a work tree was made from.
type Lock struct {
	Format    int      `yaml:"format"`
	Tool      string   `yaml:"tool"`
	Recipe    Recipe   `yaml:"recipe"`
	Upstream  Upstream `yaml:"upstream"`
	Files     []Item   `yaml:"files"`
	Edits     []Item   `yaml:"edits"`
	Toolchain []Tool   `yaml:"toolchain"`
	Stages    []Stage  `yaml:"stages"` // in the order they were finished
}

// Recipe names the recipe and what it resolved to.
type Recipe struct {
	Name string `yaml:"name"`
	Hash string `yaml:"hash"` // sha256
}

// Upstream says which llama.cpp.
type Upstream struct {
	From   string `yaml:"from"`   // URL without credentials, or directory
	Commit string `yaml:"commit"` // empty for a plain directory
	Tag    string `yaml:"tag"`
	Tree   string `yaml:"tree"`
	Before string `yaml:"before"`
	After  string `yaml:"after,omitempty"` // empty until the series was applied
}

// Item is a file or an edit and the sha256 (hex) of it.
type Item struct {
	ID     string `yaml:"id"`
	SHA256 string `yaml:"sha256"`
}

// Tool is a program of the toolchain.
type Tool struct {
	Name    string `yaml:"name"`
	Version string `yaml:"version"`
}

// Stage is a finished stage.
type Stage struct {
	Name        string `yaml:"name"`
	Fingerprint string `yaml:"fingerprint"` // sha256
}

// Fingerprint returns a sha256 (hex) over values, each written as JSON with map
// keys in order. It panics on a value JSON cannot hold.
func Fingerprint(parts ...any) string {
	h := sha256.New()
	for _, p := range parts {
		data, err := json.Marshal(p)
		if err != nil {
			panic("lock: fingerprint: " + err.Error())
		}
		h.Write(append(data, '\n'))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// SumBytes returns the sha256 (hex) of data, for an Item.
func SumBytes(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Fresh reports whether a stage was finished from exactly this.
func (l *Lock) Fresh(stage, fingerprint string) bool {
	if l == nil || fingerprint == "" {
		return false
	}
	for _, s := range l.Stages {
		if s.Name == stage {
			return s.Fingerprint == fingerprint
		}
	}
	return false
}

// Done records that a stage was finished. Stages finished after it before are
// forgotten, unless nothing changed: they were made from its old result.
func (l *Lock) Done(stage, fingerprint string) {
	if l.Fresh(stage, fingerprint) {
		return
	}
	l.Forget(stage)
	l.Stages = append(l.Stages, Stage{stage, fingerprint})
}

// Forget makes a stage, and those finished after it, unfinished.
func (l *Lock) Forget(stage string) {
	for i, s := range l.Stages {
		if s.Name == stage {
			l.Stages = l.Stages[:i:i]
			return
		}
	}
}

// Read reads a lock. The error is fs.ErrNotExist when there is none; one that
// cannot be trusted is an error that says what is wrong with it.
func Read(file string) (*Lock, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot read the lock: %w", err).At("%s", file).Hintf("check the file's permissions")
	}
	l, err := parse(data)
	if err != nil {
		var known *fault.Error
		if errors.As(err, &known) {
			return nil, known.At("%s", file)
		}
		return nil, fault.New(fault.Failure, "the lock is damaged: %w", err).At("%s", file).
			Hintf("remove it and run build again: what it records is made anew, only time is lost")
	}
	return l, nil
}

func parse(data []byte) (*Lock, error) {
	i := bytes.LastIndex(data, []byte("\nsum: "))
	if i < 0 {
		return nil, errors.New("it ends early: its last line, the sum, is missing")
	}
	body, line := data[:i+1], string(data[i+1:])
	if line != "sum: "+SumBytes(body)+"\n" {
		return nil, errors.New("its sum is not that of its content")
	}
	var head struct {
		Format int `yaml:"format"`
	}
	if err := yaml.Unmarshal(body, &head); err != nil {
		return nil, err
	}
	if head.Format > Format {
		return nil, fault.New(fault.Usage, "the lock has format %d, this dot4fa knows %d", head.Format, Format).
			Hintf("use the newer dot4fa that wrote it, or remove it and run build again")
	}
	l := &Lock{}
	dec := yaml.NewDecoder(bytes.NewReader(body))
	dec.KnownFields(true)
	if err := dec.Decode(l); err != nil {
		return nil, err
	}
	return l, l.check()
}

var (
	reSHA1   = regexp.MustCompile(`^[0-9a-f]{40}$`)
	reSHA256 = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// check finds values no dot4fa writes.
func (l *Lock) check() error {
	if l.Format != Format {
		return fmt.Errorf("format is %d", l.Format)
	}
	for _, f := range []struct {
		name, value string
		re          *regexp.Regexp
		optional    bool
	}{
		{"recipe.hash", l.Recipe.Hash, reSHA256, false},
		{"upstream.commit", l.Upstream.Commit, reSHA1, true},
		{"upstream.tree", l.Upstream.Tree, reSHA1, false},
		{"upstream.before", l.Upstream.Before, reSHA1, false},
		{"upstream.after", l.Upstream.After, reSHA1, true},
	} {
		if !(f.optional && f.value == "") && !f.re.MatchString(f.value) {
			return fmt.Errorf("%s is %q", f.name, f.value)
		}
	}
	for name, list := range map[string][]Item{"files": l.Files, "edits": l.Edits} {
		seen := map[string]bool{}
		for _, it := range list {
			if it.ID == "" || seen[it.ID] || !reSHA256.MatchString(it.SHA256) {
				return fmt.Errorf("%s has a bad entry %q", name, it.ID)
			}
			seen[it.ID] = true
		}
	}
	for _, it := range l.Files {
		if path.Clean(it.ID) != it.ID || path.IsAbs(it.ID) || strings.HasPrefix(it.ID, "..") {
			return fmt.Errorf("files has %q, which is not a path in the work tree", it.ID)
		}
	}
	seen := map[string]bool{}
	for _, s := range l.Stages {
		if s.Name == "" || seen[s.Name] || !reSHA256.MatchString(s.Fingerprint) {
			return fmt.Errorf("stages has a bad entry %q", s.Name)
		}
		seen[s.Name] = true
	}
	return nil
}

const head = `# Written by dot4fa: what this work tree was made from. Do not edit; when in
# doubt remove it and run build again.
`

// Bytes returns the lock as it is written: files and edits in order of id,
// equal locks as equal bytes.
func (l *Lock) Bytes() ([]byte, error) {
	c := *l
	c.Format = Format
	c.Files, c.Edits = sorted(l.Files), sorted(l.Edits)
	c.Toolchain = append([]Tool{}, l.Toolchain...)
	sort.Slice(c.Toolchain, func(i, j int) bool { return c.Toolchain[i].Name < c.Toolchain[j].Name })
	c.Stages = append([]Stage{}, l.Stages...)
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	var b bytes.Buffer
	b.WriteString(head)
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(&c); err != nil {
		return nil, err
	}
	if err := enc.Close(); err != nil {
		return nil, err
	}
	return append(b.Bytes(), "sum: "+SumBytes(b.Bytes())+"\n"...), nil
}

func sorted(list []Item) []Item {
	out := append([]Item{}, list...)
	sort.Slice(out, func(i, j int) bool { return out[i].ID < out[j].ID })
	return out
}

// Write writes the lock to file at once, leaving an equal one alone.
func (l *Lock) Write(file string) error {
	data, err := l.Bytes()
	if err != nil {
		return err
	}
	if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, data) {
		return nil
	}
	if err := renameio.WriteFile(file, data, 0o644); err != nil {
		e := fault.New(fault.Environment, "cannot write the lock: %w", err).At("%s", file)
		if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
			return e.Hintf("free some space in %s; the old lock is unchanged", filepath.Dir(file))
		}
		return e.Hintf("check that %s can be written to; the old lock is unchanged", filepath.Dir(file))
	}
	return nil
}
