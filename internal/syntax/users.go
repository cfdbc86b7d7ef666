package syntax

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"dot4fa/internal/series"
)

// users returns the units that the series does not edit but whose meaning it
// touches, because they name what an edit changes in a header: the function of
// a declaration it rewrites, a struct it gives a member, the last enumerator of
// an enum it adds to. skip are units that are compiled anyhow.
func (t *Tree) users(skip, named map[string]bool) (map[string][]string, error) {
	names := t.changedNames()
	out := map[string][]string{}
	if names == nil {
		return out, nil
	}
	for _, f := range t.Files {
		if !IsUnit(f.Path) || skip[f.Path] {
			continue
		}
		for _, name := range names {
			key := f.ID + " " + name
			has, known := named[key]
			if !known {
				data, err := t.Read(f.Path)
				if err != nil {
					return nil, err
				}
				for _, n := range names {
					named[f.ID+" "+n] = hasWord(data, n)
				}
				has = named[key]
			}
			if has {
				out[f.Path] = append(out[f.Path], name)
			}
		}
	}
	return out, nil
}

// changedNames are the names that the edits in headers change for others.
func (t *Tree) changedNames() []string {
	var names []string
	for _, r := range t.Plan.Results {
		if r.Status != series.OK || !isHeader(r.File) {
			continue
		}
		e := t.edit(r.ID)
		if e == nil {
			continue
		}
		kind, inner := "", ""
		if n := len(e.Scope); n > 0 {
			kind, inner, _ = strings.Cut(e.Scope[n-1], " ")
		}
		switch {
		case kind == "enum":
			names = append(names, identifier.FindAllString(e.Anchor, -1)...)
		case kind == "struct":
			names = append(names, inner)
		case e.Do == series.Replace && len(r.Lines) > 0:
			if f := t.Plan.File(r.File); f != nil {
				names = append(names, declared(f.Pre, r.Lines[0]))
			}
		}
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
}

func (t *Tree) edit(id string) *series.Edit {
	for _, m := range t.Plan.Members {
		for _, e := range m.Edits {
			if e.ID == id {
				return e
			}
		}
	}
	return nil
}

var (
	identifier = regexp.MustCompile(`[A-Za-z_]\w*`)
	called     = regexp.MustCompile(`([A-Za-z_]\w*)\s*\(`)
)

// declared is the function of the declaration that line (from 1) of src is part of, or "".
func declared(src []byte, line int) string {
	at := 0
	for range line - 1 {
		next := bytes.IndexByte(src[at:], '\n')
		if next < 0 {
			return ""
		}
		at += next + 1
	}
	from := bytes.LastIndexAny(src[:at], ";{}") + 1
	end := len(src)
	if n := bytes.IndexAny(src[at:], ";{}"); n >= 0 {
		end = at + n
	}
	if m := called.FindSubmatch(src[from:end]); m != nil {
		return string(m[1])
	}
	return ""
}

// hasWord reports whether src holds name, not as a part of a longer one.
func hasWord(src []byte, name string) bool {
	inWord := func(i int) bool {
		return i >= 0 && i < len(src) && (src[i] == '_' || src[i] >= '0' && src[i] <= '9' || src[i]|0x20 >= 'a' && src[i]|0x20 <= 'z')
	}
	for at := 0; ; {
		n := bytes.Index(src[at:], []byte(name))
		if n < 0 {
			return false
		}
		at += n
		if !inWord(at-1) && !inWord(at+len(name)) {
			return true
		}
		at += len(name)
	}
}
