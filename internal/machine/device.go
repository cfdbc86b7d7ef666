package machine

import (
	"errors"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// User is who runs the build.
type User struct {
	Name   string
	Root   bool
	Groups []string // of this process; by name, by number where it has none
}

// In reports whether the process has a group.
func (u User) In(group string) bool { return slices.Contains(u.Groups, group) }

func currentUser() User {
	u := User{Root: os.Geteuid() == 0}
	if me, err := user.Current(); err == nil {
		u.Name = me.Username
	}
	ids, _ := os.Getgroups()
	for _, id := range append(ids, os.Getegid()) {
		u.Groups = append(u.Groups, groupName(id))
	}
	return u
}

func groupName(id int) string {
	if g, err := user.LookupGroupId(strconv.Itoa(id)); err == nil {
		return g.Name
	}
	return strconv.Itoa(id)
}

// Device is a device file, and whether this user can work with it.
type Device struct {
	Path   string
	Exists bool
	Mode   fs.FileMode // permissions only
	Owner  string
	Group  string
	Err    error // of opening it for reading and writing; nil: it can be used
}

// Denied reports whether the device is there and the user may not open it.
func (d Device) Denied() bool { return d.Exists && errors.Is(d.Err, fs.ErrPermission) }

// Device looks at a device file and tries to open it: what a mode says does not
// hold in a container that was not given the device.
func (s System) Device(path string) Device {
	if s.Root != "" {
		d, ok := s.Devices[path]
		if !ok {
			return Device{Path: path, Err: fs.ErrNotExist}
		}
		d.Path, d.Exists = path, true
		if d.Err == nil {
			d.Err = d.allows(s.User)
		}
		return d
	}
	d := Device{Path: path}
	info, err := os.Stat(path)
	if err != nil {
		d.Err = err
		return d
	}
	d.Exists, d.Mode = true, info.Mode().Perm()
	d.Owner, d.Group = owner(info)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		d.Err = err
		return d
	}
	f.Close()
	return d
}

// allows judges by the mode, as the kernel does for a user without privileges.
func (d Device) allows(u User) error {
	bits := d.Mode & 7
	switch {
	case u.Root:
		return nil
	case u.Name == d.Owner:
		bits = d.Mode >> 6 & 7
	case u.In(d.Group):
		bits = d.Mode >> 3 & 7
	}
	if bits&6 != 6 {
		return &fs.PathError{Op: "open", Path: d.Path, Err: fs.ErrPermission}
	}
	return nil
}

// DeviceNames lists the devices that match a pattern, sorted.
func (s System) DeviceNames(pattern string) []string {
	if s.Root == "" {
		return s.Glob(pattern)
	}
	var out []string
	for name := range s.Devices {
		if ok, _ := filepath.Match(pattern, name); ok {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Members returns who belongs to a group according to /etc/group. A user who was
// added there is only in the group after the next login.
func (s System) Members(group string) []string {
	for _, line := range strings.Split(string(s.ReadFile("/etc/group")), "\n") {
		if f := strings.Split(line, ":"); len(f) == 4 && f[0] == group {
			return strings.FieldsFunc(f[3], func(r rune) bool { return r == ',' })
		}
	}
	return nil
}

// FreeBytes is the space left for this user where path is or would be, -1 when
// it is not known.
func (s System) FreeBytes(path string) int64 {
	for dir := filepath.Clean(path); ; dir = filepath.Dir(dir) {
		if s.Root != "" {
			if n, ok := s.Free[dir]; ok {
				return n
			}
		} else if _, err := os.Stat(dir); err == nil {
			return freeBytes(dir)
		}
		if dir == filepath.Dir(dir) {
			return -1
		}
	}
}

// Distribution is the ID of the operating system and the IDs it is like, as
// /etc/os-release has them: ubuntu debian.
func (s System) Distribution() []string {
	var id, like []string
	for _, file := range []string{"/etc/os-release", "/usr/lib/os-release"} {
		for _, line := range strings.Split(string(s.ReadFile(file)), "\n") {
			if v, ok := strings.CutPrefix(line, "ID="); ok {
				id = strings.Fields(strings.Trim(v, `"'`))
			} else if v, ok := strings.CutPrefix(line, "ID_LIKE="); ok {
				like = strings.Fields(strings.Trim(v, `"'`))
			}
		}
		if id != nil {
			break
		}
	}
	return append(id, like...)
}
