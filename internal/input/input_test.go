package input

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"dot4fa/internal/fault"
)

const hint = "name a file"

func TestRead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := Read(name, hint); err != nil || string(data) != "text" {
		t.Errorf("%q, %v", data, err)
	}
	if err := Dir(filepath.Dir(name), hint); err != nil {
		t.Error(err)
	}
}

func TestProgram(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, code := range map[string]int{"no-such-program-99": fault.Environment, "./no-such-program": fault.Usage, file: fault.Usage, filepath.Dir(file): fault.Usage} {
		if _, err := Program(name, hint); fault.Code(err) != code || fault.Hint(err) != hint {
			t.Errorf("%s: code %d, not %d; hint %q: %v", name, fault.Code(err), code, fault.Hint(err), err)
		}
	}
	if path, err := Program("sh", hint); err != nil || !filepath.IsAbs(path) {
		t.Errorf("%q, %v", path, err)
	}
}

// What is not there or is no file is refused by name and kind, at once: none of
// them is opened, which would wait for a pipe's writer or read a device for ever.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]string{
		filepath.Join(dir, "none"): "does not exist",
		filepath.Join(file, "x"):   "does not exist",
		dir:                        "is a directory, not a file",
	}
	link := filepath.Join(dir, "loop")
	if os.Symlink("loop", link) == nil {
		cases[link] = "does not exist: its links lead back"
	}
	pipe := filepath.Join(dir, "pipe")
	if exec.Command("mkfifo", pipe).Run() == nil {
		cases[pipe] = "is a pipe, not a file"
	}
	socket := filepath.Join(dir, "socket")
	if l, err := net.Listen("unix", socket); err == nil {
		defer l.Close()
		cases[socket] = "is a socket, not a file"
	}
	if info, err := os.Stat("/dev/zero"); err == nil && info.Mode()&os.ModeDevice != 0 {
		cases["/dev/zero"] = "is a device, not a file"
	}
	for name, want := range cases {
		_, err := Read(name, hint)
		if err == nil || !strings.Contains(err.Error(), name+": "+want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
		if fault.Code(err) != fault.Usage || fault.Hint(err) != hint {
			t.Errorf("%s: code %d, hint %q", name, fault.Code(err), fault.Hint(err))
		}
	}
	if _, err := Read(filepath.Join(dir, "none"), hint); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := Dir(file, hint); fault.Code(err) != fault.Usage || !strings.Contains(err.Error(), "is a file, not a directory") {
		t.Errorf("a file taken for a directory: %v", err)
	}
}
