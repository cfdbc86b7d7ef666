package machine

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Links are followed inside the tree that stands for the machine, wherever an
// absolute one leads on this one.
func TestResolve(t *testing.T) {
	s := System{Root: t.TempDir()}
	mk := func(name string) {
		if err := os.MkdirAll(filepath.Join(s.Root, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	mk("opt/rocm-7.1.1/lib/llvm/bin")
	mk("etc/alternatives")
	for link, to := range map[string]string{
		"opt/rocm": "/etc/alternatives/rocm", "etc/alternatives/rocm": "/opt/rocm-7.1.1", "opt/rocm-7.1.1/llvm": "lib/llvm",
		"up": "../../../opt", "loop": "loop", "gone": "/no/where",
	} {
		if err := os.Symlink(to, filepath.Join(s.Root, link)); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		"/opt/rocm/llvm/bin": "/opt/rocm-7.1.1/lib/llvm/bin", "/opt/rocm/not/there": "/opt/rocm-7.1.1/not/there",
		"/up/rocm": "/opt/rocm-7.1.1", "/opt/../etc/./alternatives/rocm": "/opt/rocm-7.1.1", "/gone": "/no/where", "/": "/",
	} {
		if got := s.Resolve(path); got != want {
			t.Errorf("%s leads to %s, want %s", path, got, want)
		}
	}
	s.Resolve("/loop/x") // ends
	if !s.IsDir("/opt/rocm/llvm/bin") || s.IsDir("/gone") || s.IsFile("/opt/rocm") {
		t.Error("files and directories are not told apart")
	}
}

func TestLookPath(t *testing.T) {
	s := System{Root: t.TempDir(), Vars: []string{"PATH=/nowhere", "PATH=relative:/one:/two"}}
	for name, mode := range map[string]os.FileMode{"one/a": 0o644, "two/a": 0o755, "two/b": 0o755} {
		if err := os.MkdirAll(filepath.Join(s.Root, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(s.Root, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"a": "/two/a", "b": "/two/b", "c": "", "": "", "/two/b": "/two/b", "/one/a": "", "two": ""} {
		if got := s.LookPath(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}

func TestDevice(t *testing.T) {
	dev := func(mode fs.FileMode) map[string]Device {
		return map[string]Device{"/dev/kfd": {Mode: mode, Owner: "root", Group: "render"}}
	}
	root := t.TempDir()
	for _, c := range []struct {
		mode   fs.FileMode
		user   User
		denied bool
	}{
		{0o660, User{Name: "root", Root: true}, false},
		{0o660, User{Name: "alice", Groups: []string{"alice", "render"}}, false},
		{0o660, User{Name: "alice", Groups: []string{"alice", "video"}}, true},
		{0o666, User{Name: "alice"}, false},
		{0o606, User{Name: "alice", Groups: []string{"render"}}, true}, // the group's bits count, and no others
		{0o440, User{Name: "alice", Groups: []string{"render"}}, true},
	} {
		d := System{Root: root, Devices: dev(c.mode), User: c.user}.Device("/dev/kfd")
		if d.Denied() != c.denied || !d.Exists {
			t.Errorf("%04o for %+v: denied %v, want %v", c.mode, c.user, d.Denied(), c.denied)
		}
	}
	if d := (System{Root: root}).Device("/dev/kfd"); d.Exists || d.Denied() {
		t.Errorf("a device that is not there: %+v", d)
	}
	if d := Host().Device("/dev/null"); !d.Exists || d.Err != nil {
		t.Errorf("this machine's /dev/null: %+v", d)
	}
}

func TestFreeBytes(t *testing.T) {
	if n := Host().FreeBytes(filepath.Join(t.TempDir(), "not", "there", "yet")); n <= 0 {
		t.Errorf("%d bytes free where a directory would be made", n)
	}
	s := System{Root: "/", Free: map[string]int64{"/": 10, "/home": 5}}
	if a, b := s.FreeBytes("/home/alice/work"), s.FreeBytes("/srv"); a != 5 || b != 10 {
		t.Errorf("%d and %d bytes, want 5 and 10", a, b)
	}
}
