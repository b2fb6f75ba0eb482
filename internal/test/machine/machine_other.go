//go:build !unix

package machine

import (
	"errors"
	"os"
	"os/exec"
	"time"
)

// Signals that stop and continue a process. They are nil where there are none.
var Stop, Continue os.Signal

var started = time.Now()

// CPU returns elapsed time in place of processor time, which is never less.
func CPU() time.Duration { return time.Since(started) }

// Fifo makes a FIFO.
func Fifo(string) error { return errors.ErrUnsupported }

// NonBlocking is the flag that opens a FIFO without another end.
const NonBlocking = 0

// Grouped makes cmd the leader of a process group.
func Grouped(*exec.Cmd) {}

// KillGroup ends cmd and all processes of its group.
func KillGroup(cmd *exec.Cmd) error { return cmd.Process.Kill() }
