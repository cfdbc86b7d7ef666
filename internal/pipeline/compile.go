package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dot4fa/internal/build"
	"dot4fa/internal/lock"
	"dot4fa/internal/page"
	"dot4fa/internal/recipe"
	"dot4fa/internal/shell"
	"dot4fa/internal/toolchain"
)

func (r *Run) configure(ctx context.Context, d *Done) error {
	return d.stage("configure", func() (string, error) {
		tools := r.Tools(ctx)
		tree := build.TreeOf(r.Work)
		cmd := tree.ConfigureCommand(r.Recipe, tools)
		want, err := r.configuration(ctx, cmd, tools)
		if err != nil {
			return "", err
		}
		l, err := r.readLock()
		if err != nil {
			return "", err
		}
		if l.Fresh(stageConfigure, want.whole) && configured(tree) {
			return "", nil
		}
		stale := !l.Fresh(stageCMake, want.cmake)
		if err := r.record(l, lock.Stage{Name: stageConfigure}, lock.Stage{Name: stageBuild}); err != nil {
			return "", err
		}
		log, err := tree.Configure(ctx, cmd, stale, r.Report)
		if err != nil {
			return "", err
		}
		l.Toolchain = nil
		for _, t := range tools.Tools() {
			l.Toolchain = append(l.Toolchain, lock.Tool{Name: t.Name, Version: t.Version})
		}
		if err := r.record(l, lock.Stage{Name: stageCMake, Fingerprint: want.cmake}, lock.Stage{Name: stageConfigure, Fingerprint: want.whole}); err != nil {
			return "", err
		}
		if err := r.presets(tree, tools); err != nil {
			return "", err
		}
		launcher := "no compiler cache found"
		if t := tools.Launcher; t.Found() {
			launcher = "compiler cache " + filepath.Base(t.Path)
		}
		return fmt.Sprintf("%s, %s, log %s", r.Recipe.Backend, launcher, log), nil
	})
}

// presets leaves the configuration for those who drive CMake themselves. A file
// of their own stays as it is.
func (r *Run) presets(tree build.Tree, tools toolchain.Set) error {
	err := tree.WritePresets(r.Recipe, tools, build.ChooseJobs(r.Recipe.Backend, 0))
	if errors.Is(err, build.ErrOwnPresets) {
		r.Report.Say("dot4fa: note: %s is not dot4fa's and stays as it is", filepath.Join(r.Work, build.PresetsFile))
		return nil
	}
	return environment(err, r.Work, "cannot write the CMake presets")
}

// configured reports whether CMake has left what a build starts from.
func configured(t build.Tree) bool {
	for _, name := range []string{"CMakeCache.txt", "build.ninja"} {
		if _, err := os.Stat(filepath.Join(t.Dir, name)); err != nil {
			return false
		}
	}
	return true
}

func (r *Run) build(ctx context.Context, d *Done, o BuildOptions) error {
	targets := r.Recipe.Targets
	if len(o.Targets) > 0 {
		targets = o.Targets
	}
	tree := build.TreeOf(r.Work)
	tools := r.Tools(ctx)
	jobs := build.ChooseJobs(r.Recipe.Backend, o.Jobs)
	d.Jobs = &jobs
	err := d.stage("build", func() (string, error) {
		r.Report.Status("build     %s", jobs)
		done, err := tree.Compile(ctx, tree.CompileCommand(r.Recipe, targets, jobs, tools), r.Report)
		if err != nil {
			return "", err
		}
		d.Compiled = &done
		if err := r.recordBuild(targets); err != nil {
			return "", err
		}
		if done.Nothing() {
			return "", nil
		}
		ours, err := r.warnings(ctx, done)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s compiled, %d linked, %s in dot4fa's files, %s, log %s",
			page.Plural(done.Units, "unit"), done.Linked, page.Plural(ours, "warning"), jobs, done.Log), nil
	})
	if err != nil {
		return err
	}
	d.Programs = programs(tree, targets)
	d.Command = runCommand(r.Recipe, d.Programs)
	return r.libraries(ctx, d)
}

// warnings counts those about files that dot4fa adds.
func (r *Run) warnings(ctx context.Context, done build.Compiled) (n int, err error) {
	if len(done.Warnings) == 0 {
		return 0, nil
	}
	files, plan, err := r.filesAndPlan(ctx)
	if err != nil {
		return 0, err
	}
	for _, f := range files {
		n += done.Warnings[f.Path]
	}
	for _, f := range plan.Files {
		if f.New {
			n += done.Warnings[f.Path]
		}
	}
	return n, nil
}

// recordBuild notes in the lock that targets are built from what it describes.
func (r *Run) recordBuild(targets []string) error {
	l, err := r.readLock()
	if err != nil {
		return err
	}
	var from []lock.Stage
	for _, s := range l.Stages {
		if s.Name != stageBuild {
			from = append(from, s)
		}
	}
	return r.record(l, lock.Stage{Name: stageBuild, Fingerprint: lock.Fingerprint(from, targets)})
}

// programs are the built targets that can be started.
func programs(t build.Tree, targets []string) []string {
	var out []string
	for _, name := range targets {
		for _, ext := range []string{"", ".exe"} {
			file := filepath.Join(t.Bin(), name+ext)
			if info, err := os.Stat(file); err == nil && !info.IsDir() {
				out = append(out, file)
			}
		}
	}
	return out
}

// runCommand is the command that runs the most useful program built, with a
// packed16 K cache, from any directory. MODEL.gguf stands for the user's model.
func runCommand(r *recipe.Recipe, programs []string) string {
	for _, p := range []struct {
		name string
		args []string
	}{
		{"llama-server", []string{"-m", "MODEL.gguf", "-fa", "on", "-ctk", "packed16"}},
		{"llama-cli", []string{"-m", "MODEL.gguf", "-fa", "on", "-ctk", "packed16"}},
		{"llama-bench", []string{"-m", "MODEL.gguf", "-fa", "1", "-ctk", "packed16"}},
		{"llama-perplexity", []string{"-m", "MODEL.gguf", "-f", "TEXT", "-fa", "on", "-ctk", "packed16"}},
		{"test-backend-ops", []string{"-o", "PACK_K_PACKED16"}},
		{"", nil},
	} {
		for _, file := range programs {
			if base := strings.TrimSuffix(filepath.Base(file), ".exe"); base == p.name || p.name == "" {
				cmd := shell.Command{Path: file, Args: p.args}
				if p.name == "test-backend-ops" && r.Backend == recipe.CPU {
					cmd.Args = append(cmd.Args, "-b", "CPU") // which it leaves out by itself
				}
				for _, k := range slices.Sorted(maps.Keys(r.Env)) {
					cmd.Env = append(cmd.Env, k+"="+r.Env[k])
				}
				return cmd.String()
			}
		}
	}
	return ""
}
