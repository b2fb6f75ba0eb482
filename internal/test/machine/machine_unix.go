//go:build unix

package machine

import (
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Signals that stop and continue a process. They are nil where there are none.
var (
	Stop     os.Signal = syscall.SIGSTOP
	Continue os.Signal = syscall.SIGCONT
)

// CPU returns the processor time of this process, which does not depend on other work of the
// machine.
func CPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Fifo makes a FIFO.
func Fifo(name string) error { return syscall.Mkfifo(name, 0o600) }

// NonBlocking is the flag that opens a FIFO without another end.
const NonBlocking = syscall.O_NONBLOCK

// Grouped makes cmd the leader of a process group.
func Grouped(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// KillGroup ends cmd and all processes of its group.
func KillGroup(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
