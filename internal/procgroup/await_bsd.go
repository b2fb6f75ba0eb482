//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package procgroup

import "golang.org/x/sys/unix"

// AwaitEnd returns when a child process has ended, and reports whether it could wait. The process
// keeps its ID until it is waited for.
func AwaitEnd(pid int) bool {
	queue, err := unix.Kqueue()
	if err != nil {
		return false
	}
	defer unix.Close(queue)

	var exit unix.Kevent_t
	unix.SetKevent(&exit, pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	exit.Fflags = unix.NOTE_EXIT
	for {
		_, err := unix.Kevent(queue, []unix.Kevent_t{exit}, make([]unix.Kevent_t, 1), nil)
		if err != unix.EINTR {
			return err == nil || err == unix.ESRCH // it had ended before
		}
	}
}
