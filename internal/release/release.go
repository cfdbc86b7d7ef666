// Package release makes of a series what people can apply who do not have
// dot4fa: one patch a member, made for `git am`, and release.json, which says
// what they belong to and what comes out. It also checks such a directory.
//
// The same base, recipe and series give the same bytes: nothing in a patch
// depends on the time, the machine or who made it. A patch's author date is the
// base commit's.
package release

import (
	"encoding/json"
	"path"
	"sort"
	"strings"
	"time"

	"dot4fa/internal/fault"
	"dot4fa/internal/series"
	"dot4fa/internal/upstream/gitobj"
)

// InfoFile is the name of the description beside the patches.
const InfoFile = "release.json"

const format = 1

// Info is the content of release.json.
type Info struct {
	Format   int      `json:"format"`
	Tool     string   `json:"tool"` // version of dot4fa
	Recipe   Recipe   `json:"recipe"`
	Upstream string   `json:"upstream"` // URL
	Base     Base     `json:"base"`
	Tip      Tip      `json:"tip"`
	Apply    string   `json:"apply"` // the command, run in a clean checkout of base
	Patches  []Record `json:"patches"`
}

// Recipe says which files the series adds and with which parameters.
type Recipe struct {
	Name string `json:"name"`
	Hash string `json:"hash"`
}

// Base is what the series applies to.
type Base struct {
	Commit string `json:"commit"`
	Tag    string `json:"tag,omitempty"`
	Tree   string `json:"tree"` // git tree id of the whole commit
}

// Tip is what the series results in.
type Tip struct {
	Tree string `json:"tree"` // git tree id, excluded files included
}

// Record is one patch.
type Record struct {
	File   string `json:"file"`
	Member string `json:"member"` // file of patches/ it is made from
	Title  string `json:"title"`
	SHA256 string `json:"sha256"`
}

// Patch is one file of the export.
type Patch struct {
	Name string
	Data []byte
}

// Source is what a release is made from.
type Source struct {
	Info  Info // Tool, Recipe, Upstream and Base; the rest is computed
	Date  time.Time
	Files map[string]gitobj.Entry // every file of the base commit by path
	Plan  *series.Plan
	Added []series.Rendered // files upstream does not have
}

// Release is a series ready to be written.
type Release struct {
	Info    Info
	Patches []Patch
}

// New makes the patches. It fails where Files are not all of the base tree, so
// that the tip tree it promises is the one that git will see.
func New(s Source) (*Release, error) {
	if id := TreeID(s.Files); id != s.Info.Base.Tree {
		return nil, fault.New(fault.Failure, "the files of %.10s make the tree %.10s, the commit has %.10s", s.Info.Base.Commit, id, s.Info.Base.Tree).
			Hintf("a submodule or an unknown file mode cannot be exported")
	}
	r := &Release{Info: s.Info}
	r.Info.Format = format
	now := make(map[string]gitobj.Entry, len(s.Files))
	for p, e := range s.Files {
		now[p] = e
	}
	owner := owners(s.Plan.Members, s.Added)
	var parts []part
	for i, m := range s.Plan.Members {
		changes, err := memberChanges(s.Plan, i, now)
		if err != nil {
			return nil, err
		}
		for k, f := range s.Added {
			if owner[k] == i {
				changes = append(changes, added(f.Path, f.Data))
			}
		}
		if len(changes) == 0 {
			continue // guards leave nothing of it on this base
		}
		sort.Slice(changes, func(a, b int) bool { return changes[a].path < changes[b].path })
		for _, c := range changes {
			if e, ok := now[c.path]; ok && c.old == "" {
				return nil, fault.New(fault.EditFails, "%s is there already (%.10s), and %s adds it", c.path, e.ID, m.File).
					Hintf("give the new file another name in patches/%s, or leave it out where upstream has its own", m.File)
			}
			now[c.path] = gitobj.Entry{Mode: c.mode, ID: c.new}
		}
		parts = append(parts, part{member: m, edits: s.Plan.Results, changes: changes})
	}
	keepCR := false
	for i, p := range parts {
		data := p.mail(i+1, len(parts), s.Date)
		keepCR = keepCR || strings.Contains(string(data), "\r\n")
		name := strings.TrimSuffix(p.member.File, path.Ext(p.member.File)) + ".patch"
		r.Patches = append(r.Patches, Patch{name, data})
		r.Info.Patches = append(r.Info.Patches, Record{name, p.member.File, p.member.Title, sum(data)})
	}
	r.Info.Apply = "git am *.patch"
	if keepCR {
		r.Info.Apply = "git am --keep-cr *.patch"
	}
	r.Info.Tip.Tree = TreeID(now)
	return r, nil
}

// files are all files of the release by name.
func (r *Release) files() (map[string][]byte, error) {
	info, err := json.MarshalIndent(&r.Info, "", "  ")
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{InfoFile: append(info, '\n')}
	for _, p := range r.Patches {
		out[p.Name] = p.Data
	}
	return out, nil
}

// TreeID is the git tree id of files given by path.
func TreeID(files map[string]gitobj.Entry) string {
	var here []gitobj.Entry
	below := map[string]map[string]gitobj.Entry{}
	for name, e := range files {
		dir, rest, nested := strings.Cut(name, "/")
		if !nested {
			here = append(here, gitobj.Entry{Mode: e.Mode, Name: name, ID: e.ID})
			continue
		}
		if below[dir] == nil {
			below[dir] = map[string]gitobj.Entry{}
		}
		below[dir][rest] = e
	}
	for dir, inside := range below {
		here = append(here, gitobj.Entry{Mode: gitobj.ModeDir, Name: dir, ID: TreeID(inside)})
	}
	return gitobj.HashTree(here)
}
