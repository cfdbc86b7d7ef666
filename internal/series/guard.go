package series

import (
	"fmt"

	"dot4fa/internal/fault"
)

// guarded says why e is not made on this tree, or "".
func (v *survey) guarded(e *Edit) (string, error) {
	for _, p := range e.Probes {
		file, err := v.open(p.File)
		if err != nil {
			return "", err
		}
		has := !file.absent && len(file.file().Find(p.pattern, file.file().All())) > 0
		if p.Has != "" && !has {
			return fmt.Sprintf("%s has no %s", p.File, p.Has), nil
		}
		if p.Lacks != "" && has {
			return fmt.Sprintf("%s has %s", p.File, p.Lacks), nil
		}
	}
	for _, g := range []struct {
		commit string
		want   bool
		text   string
	}{{e.Since, true, "the tree is older than %.12s"}, {e.Until, false, "the tree contains %.12s"}} {
		if g.commit == "" {
			continue
		}
		if v.hooks.Contains == nil {
			return "", fault.New(fault.Usage, "edit %s depends on commit %.12s, and the history of the tree is not known", e.ID, g.commit).
				At("%s", e.Where).Hintf("name an upstream repository with --upstream, not a plain directory")
		}
		has, err := v.hooks.Contains(g.commit)
		if err != nil {
			return "", fmt.Errorf("edit %s depends on commit %.12s: %w", e.ID, g.commit, err)
		}
		if has != g.want {
			return fmt.Sprintf(g.text, g.commit), nil
		}
	}
	return "", nil
}
