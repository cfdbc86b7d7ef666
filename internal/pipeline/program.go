package pipeline

import (
	"dot4fa/internal/build"
	"dot4fa/internal/fault"
)

// Program returns the path of a program that was built in the work tree.
func (r *Run) Program(name string) (string, error) {
	found := programs(build.TreeOf(r.Work), []string{name})
	if len(found) == 0 {
		return "", fault.New(fault.Environment, "%s is not built in the work tree", name).At("%s", r.Work).
			Hintf("build it: %s", r.Command("build"))
	}
	return found[0], nil
}
