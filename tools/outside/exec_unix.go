//go:build unix

package outside

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"syscall"
	"time"
)

// Exec is a Runner without a sandbox: the program has this user's rights. It is the leader of a process group of its own, which is killed whole when the
// program ends or ctx does, so that nothing it started stays.
func Exec(ctx context.Context, p Process) (Exit, error) {
	cmd := exec.CommandContext(ctx, p.Args[0], p.Args[1:]...)
	out, err := &head{limit: p.Limit}, &tail{limit: 16 << 10}
	cmd.Env, cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = p.Env, p.Dir, bytes.NewReader(p.Stdin), out, err
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	kill := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel = kill
	cmd.WaitDelay = 500 * time.Millisecond // a program that it left behind may hold its output open
	if err := cmd.Start(); err != nil {
		return Exit{}, err
	}
	ended := cmd.Wait()
	_ = kill() // what is left of the group; nothing, as a rule
	x := Exit{Code: cmd.ProcessState.ExitCode(), Stdout: out.b, Stderr: err.bytes(), Dropped: out.dropped}
	var status *exec.ExitError
	if ended != nil && !errors.As(ended, &status) && !errors.Is(ended, exec.ErrWaitDelay) && ctx.Err() == nil && !errors.Is(ended, syscall.EPIPE) {
		return x, ended
	}
	return x, nil
}
