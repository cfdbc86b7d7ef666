package input

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	if err := os.WriteFile(name, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := Read(name); err != nil || string(data) != "text" {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := Read(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err := Read(dir); err == nil {
		t.Error("a directory was read")
	}
}

// A device without an end would fill the memory.
func TestDevice(t *testing.T) {
	const device = "/dev/zero"
	if info, err := os.Stat(device); err != nil || info.Mode()&os.ModeDevice == 0 {
		t.Skip("no device", device)
	}
	if _, err := Read(device); err == nil {
		t.Error("it was read to its end")
	}
}
