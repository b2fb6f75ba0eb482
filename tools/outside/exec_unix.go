//go:build unix

package outside

import (
	"bytes"
	"context"
	"os/exec"
	"time"

	"github.com/pawl-go/pawl/internal/procgroup"
	texts "github.com/pawl-go/pawl/internal/text"
)

// Exec is a Runner without a sandbox: the program has the rights of the current user. It leads its
// own process group, which is killed as a whole when the program or ctx ends, so that no child
// process remains.
func Exec(_ context.Context, p Process) (Program, error) {
	if err := procgroup.Startable(p.Args[0], p.Dir); err != nil {
		return nil, err
	}
	return func(ctx context.Context) (Exit, error) { return execIn(ctx, p) }, nil
}

// execIn runs the program in a process group of its own.
func execIn(ctx context.Context, p Process) (Exit, error) {
	cmd := exec.CommandContext(ctx, p.Args[0], p.Args[1:]...)
	group := procgroup.New(cmd)
	out := &texts.Ends{Half: p.Limit}
	failed := &texts.Ends{Half: 16 << 10}
	cmd.Env = p.Env
	cmd.Dir = p.Dir
	cmd.Stdin = bytes.NewReader(p.Stdin)
	cmd.Stdout = out
	cmd.Stderr = failed
	cmd.WaitDelay = 500 * time.Millisecond // a process that left the group may hold the output open
	if err := group.Start(); err != nil {
		return Exit{}, notStarted(err)
	}

	// From here on the program may have had an effect. A fault of its pipes changes no exit status.
	_ = group.Wait()
	return Exit{
		Code:    cmd.ProcessState.ExitCode(),
		Stdout:  out.Head,
		Stderr:  append(failed.Head, failed.Tail()...),
		Dropped: out.Bytes - int64(len(out.Head)),
	}, nil
}
