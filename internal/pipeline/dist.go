package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"dot4fa/internal/build"
	"dot4fa/internal/dist"
	"dot4fa/internal/fault"
	"dot4fa/internal/lock"
	"dot4fa/internal/output"
	"dot4fa/internal/page"
)

// DistOptions say what Dist makes.
type DistOptions struct {
	Archive string   // the archive, a .tar.gz; "" for none
	SBOM    string   // the SBOM as a file of its own; "" for none
	System  []string // libraries besides the known ones that the system will have
	Jobs    int      // as for Build
}

// Dist packs what the recipe builds, building it first. Without an archive
// nothing is compiled: the SBOM is that of the edited sources.
func (r *Run) Dist(ctx context.Context, o DistOptions) (*dist.Info, error) {
	stages := []stageFunc{r.fetch, r.apply, r.asRecorded}
	if o.Archive != "" {
		if err := dist.Check(o.Archive); err != nil {
			return nil, err
		}
		if err := r.Tools(ctx).Require(r.Recipe); err != nil {
			return nil, err
		}
		stages = append(stages, r.configure, func(ctx context.Context, d *Done) error {
			return r.build(ctx, d, BuildOptions{Jobs: o.Jobs})
		})
	}
	var info *dist.Info
	_, err := r.locked(ctx, append(stages, func(ctx context.Context, d *Done) error {
		made, err := r.made()
		if err != nil {
			return err
		}
		var sbom []byte
		if o.Archive == "" {
			sbom, err = dist.SBOM(made)
		} else if info, err = r.pack(o, made); err == nil {
			sbom = info.SBOM
		}
		if err != nil || o.SBOM == "" {
			return err
		}
		return output.Write(o.SBOM, sbom, 0o644)
	})...)
	return info, err
}

// asRecorded makes sure that the lock speaks of the files in the tree. A file of
// upstream's that was changed by hand is built like any other, but what is
// given to others has to be what its lock says.
func (r *Run) asRecorded(ctx context.Context, _ *Done) error {
	s, err := r.Status(ctx)
	if err != nil {
		return err
	}
	if len(s.Changed) == 0 {
		return s.Err()
	}
	return fault.New(fault.EditFails, "%s of upstream's changed by hand, which lock and SBOM would not know: %s",
		page.Plural(len(s.Changed), "file"), strings.Join(s.Changed[:min(len(s.Changed), 5)], ", ")).At("%s", r.Work).
		Hintf("make each change an edit under patches/, and build in another --work directory")
}

func (r *Run) made() (dist.Made, error) {
	l, err := r.readLock()
	if err != nil {
		return dist.Made{}, err
	}
	tool, _ := debug.ReadBuildInfo()
	return dist.Made{Lock: l, URL: r.Recipe.Upstream.URL, Tool: tool, Version: r.Version, Tree: r.Work}, nil
}

func (r *Run) pack(o DistOptions, made dist.Made) (*dist.Info, error) {
	own, err := fs.ReadFile(r.Assets, "LICENSE")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	tree := build.TreeOf(r.Work)
	var names []string
	for _, p := range programs(tree, r.Recipe.Targets) {
		names = append(names, filepath.Base(p))
	}
	return dist.Write(o.Archive, dist.Source{
		Made: made, Name: fmt.Sprintf("llama.cpp-%s-%s", nameOf(made.Lock), r.Recipe.Name),
		Bin: tree.Bin(), Programs: names, Backend: r.Recipe.Backend,
		Modules: isOn(cached(tree, "GGML_BACKEND_DL")), Native: isOn(cached(tree, "GGML_NATIVE")), Own: own, System: o.System,
	})
}

// nameOf is upstream's tag, or the beginning of its commit or tree.
func nameOf(l *lock.Lock) string {
	up := l.Upstream
	switch {
	case up.Tag != "":
		return up.Tag
	case up.Commit != "":
		return up.Commit[:10]
	}
	return up.Tree[:10]
}

// cached is the value that CMake's cache has for a name, "" for none.
func cached(t build.Tree, name string) string {
	data, err := os.ReadFile(filepath.Join(t.Dir, "CMakeCache.txt"))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			_, value, _ := strings.Cut(rest, "=")
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// isOn reports whether CMake takes a value for true.
func isOn(v string) bool {
	switch strings.ToUpper(v) {
	case "1", "ON", "YES", "TRUE", "Y":
		return true
	}
	return false
}
