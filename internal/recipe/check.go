package recipe

import (
	"strconv"
	"strings"

	"dot4fa/internal/nearest"
)

func (k *Key) checkInt(pos Pos, n int) error {
	ok := true
	switch {
	case len(k.Allowed) > 0:
		ok = contains(k.Allowed, strconv.Itoa(n))
	default:
		ok = n >= k.Min && n <= k.Max && (!k.Pow2 || pow2(n))
	}
	if ok {
		return nil
	}
	return bad(pos, "%s cannot be %d", k.Path, n).Hintf("allowed: %s", k.allowedText())
}

func (k *Key) checkOne(pos Pos, s string) error {
	if len(k.Allowed) > 0 {
		if contains(k.Allowed, s) {
			return nil
		}
		e := bad(pos, "%s cannot be %q", k.Path, s)
		if near := nearest.Hint(s, k.Allowed); near != "" {
			return e.Hintf("%s? allowed: %s", near, strings.Join(k.Allowed, ", "))
		}
		return e.Hintf("allowed: %s", strings.Join(k.Allowed, ", "))
	}
	if k.check != nil {
		if why := k.check(s); why != "" {
			return bad(pos, "%s cannot be %q", k.Path, s).Hintf("%s", why)
		}
	}
	return nil
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// lookup finds a key by its path.
func lookup(path string) *Key {
	for _, table := range [][]Key{topKeys, kernelKeys} {
		for i := range table {
			if table[i].Path == path {
				return &table[i]
			}
		}
	}
	return nil
}

// isGroup reports whether path is a mapping of keys of its own.
func isGroup(path string) bool { return path == "upstream" || path == "kernel" }

// names lists the keys allowed under prefix.
func names(prefix string) []string {
	var out []string
	for _, k := range Keys() {
		rest, ok := strings.CutPrefix(k.Path, prefix)
		if !ok {
			continue
		}
		name, _, _ := strings.Cut(rest, ".")
		if len(out) == 0 || out[len(out)-1] != name {
			out = append(out, name)
		}
	}
	return out
}
