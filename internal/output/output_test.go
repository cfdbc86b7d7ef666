package output

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"dot4fa/internal/fault"
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
	if err := Dir(filepath.Join(name, "x")); fault.Code(err) != fault.Usage {
		t.Errorf("a directory in a file: %v", err)
	}
	if err := Dir(dir); err != nil {
		t.Error(err)
	}
	for where, want := range map[string]string{
		dir:                             "it is a directory",
		filepath.Join(dir, "none", "x"): "there is no directory " + filepath.Join(dir, "none"),
		filepath.Join(name, "x"):        "there is no directory " + name,
	} {
		err := Write(where, nil, 0o600)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", where, err, want)
		}
		if fault.Code(err) != fault.Usage || fault.Hint(err) == "" {
			t.Errorf("%s: code %d, hint %q", where, fault.Code(err), fault.Hint(err))
		}
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
	if err := Write(loop, nil, 0o600); fault.Code(err) != fault.Usage || fault.Hint(err) == "" {
		t.Errorf("a link to itself: %v", err)
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
		} else if fails && fault.Code(err) != fault.Environment {
			t.Errorf("%s: %v has code %d", device, err, fault.Code(err))
		}
		if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("the link to %s was replaced", device)
		}
		if name, direct, err := target(device); err != nil || !direct || name != device {
			t.Errorf("%s would be replaced: %s, %v, %v", device, name, direct, err)
		}
	}
}
