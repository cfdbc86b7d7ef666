//go:build linux || darwin || freebsd

package machine

import (
	"io/fs"
	"os/user"
	"strconv"
	"syscall"
)

func owner(info fs.FileInfo) (name, group string) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", ""
	}
	name = strconv.Itoa(int(st.Uid))
	if u, err := user.LookupId(name); err == nil {
		name = u.Username
	}
	return name, groupName(int(st.Gid))
}

func freeBytes(dir string) int64 {
	var st syscall.Statfs_t
	if syscall.Statfs(dir, &st) != nil {
		return -1
	}
	return int64(st.Bavail) * int64(st.Bsize)
}
