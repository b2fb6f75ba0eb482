//go:build linux

package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// The calls that only this architecture has, as in open, own and chmod.
var (
	openHere = []uintptr{unix.SYS_ARCH_PRCTL, unix.SYS_FORK, unix.SYS_VFORK, unix.SYS_GETPGRP, unix.SYS_PAUSE,
		unix.SYS_ALARM, unix.SYS_TIME, unix.SYS_PIPE, unix.SYS_DUP2, unix.SYS_POLL, unix.SYS_SELECT,
		unix.SYS_EPOLL_CREATE, unix.SYS_EPOLL_WAIT, unix.SYS_EVENTFD, unix.SYS_SIGNALFD, unix.SYS_INOTIFY_INIT,
		unix.SYS_STAT, unix.SYS_LSTAT, unix.SYS_ACCESS, unix.SYS_READLINK, unix.SYS_GETDENTS, unix.SYS_MKDIR,
		unix.SYS_RMDIR, unix.SYS_LINK, unix.SYS_SYMLINK, unix.SYS_UNLINK, unix.SYS_RENAME}
	ownHere   = []uintptr{unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT}
	chmodHere = []uintptr{unix.SYS_CHMOD}
)

// here adds the rules for calls that the other architecture lacks.
func (f *filter) here() {
	f.bits(unix.SYS_CHMOD, 1, setID)
	f.bits(unix.SYS_CREAT, 1, setID)
	f.bits(unix.SYS_MKNOD, 1, setID)
	f.mode(unix.SYS_OPEN, 1, 2)
}
