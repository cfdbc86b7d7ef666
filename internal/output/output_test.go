package output

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a file")
	for _, text := range []string{"first", "second"} {
		if err := Write(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(name); string(got) != text {
			t.Errorf("%q, not %q", got, text)
		}
	}
	f, err := Create(name, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("half")); err != nil {
		t.Fatal(err)
	}
	f.Discard()
	if got, _ := os.ReadFile(name); string(got) != "second" {
		t.Errorf("what was discarded is there: %q", got)
	}
	if err := Write(dir, nil, 0o600); err == nil {
		t.Error("a directory was written to")
	}
	if err := Write(filepath.Join(dir, "none", "x"), nil, 0o600); err == nil {
		t.Error("a file was written to a directory that is not there")
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

// A link keeps being one, and what it leads to is written, there or not.
func TestLink(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join("sub", "real"), link); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	for range 2 {
		if err := Write(link, []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Fatal("the link is gone")
		}
		if got, _ := os.ReadFile(filepath.Join(dir, "sub", "real")); string(got) != "text" {
			t.Errorf("the file has %q", got)
		}
	}
	loop := filepath.Join(dir, "loop")
	if err := os.Symlink("loop", loop); err != nil {
		t.Fatal(err)
	}
	if err := Write(loop, nil, 0o600); err == nil {
		t.Error("a link to itself was written to")
	}
}

// A device is written to and stays what it is. The links are to devices too:
// were they replaced, it would be the links and not the machine's devices.
func TestDevice(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the devices are Linux's")
	}
	for device, fails := range map[string]bool{"/dev/null": false, "/dev/full": true} {
		before, err := os.Stat(device)
		if err != nil || before.Mode()&os.ModeDevice == 0 {
			t.Skipf("no device %s here", device)
		}
		link := filepath.Join(t.TempDir(), "device")
		if err := os.Symlink(device, link); err != nil {
			t.Fatal(err)
		}
		if err := Write(link, []byte("text"), 0o600); (err != nil) != fails {
			t.Errorf("%s: %v", device, err)
		}
		if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("the link to %s was replaced", device)
		}
		if name, direct, err := target(device); err != nil || !direct || name != device {
			t.Errorf("%s would be replaced: %s, %v, %v", device, name, direct, err)
		}
	}
}
