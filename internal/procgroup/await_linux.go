package procgroup

import "golang.org/x/sys/unix"

// AwaitEnd returns when a child process has ended, and reports whether it could wait. The process
// keeps its ID until it is waited for.
func AwaitEnd(pid int) bool {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return err == nil
		}
	}
}
