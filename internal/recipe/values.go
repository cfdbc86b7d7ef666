package recipe

import (
	"encoding/json"
	"sort"
	"strings"
)

// Value is one key of a resolved recipe and its value as one line of text.
type Value struct{ Key, Value string }

// Values returns every value of the recipe in the order of Keys, the entries of
// a mapping in name order.
func (r *Recipe) Values() []Value {
	data, err := json.Marshal(r)
	if err != nil {
		panic("recipe: " + err.Error()) // strings, ints and bools only: cannot happen
	}
	flat := map[string]json.RawMessage{}
	flatten("", data, flat)
	var out []Value
	for _, k := range Keys() {
		if k.Kind != Entries {
			if v, ok := flat[k.Path]; ok {
				out = append(out, Value{k.Path, text(v)})
			}
			continue
		}
		var names []string
		for p := range flat {
			if strings.HasPrefix(p, k.Path+".") {
				names = append(names, p)
			}
		}
		sort.Strings(names)
		for _, p := range names {
			out = append(out, Value{p, text(flat[p])})
		}
	}
	return out
}

func flatten(path string, data json.RawMessage, into map[string]json.RawMessage) {
	var group map[string]json.RawMessage
	if json.Unmarshal(data, &group) != nil {
		into[path] = data
		return
	}
	for k, v := range group {
		if path != "" {
			k = path + "." + k
		}
		flatten(k, v, into)
	}
}

func text(data json.RawMessage) string {
	var s string
	if json.Unmarshal(data, &s) == nil {
		return s
	}
	var list []any
	if json.Unmarshal(data, &list) == nil {
		return strings.ReplaceAll(string(data), ",", ", ")
	}
	return string(data)
}
