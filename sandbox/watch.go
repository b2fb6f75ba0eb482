//go:build linux && (amd64 || arm64)

package sandbox

// watch.go: the observation of a program until it ends, and its result.

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-go/pawl/internal/text"
)

// watcher observes a program until it ends.
type watcher struct {
	p     *Process
	ready chan struct{} // closed when the program runs
	heard chan struct{} // closed when the child sends no more replies

	// ends the proxy; nil means that there is none; set before heard is closed
	unserve func() []string

	mu     sync.Mutex
	pid    int
	reaped bool // its process ID may belong to another process
	why    End
}

// stop ends the program and all processes that it started, and records the first reason.
func (w *watcher) stop(why End) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.why = cmp.Or(w.why, why)
	if w.reaped {
		return
	}

	// The first process of a namespace takes all others with it. Without a namespace, the processes
	// are a group.
	unix.Kill(w.pid, unix.SIGKILL)
	unix.Kill(-w.pid, unix.SIGKILL)
}

// watch starts to read the program's output, and ends the program when ctx ends or its time is
// over.
func (l *launch) watch(ctx context.Context) *watcher {
	w := &watcher{
		p:     &Process{done: make(chan struct{})},
		pid:   l.proc.Pid,
		ready: make(chan struct{}),
		heard: make(chan struct{}),
	}
	w.p.kill = w.stop

	exited := make(chan struct{})
	var copies sync.WaitGroup
	var kept [2]text.Ends
	for i, r := range l.outs {
		kept[i].Half = max(1, l.spec.Limits.Output/2)
		copies.Go(func() { io.Copy(&kept[i], r) })
	}
	copies.Go(func() {
		<-w.readyOr(exited)
		// A program that does not read its input causes an error here, which means nothing.
		l.stdin.Write(l.spec.Stdin)
		l.stdin.Close()
	})

	filled := newDisk(l.filled(), &l.spec, w.pid)
	go func() {
		timer := time.NewTimer(l.spec.Limits.Time)
		defer timer.Stop()
		check := time.NewTimer(lookSoonest)
		defer check.Stop()
		for {
			select {
			case <-ctx.Done():
				w.stop(Cancelled)
				return
			case <-timer.C:
				w.stop(TimedOut)
				return
			case <-check.C:
				over, next := l.exceeded(filled)
				if over != "" {
					w.stop(over)
					return
				}
				check.Reset(next)
			case <-exited:
				return
			}
		}
	}()
	go func() {
		defer close(w.p.done)
		state, err := w.reap(l.proc)
		close(exited)
		// All processes that could hold the pipes were killed. A process that left its group, which
		// is possible only with None, delays nothing.
		for _, r := range l.outs {
			r.SetReadDeadline(time.Now().Add(2 * time.Second))
		}
		l.stdin.SetWriteDeadline(time.Now())
		copies.Wait()
		full := l.group.full()
		<-w.heard
		l.clean()
		if w.unserve != nil {
			w.p.res.Refused = w.unserve()
		}
		w.p.res.Time = time.Since(l.begun)
		w.p.res.Stdout, w.p.res.Stderr = output(&kept[0]), output(&kept[1])
		w.p.err = w.conclude(ctx, state, err, l.spec.Limits)
		if full && w.p.res.End != Cancelled {
			w.p.res.End = UsedMemory
		}
	}()
	return w
}

// readyOr returns a channel that is closed when the program runs or has ended.
func (w *watcher) readyOr(exited chan struct{}) chan struct{} {
	either := make(chan struct{})
	go func() {
		defer close(either)
		select {
		case <-w.ready:
		case <-exited:
		}
	}()
	return either
}

// reap waits for the program's end, ends the rest of its group while its process ID is still
// reserved, and releases the ID.
func (w *watcher) reap(proc *os.Process) (*os.ProcessState, error) {
	for {
		err := unix.Waitid(unix.P_PID, w.pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			break
		}
	}
	w.mu.Lock()
	unix.Kill(-w.pid, unix.SIGKILL)
	state, err := proc.Wait()
	w.reaped = true
	w.mu.Unlock()
	return state, err
}

// conclude sets how the program ended.
func (w *watcher) conclude(ctx context.Context, state *os.ProcessState, err error, limits Limits) error {
	r := &w.p.res
	r.Exit = -1
	if err != nil {
		r.End = Cancelled
		return fmt.Errorf("sandbox: wait: %w", err)
	}
	r.CPU = state.UserTime() + state.SystemTime()
	if u, ok := state.SysUsage().(*syscall.Rusage); ok {
		r.Memory = u.Maxrss << 10
	}
	status := state.Sys().(syscall.WaitStatus)
	w.mu.Lock()
	why := w.why
	w.mu.Unlock()
	switch {
	case status.Exited():
		r.End, r.Exit = Exited, status.ExitStatus() // it exited before it could be ended
		return nil
	case why != "":
		r.End = why
	case (status.Signal() == syscall.SIGKILL || status.Signal() == syscall.SIGXCPU) && r.CPU >= limits.CPU/2:
		// not killed by this process; the kernel's clock for limits is ahead of its clock for
		// reports
		r.End = UsedCPU
	default:
		r.End = Signalled
	}
	r.Signal = status.Signal().String()
	if r.End == Cancelled && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
