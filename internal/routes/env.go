package routes

import (
	"fmt"
	"strings"

	"dot4fa/internal/fault"
	"dot4fa/internal/recipe"
)

// Env is the environment after every flag was read and checked once. Make one
// with ParseEnv.
type Env struct {
	value map[string]int
	set   map[string]bool
	Notes []string // said once at load: flags that do nothing, or are ignored
}

// ParseEnv reads all flags through lookup (os.LookupEnv has its shape). An
// unset or empty variable takes its default. A value that is not allowed is an
// error naming the ones that are; all of them are found in one go.
func ParseEnv(k recipe.Kernel, lookup func(string) (string, bool)) (Env, error) {
	e := Env{value: map[string]int{}, set: map[string]bool{}}
	flags := Flags(k)
	unsafe, bad := false, []string{}
	for _, f := range flags {
		if f.Default != "" {
			e.value[f.ID], _ = f.value(f.Default)
		}
		text, _ := lookup(f.Name)
		if text == "" {
			continue
		}
		v, ok := f.value(text)
		if !ok {
			bad = append(bad, fmt.Sprintf("%s=%s is not allowed: use %s", f.Name, text, f.AllowedText()))
			continue
		}
		e.value[f.ID], e.set[f.ID] = v, true
		if f.ID == flagUnsafe {
			unsafe = v == 1
		}
	}
	if len(bad) > 0 {
		return Env{}, fault.New(fault.Usage, "%s", strings.Join(bad, "\n")).
			Hintf("`dot4fa env --explain` lists every flag and its values")
	}
	for _, f := range flags {
		switch {
		case !e.set[f.ID]:
		case f.Status == Accepted:
			e.Notes = append(e.Notes, fmt.Sprintf("%s is accepted and does nothing: %s", f.Name, f.Because))
		case f.Status == Unsafe && e.value[f.ID] != 0 && !unsafe:
			e.value[f.ID], e.set[f.ID] = 0, false
			e.Notes = append(e.Notes, fmt.Sprintf("%s is unsafe and ignored without %s=1: %s", f.Name, flags[1].Name, f.Because))
		}
	}
	return e, nil
}

func (e Env) on(id string) bool { return e.value[id] != 0 }
