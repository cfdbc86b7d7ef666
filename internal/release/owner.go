package release

import (
	"path"
	"regexp"
	"strings"

	"dot4fa/internal/series"
)

var (
	fileToken   = regexp.MustCompile(`[A-Za-z0-9_.+-]+\.[A-Za-z0-9_]+`)
	includeLine = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*include[ \t]+"([^"\n]+)"`)
)

// owners says for each added file which member of the series brings it:
//
//  1. the first one whose edits name the file (by its base name: an #include,
//     an entry in a CMake list),
//  2. or that brings a file which includes it, directly or not;
//  3. for a file nobody names, as device code that upstream's build finds by
//     pattern, the first one that edits a file in the nearest directory above it;
//  4. and never a later one than brings a file which includes it.
//
// So whatever a member's text refers to is there once the member is applied.
func owners(members []series.Member, files []series.Rendered) []int {
	owner := make([]int, len(files))
	byName := map[string][]int{}
	for i, f := range files {
		owner[i] = -1
		byName[path.Base(f.Path)] = append(byName[path.Base(f.Path)], i)
	}
	var claim func(name string, m int)
	claim = func(name string, m int) {
		for _, i := range byName[path.Base(name)] {
			if owner[i] >= 0 {
				continue
			}
			owner[i] = m
			for _, inc := range includeLine.FindAllSubmatch(files[i].Data, -1) {
				claim(string(inc[1]), m)
			}
		}
	}
	for m := range members {
		for _, e := range members[m].Edits {
			for _, name := range fileToken.FindAllString(e.Text, -1) {
				claim(name, m)
			}
		}
	}
	for i, f := range files {
		if owner[i] < 0 {
			claim(f.Path, nearestMember(members, f.Path))
		}
	}
	for moved := true; moved; {
		moved = false
		for i, f := range files {
			for _, inc := range includeLine.FindAllSubmatch(f.Data, -1) {
				for _, j := range byName[path.Base(string(inc[1]))] {
					if owner[j] > owner[i] {
						owner[j], moved = owner[i], true
					}
				}
			}
		}
	}
	return owner
}

// nearestMember is the first member that edits a file in the directory of name,
// or in the nearest one above it that has any.
func nearestMember(members []series.Member, name string) int {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		for m := range members {
			for _, e := range members[m].Edits {
				if strings.HasPrefix(e.File, dir+"/") {
					return m
				}
			}
		}
	}
	return len(members) - 1
}
