//go:build !linux && !darwin && !freebsd

package machine

import "io/fs"

func owner(fs.FileInfo) (name, group string) { return "", "" }

func freeBytes(string) int64 { return -1 }
