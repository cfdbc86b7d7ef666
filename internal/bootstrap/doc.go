// Package bootstrap makes a compile-only HIP prefix from Debian's packages, for
// machines without ROCm: enough to compile and link llama.cpp's HIP backend
// for any GPU target, and nothing to run it with.
//
//	apt, in a directory of its own ─▶ packages ─▶ unpacked root ─▶ stubs, forwarders ─▶ tried with clang and CMake ─▶ DIR
//
// Nothing needs root, nothing outside DIR (and DIR.part while it works) is
// written, and DIR appears when it is complete and has been tried.
package bootstrap

import (
	"errors"
	"strings"
	"syscall"

	"dot4fa/internal/fault"
)

// writing is the fault of a write that failed.
func writing(err error, path string) error {
	f := fault.New(fault.Environment, "cannot write: %w", err).At("%s", path)
	if errors.Is(err, syscall.ENOSPC) {
		return f.Hintf("%s", diskFull)
	}
	return f.Hintf("name a directory that can be written")
}

const diskFull = "the disk is full: a prefix takes some 60 MB while it is made; free some space and run the same command again, what was downloaded is kept"

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
