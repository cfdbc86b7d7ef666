package container

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dot4fa/internal/fault"
	"dot4fa/internal/machine"
)

func TestCommand(t *testing.T) {
	user := fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid())
	r := Run{
		Image: "rocm@sha256:" + strings.Repeat("ab", 32), Dir: "/copy",
		Write: []string{"/w/tree", "/cache", "/w/tree/build"}, Read: []string{"/copy", "/w", "/cache/locks", "/bin/dot4fa"},
		Env: []string{"HOME=/cache/home"}, Args: []string{"/bin/dot4fa", "build", "--work", "/w/tree"},
	}
	c, err := (&Engine{Path: "/usr/bin/docker"}).Command(r)
	if err != nil {
		t.Fatal(err)
	}
	want := "/usr/bin/docker run --rm --init --user " + user + " --security-opt label=disable --volume /bin/dot4fa:/bin/dot4fa:ro " +
		"--volume /cache:/cache --volume /copy:/copy:ro --volume /w:/w:ro --volume /w/tree:/w/tree --env HOME=/cache/home --workdir /copy " +
		r.Image + " /bin/dot4fa build --work /w/tree"
	if c.String() != want {
		t.Errorf("command\n%s, want\n%s", c, want)
	}
	r.GPU = true
	if c, err = (&Engine{Path: "/usr/bin/podman", Podman: true}).Command(r); err != nil {
		t.Fatal(err)
	}
	if keeps := strings.Contains(c.String(), "--userns keep-id"); keeps != (os.Getuid() != 0) || !strings.Contains(c.String(), "--device /dev/kfd") {
		t.Errorf("podman: %s", c)
	}
	r.Write = []string{"/a:b"}
	if _, err := (&Engine{Path: "docker"}).Command(r); fault.Code(err) != fault.Usage {
		t.Errorf("a name with a colon: %v", err)
	}
}

func TestCheckImage(t *testing.T) {
	for name, want := range map[string]string{
		"rocm/dev:7.2":   "tag",
		"host:5000/rocm": "tag",
		"rocm@sha256:" + strings.Repeat("0f", 32):   "digest",
		"rocm:7@sha256:" + strings.Repeat("0f", 32): "digest",
		"rocm@sha256:0f":                          "error",
		"rocm@" + strings.Repeat("0f", 32):        "error",
		"rocm@sha256:" + strings.Repeat("0F", 32): "error",
		"":                  "error",
		"--privileged":      "error",
		"rocm --privileged": "error",
	} {
		got := "tag"
		pinned, err := CheckImage(name)
		if pinned {
			got = "digest"
		}
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%q: %s (%v), want %s", name, got, err, want)
		}
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	on := machine.System{Root: dir, Vars: []string{"PATH=/bin"}}
	if _, err := Find(on); fault.Code(err) != fault.Environment || !strings.Contains(fault.Hint(err), "toolchain bootstrap") {
		t.Errorf("without an engine: %v", err)
	}
	for _, name := range []string{"podman", "docker"} {
		if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "bin", name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		e, err := Find(on)
		if err != nil || e.Path != "/bin/"+name || e.Podman != (name == "podman") {
			t.Errorf("with %s: %v, %v", name, e, err)
		}
	}
	on.Vars = append(on.Vars, EngineEnv+"=podman")
	if e, err := Find(on); err != nil || !e.Podman {
		t.Errorf("named: %v, %v", e, err)
	}
}
