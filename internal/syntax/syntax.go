// Package syntax asks compilers whether the edited units of an upstream commit
// still compile, without a work tree, a configured build or any code made: an
// edit can find its place and still use a name that is not there.
//
// Units for the CPU go to the host compiler. Device units go to a clang that
// knows AMD GPUs, twice: for the host and for gfx1100. With HIP's headers these
// are all device units, on upstream's own headers; without, those kernels that
// compile on dot4fa's stand-in headers, and the rest is reported as not checked.
//
// A verdict depends on the compiler, its arguments and the files it read. It is
// kept under these, so that commits which share them are compiled once.
package syntax

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"dot4fa/internal/fault"
	"dot4fa/internal/isa"
	"dot4fa/internal/series"
)

// Status is what a compiler said of a unit.
type Status string

// The answers.
const (
	OK         Status = "ok"
	Failed     Status = "failed"
	NotChecked Status = "not checked" // it cannot be judged here; Detail says why
)

// Unit is one source file that the series edits, adds, or touches through a header.
type Unit struct {
	File    string   `json:"file"`
	Device  bool     `json:"device,omitempty"`
	Status  Status   `json:"status"`
	Detail  string   `json:"detail,omitempty"`  // the compiler's errors
	Edits   []string `json:"edits,omitempty"`   // made in the file
	Uses    []string `json:"uses,omitempty"`    // names an edit changes in a header; the file itself is upstream's
	Cached  bool     `json:"cached,omitempty"`  // the verdict is an earlier one, on the same content
	Seconds float64  `json:"seconds,omitempty"` // that the compiler took, now or then
}

// Tree is a commit with the series made in it.
type Tree struct {
	Files []File                            // upstream's
	Read  func(path string) ([]byte, error) // upstream's content
	Plan  *series.Plan
	Added []series.Rendered
}

// File is one of upstream's files and the id of its content.
type File struct{ Path, ID string }

// Tools are the compilers.
type Tools struct {
	CC, CXX string
	Device  *isa.Compiler // nil: there is none
	HIP     string        // directory with include/hip/hip_runtime.h; empty: only the stand-in headers
}

// Checker compiles the units of any number of commits.
type Checker struct {
	tools Tools
	jobs  int
	desk  desk
	cache *cache
	named map[string]bool // blob id and name: whether the one has the other
}

// New returns a checker that runs jobs compilers at a time and keeps verdicts
// under the directory cache, or only in memory when it is empty. Close it.
func New(tools Tools, cacheDir string, jobs int) (*Checker, error) {
	dir, err := os.MkdirTemp("", "dot4fa-syntax-*")
	if err != nil {
		return nil, fault.Temporary(err)
	}
	return &Checker{tools: tools, jobs: max(jobs, 1), desk: desk{dir: dir, has: map[string]string{}}, cache: newCache(cacheDir), named: map[string]bool{}}, nil
}

// Close removes what was laid out for the compilers.
func (c *Checker) Close() error { return os.RemoveAll(c.desk.dir) }

// Check compiles every unit of t. The order is that of the paths.
//
// A unit that fails where upstream's own, without the series, fails as well says
// nothing about the series: it is not checked.
func (c *Checker) Check(ctx context.Context, t Tree) ([]Unit, error) {
	img, units, err := t.edited(c.named)
	if err != nil {
		return nil, err
	}
	if err := c.compile(ctx, img, units); err != nil {
		return nil, err
	}
	var failed []int
	var bare []Unit
	for i, u := range units {
		if u.Status == Failed && t.hasUpstream(u.File) {
			failed = append(failed, i)
			bare = append(bare, Unit{File: u.File, Device: u.Device})
		}
	}
	if failed != nil {
		if err := c.compile(ctx, t.pristine(), bare); err != nil {
			return nil, err
		}
		for k, i := range failed {
			if bare[k].Status == Failed {
				units[i].Status = NotChecked
				units[i].Detail = "without the edits it does not compile here either: " + firstLine(bare[k].Detail)
			}
		}
	}
	return units, c.cache.save()
}

// compile judges units, whose content and headers are in img.
func (c *Checker) compile(ctx context.Context, img *image, units []Unit) error {
	var left []*Unit
	var keys []string
	for i := range units {
		u := &units[i]
		if u.Status != "" {
			continue // decided already
		}
		commands, why := c.tools.commands(u)
		if why != "" {
			u.Status, u.Detail = NotChecked, why
			continue
		}
		key := c.cache.key(commands)
		if c.cache.find(key, img, u) {
			continue
		}
		left, keys = append(left, u), append(keys, key)
	}
	if left == nil {
		return nil
	}
	if err := c.desk.lay(img); err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(c.jobs)
	for i, u := range left {
		g.Go(func() error {
			commands, _ := c.tools.commands(u)
			start := time.Now()
			read, err := u.run(gctx, c.desk.dir, commands)
			if err != nil {
				return err
			}
			u.Seconds = float64(time.Since(start).Milliseconds()) / 1000
			c.cache.put(keys[i], img, u, read)
			return nil
		})
	}
	return g.Wait()
}

// Bad are the units that failed.
func Bad(units []Unit) []Unit {
	var bad []Unit
	for _, u := range units {
		if u.Status == Failed {
			bad = append(bad, u)
		}
	}
	return bad
}

// Summary puts the outcome in words.
func Summary(units []Unit) string {
	n := map[Status]int{}
	for _, u := range units {
		n[u.Status]++
	}
	text := fmt.Sprintf("%d units compile", n[OK])
	if n[OK] == 1 {
		text = "1 unit compiles"
	}
	if n[Failed] > 0 {
		text += fmt.Sprintf(", %d fail", n[Failed])
	}
	if n[NotChecked] > 0 {
		text += fmt.Sprintf(", %d not checked", n[NotChecked])
	}
	return text
}
