package release

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"dot4fa/internal/fault"
	"dot4fa/internal/input"
	"dot4fa/internal/upstream/gitobj"
)

// Tree is the base commit as Verify reads it.
type Tree struct {
	Tree  string                            // its id
	Files map[string]gitobj.Entry           // every file by path
	Read  func(path string) ([]byte, error) // content
}

// Verified is the outcome of a check that found nothing wrong.
type Verified struct {
	Info  Info     `json:"release"`
	Files []string `json:"files"` // that the series changes or adds
}

// ReadInfo reads release.json of an export.
func ReadInfo(dir string) (*Info, error) {
	const another = "name the directory that holds " + InfoFile + " and the patches"
	if err := input.Dir(dir, another); err != nil {
		return nil, err
	}
	at := filepath.Join(dir, InfoFile)
	data, err := input.Read(at, another)
	if err != nil {
		return nil, fault.New(fault.VerifyFailed, "no release can be read there: %w", err).Hintf("%s", another)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var info Info
	if err := dec.Decode(&info); err != nil {
		return nil, fault.New(fault.VerifyFailed, "it cannot be read: %w", err).At("%s", at).Hintf("get the release again")
	}
	switch {
	case info.Tool == "":
		return nil, fault.New(fault.VerifyFailed, "it does not say which dot4fa made it").At("%s", at).Hintf("get the release again")
	case info.Format != format:
		return nil, fault.New(fault.VerifyFailed, "format %d, this dot4fa knows %d", info.Format, format).At("%s", at).Hintf("use the dot4fa that made it: %s", info.Tool)
	case !gitobj.IsID(info.Base.Commit) || !gitobj.IsID(info.Base.Tree) || !gitobj.IsID(info.Tip.Tree):
		return nil, fault.New(fault.VerifyFailed, "base and tip are not git ids").At("%s", at).Hintf("get the release again")
	}
	return &info, nil
}

// Verify checks the export in dir against its base: every file is there, no
// other is, each has its sha256, and the patches, parsed strictly and applied
// one after the other, start from the base's blobs and end in the tip tree.
func Verify(ctx context.Context, dir string, info *Info, base Tree) (*Verified, error) {
	patches, problems, err := readAll(dir, info)
	if err != nil {
		return nil, err
	}
	if base.Tree != info.Base.Tree {
		problems = append(problems, fmt.Sprintf("%s: commit %.10s has tree %s, the release says %s", InfoFile, info.Base.Commit, base.Tree, info.Base.Tree))
	}
	if problems != nil {
		return nil, failed(dir, problems)
	}
	now := make(map[string]gitobj.Entry, len(base.Files))
	for p, e := range base.Files {
		now[p] = e
	}
	w := &work{base: base, now: now, data: map[string][]byte{}}
	for i, p := range info.Patches {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		if err := w.apply(patches[i]); err != nil {
			return nil, failed(dir, []string{p.File + ": " + err.Error()})
		}
	}
	if tip := TreeID(now); tip != info.Tip.Tree {
		return nil, failed(dir, []string{fmt.Sprintf("%s: the series makes tree %s, the release says %s", InfoFile, tip, info.Tip.Tree)})
	}
	return &Verified{Info: *info, Files: w.touched}, nil
}

func failed(dir string, problems []string) error {
	what := problems[0]
	if len(problems) > 1 {
		what = fmt.Sprintf("%d problems:\n  %s", len(problems), strings.Join(problems, "\n  "))
	}
	return fault.New(fault.VerifyFailed, "the release is not as it was made: %s", what).At("%s", dir).
		Hintf("get it again from where it was published; patches must be kept byte for byte, one a file")
}

var mailStart = regexp.MustCompile(`(?m)^From [0-9a-f]{40} Mon Sep 17 00:00:00 2001\r?$`)

// readAll reads the files and says everything that is wrong with them.
func readAll(dir string, info *Info) (patches [][]byte, problems []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, fault.New(fault.VerifyFailed, "cannot list the release: %w", err).At("%s", dir).
			Hintf("change the directory's permissions, or get the release again")
	}
	listed := map[string]bool{InfoFile: true}
	for _, p := range info.Patches {
		if listed[p.File] || p.File != filepath.Base(p.File) || !fs.ValidPath(p.File) {
			problems = append(problems, fmt.Sprintf("%s: lists the file %q, which cannot be one of its own", InfoFile, p.File))
			continue
		}
		listed[p.File] = true
		data, err := input.Read(filepath.Join(dir, p.File), "")
		switch {
		case errors.Is(err, fs.ErrNotExist):
			problems = append(problems, p.File+": is missing")
			continue
		case err != nil:
			problems = append(problems, err.Error())
			continue
		}
		patches = append(patches, data)
		if n := len(mailStart.FindAllIndex(data, -1)); n > 1 {
			problems = append(problems, fmt.Sprintf("%s: holds %d patches", p.File, n))
		} else if got := sum(data); got != p.SHA256 {
			why := "sha256 " + got + " instead of " + p.SHA256
			if sum(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))) == p.SHA256 {
				why = "its line ends were changed to CRLF"
			}
			problems = append(problems, p.File+": "+why)
		}
	}
	for _, e := range entries {
		if !listed[e.Name()] {
			problems = append(problems, e.Name()+": is not part of the release")
		}
	}
	return patches, problems, nil
}

// work is a tree that patches are applied to.
type work struct {
	base    Tree
	now     map[string]gitobj.Entry
	data    map[string][]byte // of files that were changed
	touched []string
}

func (w *work) apply(patch []byte) error {
	files, _, err := gitdiff.Parse(bytes.NewReader(patch))
	if err != nil {
		return fmt.Errorf("cannot be parsed: %w", err)
	}
	if len(files) == 0 {
		return fmt.Errorf("changes no file")
	}
	for _, f := range files {
		if err := w.file(f); err != nil {
			return fmt.Errorf("%s: %w", f.NewName, err)
		}
	}
	return nil
}

func (w *work) file(f *gitdiff.File) error {
	name := f.NewName
	if f.IsBinary || f.IsCopy || f.IsRename || f.IsDelete || !fs.ValidPath(name) {
		return fmt.Errorf("is not a plain change of a text file in the tree")
	}
	e, had := w.now[name]
	if had == f.IsNew {
		return fmt.Errorf("is to be made and is there, or is to be changed and is not")
	}
	var pre []byte
	if had {
		if f.OldOIDPrefix != e.ID {
			return fmt.Errorf("starts from blob %s, the tree has %s", f.OldOIDPrefix, e.ID)
		}
		var known bool
		if pre, known = w.data[name]; !known {
			var err error
			if pre, err = w.base.Read(name); err != nil {
				return err
			}
		}
	} else {
		e.Mode = gitobj.ModeFile
		if f.NewMode != 0 && f.NewMode.Perm()&0o111 != 0 {
			e.Mode = gitobj.ModeExec
		}
	}
	var post bytes.Buffer
	if err := gitdiff.Apply(&post, bytes.NewReader(pre), f); err != nil {
		return fmt.Errorf("does not apply: %w", err)
	}
	e.ID = gitobj.Hash(gitobj.Blob, post.Bytes())
	if f.NewOIDPrefix != e.ID {
		return fmt.Errorf("makes blob %s, its index line says %s", e.ID, f.NewOIDPrefix)
	}
	if _, known := w.data[name]; !known {
		w.touched = append(w.touched, name)
	}
	w.now[name], w.data[name] = e, post.Bytes()
	return nil
}
