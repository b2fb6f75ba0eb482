//go:build unix

package outside

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"syscall"
	"time"

	texts "github.com/pawl-go/pawl/internal/text"
)

// Exec is a Runner without a sandbox: the program has the rights of the current user. It leads its
// own process group, which is killed as a whole when the program or ctx ends, so that no child
// process remains.
func Exec(ctx context.Context, p Process) (Exit, error) {
	cmd := exec.CommandContext(ctx, p.Args[0], p.Args[1:]...)
	out := &texts.Ends{Half: p.Limit}
	err := &texts.Ends{Half: 16 << 10}
	cmd.Env, cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = p.Env, p.Dir, bytes.NewReader(p.Stdin), out, err
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	kill := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel = kill
	cmd.WaitDelay = 500 * time.Millisecond // a remaining child process may hold the output open
	if err := cmd.Start(); err != nil {
		return Exit{}, err
	}
	ended := cmd.Wait()
	_ = kill() // the rest of the group, usually empty
	x := Exit{Code: cmd.ProcessState.ExitCode(), Stdout: out.Head, Stderr: append(err.Head, err.Tail()...),
		Dropped: out.Bytes - int64(len(out.Head))}
	var status *exec.ExitError
	if ended != nil && !errors.As(ended, &status) && !errors.Is(ended, exec.ErrWaitDelay) && ctx.Err() == nil &&
		!errors.Is(ended, syscall.EPIPE) {
		return x, ended
	}
	return x, nil
}
