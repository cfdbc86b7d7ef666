package dist

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sort"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"dot4fa/internal/lock"
)

// Made says what an SBOM is about.
type Made struct {
	Lock    *lock.Lock
	URL     string           // upstream's
	Tool    *debug.BuildInfo // of the dot4fa that made it; nil when unknown
	Version string           // of that dot4fa
	Tree    string           // the work tree, for the licences

	licences map[string][]byte
	objects  []*object
	system   []System
}

// SBOM returns a CycloneDX document, JSON: llama.cpp at its commit with what was
// changed in it, the files added to it, the components it vendors, what was
// built from it, and the dot4fa that did so with its modules. It has no time
// stamp, and its serial number follows from its content: the same input gives
// the same bytes.
func SBOM(m Made) ([]byte, error) {
	if m.licences == nil {
		var err error
		if m.licences, err = licences(m.Tree); err != nil {
			return nil, err
		}
	}
	b := m.bom()
	text, err := encode(b)
	if err != nil {
		return nil, err
	}
	b.SerialNumber = serial(text)
	return encode(b)
}

func encode(b *cdx.BOM) ([]byte, error) {
	var out bytes.Buffer
	enc := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON)
	enc.SetPretty(true)
	enc.SetEscapeHTML(false)
	if err := enc.EncodeVersion(b, cdx.SpecVersion1_6); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// serial is a UUID of version 8, the one for values made by a rule of one's own.
func serial(text []byte) string {
	h := sha256.Sum256(text)
	h[6], h[8] = h[6]&0x0f|0x80, h[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", h[0:4], h[4:6], h[6:8], h[8:10], h[10:16])
}

// refUpstream is the bom-ref of llama.cpp.
const refUpstream = "llama.cpp"

func (m Made) bom() *cdx.BOM {
	up := m.Lock.Upstream
	product := cdx.Component{
		BOMRef: "product", Type: cdx.ComponentTypeApplication, Name: "llama.cpp-" + m.Lock.Recipe.Name,
		Version:     version(up) + "-dot4fa",
		Description: "llama.cpp with a packed16 K cache and DOT4 attention",
		Properties:  m.properties(),
	}
	parts := []cdx.Component{m.upstream()}
	for _, f := range m.Lock.Files {
		parts = append(parts, file("file:"+f.ID, f.ID, f.SHA256))
	}
	vendored := components(m.licences)
	for _, name := range slices.Sorted(maps.Keys(vendored)) {
		parts = append(parts, cdx.Component{BOMRef: "vendor:" + name, Type: cdx.ComponentTypeLibrary, Name: name,
			Properties: &[]cdx.Property{{Name: "dot4fa:licence", Value: vendored[name]}}})
	}
	for _, o := range m.objects {
		parts = append(parts, file("bin:"+o.name, "bin/"+o.name, sum(o.data)))
	}
	var refs []string
	for _, c := range parts {
		refs = append(refs, c.BOMRef)
	}
	sort.Strings(refs)
	b := cdx.NewBOM()
	b.Metadata = &cdx.Metadata{Component: &product, Tools: &cdx.ToolsChoice{Components: &[]cdx.Component{m.tool()}}}
	b.Components = &parts
	b.Dependencies = &[]cdx.Dependency{{Ref: "product", Dependencies: &refs}}
	return b
}

func version(up lock.Upstream) string {
	if up.Tag != "" {
		return up.Tag
	}
	if up.Commit != "" {
		return up.Commit
	}
	return up.Tree
}

// upstream is llama.cpp, with the commit it was taken from and, as properties,
// the edits made in it.
func (m Made) upstream() cdx.Component {
	up := m.Lock.Upstream
	modified := len(m.Lock.Edits) > 0
	c := cdx.Component{
		BOMRef: refUpstream, Type: cdx.ComponentTypeLibrary, Name: "llama.cpp", Version: version(up), Modified: &modified,
		Licenses: &cdx.Licenses{{License: &cdx.License{ID: "MIT"}}},
	}
	props := []cdx.Property{{Name: "dot4fa:git-tree", Value: up.Tree}, {Name: "dot4fa:tree-before", Value: up.Before}}
	if up.After != "" {
		props = append(props, cdx.Property{Name: "dot4fa:tree-after", Value: up.After})
	}
	for _, e := range m.Lock.Edits {
		props = append(props, cdx.Property{Name: "dot4fa:edit:" + e.ID, Value: "sha256:" + e.SHA256})
	}
	c.Properties = &props
	if up.Commit == "" {
		return c // a plain directory: nothing proves where it is from
	}
	commit := cdx.Commit{UID: up.Commit}
	if strings.HasPrefix(m.URL, "https://") {
		commit.URL = strings.TrimSuffix(m.URL, ".git") + "/commit/" + up.Commit
		c.ExternalReferences = &[]cdx.ExternalReference{{Type: cdx.ERTypeVCS, URL: m.URL}}
	}
	if repo, ok := strings.CutPrefix(strings.TrimSuffix(m.URL, ".git"), "https://github.com/"); ok {
		c.PackageURL = "pkg:github/" + repo + "@" + up.Commit
	}
	c.Pedigree = &cdx.Pedigree{Commits: &[]cdx.Commit{commit}}
	return c
}

// properties are the facts of the build for which CycloneDX has no place of
// their own.
func (m Made) properties() *[]cdx.Property {
	props := []cdx.Property{
		{Name: "dot4fa:recipe", Value: m.Lock.Recipe.Name},
		{Name: "dot4fa:recipe-hash", Value: "sha256:" + m.Lock.Recipe.Hash},
	}
	if m.objects != nil { // nothing is said of a toolchain where nothing was built
		for _, t := range m.Lock.Toolchain {
			props = append(props, cdx.Property{Name: "dot4fa:tool:" + t.Name, Value: t.Version})
		}
	}
	for _, s := range m.system {
		props = append(props, cdx.Property{Name: "dot4fa:needs:" + s.Name, Value: s.From})
	}
	return &props
}

func file(ref, name, sum string) cdx.Component {
	return cdx.Component{BOMRef: ref, Type: cdx.ComponentTypeFile, Name: name,
		Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: sum}}}
}

// tool is dot4fa, with the Go modules in it.
func (m Made) tool() cdx.Component {
	c := cdx.Component{BOMRef: "dot4fa", Type: cdx.ComponentTypeApplication, Name: "dot4fa", Version: m.Version}
	if m.Tool == nil {
		return c
	}
	var mods []cdx.Component
	for _, d := range m.Tool.Deps {
		if d.Replace != nil {
			d = d.Replace
		}
		purl := golang(d.Path, d.Version)
		mod := cdx.Component{BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: d.Path, Version: d.Version, PackageURL: purl}
		if d.Sum != "" {
			mod.Properties = &[]cdx.Property{{Name: "dot4fa:go-sum", Value: d.Sum}}
		}
		mods = append(mods, mod)
	}
	if m.Tool.GoVersion != "" {
		v := strings.TrimPrefix(m.Tool.GoVersion, "go")
		mods = append(mods, cdx.Component{BOMRef: golang("std", v), Type: cdx.ComponentTypeLibrary, Name: "std", Version: v, PackageURL: golang("std", v)})
	}
	if mods != nil {
		c.Components = &mods
	}
	return c
}

// golang is the package URL of a Go module. Its type asks for lower case.
func golang(path, version string) string {
	return "pkg:golang/" + strings.ToLower(path) + "@" + strings.ReplaceAll(version, "+", "%2B")
}

// sum is the sha256 of data in hex.
func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}
