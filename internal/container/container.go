// Package container runs a build in a container that has ROCm, with docker or
// podman: the work tree and the caches are mounted under their own names, so
// that a build directory, a compiler cache and a printed command mean the same
// inside and outside, and what is made there belongs to the user.
package container

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"dot4fa/internal/fault"
	"dot4fa/internal/machine"
	"dot4fa/internal/shell"
)

// EngineEnv names the engine to use, a program's name or path.
const EngineEnv = "DOT4FA_CONTAINER_ENGINE"

// Engine is docker, podman, or a program that is called like one of them.
type Engine struct {
	Path   string
	Podman bool
}

// Find returns the engine of a machine: the one that $DOT4FA_CONTAINER_ENGINE
// names, else docker or podman.
func Find(on machine.System) (*Engine, error) {
	names := []string{"docker", "podman"}
	if v := on.Getenv(EngineEnv); v != "" {
		names = []string{v}
	}
	for _, name := range names {
		if path := on.LookPath(name); path != "" {
			return &Engine{path, strings.Contains(filepath.Base(path), "podman")}, nil
		}
	}
	return nil, fault.New(fault.Environment, "no %s on PATH", strings.Join(names, " or ")).
		Hintf("install one, or name it with %s; without containers: dot4fa toolchain bootstrap DIR makes a toolchain for compiling", EngineEnv)
}

// Run is a command in a container.
type Run struct {
	Image string
	Dir   string   // working directory
	Write []string // directories that it may write to; made when they are missing
	Read  []string // files and directories that it may read
	Env   []string // NAME=value
	GPU   bool     // pass the GPU's devices through
	Args  []string // the command; its program has to be in the image or under Read
}

// CheckImage refuses what is no name of an image. pinned says whether the name
// holds a digest, so that it always means the same image.
func CheckImage(name string) (pinned bool, err error) {
	if name == "" || strings.HasPrefix(name, "-") || strings.ContainsAny(name, " \t\n") {
		return false, fault.New(fault.Usage, "%q is no name of an image", name).
			Hintf("--container NAME:TAG or NAME@sha256:DIGEST, as docker run takes it")
	}
	_, digest, at := strings.Cut(name, "@")
	if !at {
		return false, nil
	}
	sum, ok := strings.CutPrefix(digest, "sha256:")
	if !ok || len(sum) != 64 || strings.Trim(sum, "0123456789abcdef") != "" {
		return false, fault.New(fault.Usage, "%s is no digest: sha256: and 64 hexadecimal digits are", digest).At("--container %s", name).
			Hintf("docker images --digests lists them")
	}
	return true, nil
}

// Command returns the engine's command line for r.
func (e *Engine) Command(r Run) (shell.Command, error) {
	args := []string{"run", "--rm", "--init"}
	// What is made belongs to the user who asked for it. Rootless podman maps
	// its user to root inside, which is undone.
	args = append(args, "--user", strconv.Itoa(os.Getuid())+":"+strconv.Itoa(os.Getgid()))
	if e.Podman && os.Getuid() != 0 {
		args = append(args, "--userns", "keep-id")
	}
	args = append(args, "--security-opt", "label=disable") // SELinux would hide what is mounted
	if r.GPU {
		args = append(args, "--device", "/dev/kfd", "--device", "/dev/dri", "--group-add", "video", "--group-add", "render")
	}
	for _, m := range mounts(r.Write, r.Read) {
		if strings.ContainsAny(m.path, ":,") {
			return shell.Command{}, fault.New(fault.Usage, "the engine cannot mount a name with a colon or a comma").At("%s", m.path).
				Hintf("use a directory with another name")
		}
		arg := m.path + ":" + m.path
		if m.readOnly {
			arg += ":ro"
		}
		args = append(args, "--volume", arg)
	}
	for _, env := range r.Env {
		args = append(args, "--env", env)
	}
	if r.Dir != "" {
		args = append(args, "--workdir", r.Dir)
	}
	return shell.Command{Path: e.Path, Args: append(append(args, r.Image), r.Args...)}, nil
}

type mount struct {
	path     string
	readOnly bool
}

// mounts lists each path once: what lies in one that is mounted as well needs
// no mount of its own.
func mounts(write, read []string) []mount {
	var out []mount
	inside := func(path string, readOnly bool) bool {
		return slices.ContainsFunc(out, func(m mount) bool {
			return (m.path == path || strings.HasPrefix(path, m.path+"/")) && (readOnly || !m.readOnly)
		})
	}
	for _, list := range []struct {
		paths    []string
		readOnly bool
	}{{write, false}, {read, true}} {
		paths := slices.Clone(list.paths)
		slices.Sort(paths) // a directory before what it holds
		for _, p := range paths {
			if p != "" && !inside(p, list.readOnly) {
				out = append(out, mount{p, list.readOnly})
			}
		}
	}
	// The engine mounts in this order, and an inner one has to come later.
	slices.SortFunc(out, func(a, b mount) int { return strings.Compare(a.path, b.path) })
	return out
}

// Prepare makes the directories that r writes to: the engine would make missing
// ones as root.
func (r Run) Prepare() error {
	for _, dir := range r.Write {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fault.New(fault.Environment, "cannot make a directory for the container: %w", err).At("%s", dir).
				Hintf("check the permissions of its parent")
		}
	}
	return nil
}

// Failed turns the engine's exit status into a fault. A build that failed
// inside has said why itself, and its exit code is kept.
func (e *Engine) Failed(err error, r Run) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return fault.New(fault.Environment, "%s could not start: %w", e.Path, err).Hintf("name another engine, or build without a container")
	}
	name := filepath.Base(e.Path)
	switch code := exit.ExitCode(); code {
	case 125:
		return fault.New(fault.Environment, "%s could not run image %s", name, r.Image).
			Hintf("is its service running, may you use it, and is the image there? %s run --rm %s true", name, r.Image)
	case 126, 127:
		return fault.New(fault.Environment, "image %s cannot start %s", r.Image, r.Args[0]).
			Hintf("a dot4fa built with CGO_ENABLED=0 runs in every Linux image of this architecture")
	case fault.Usage, fault.EditFails, fault.Environment, fault.BuildFailed, fault.VerifyFailed, fault.Interrupted:
		return fault.New(code, "the build in image %s stopped", r.Image).Hintf("see what it says above; the same command goes on from there")
	default:
		return fault.New(fault.Failure, "the build in image %s stopped: %w", r.Image, err).
			Hintf("see what it says above; without a word, the memory may have run out: try fewer --jobs")
	}
}
