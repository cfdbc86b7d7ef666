//go:build unix

package upstream

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup lets a cancelled command and all it started be ended together:
// asked first (git removes its temporary files then), killed after WaitDelay.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}

// hold locks an open directory for as long as the process lives and reports
// whether it could: a directory nobody holds was left by a killed run.
func hold(dir *os.File) bool {
	return syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
