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

	"github.com/pawl-go/pawl/internal/procgroup"
	"github.com/pawl-go/pawl/internal/text"
)

// watcher observes a program until it ends.
type watcher struct {
	process *Process
	ready   chan struct{} // closed when the program runs
	heard   chan struct{} // closed when the child sends no more replies
	exited  chan struct{} // closed when the program has ended

	kept   [2]text.Ends   // of stdout and stderr; complete when copies are done
	copies sync.WaitGroup // of the three standard streams

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
		process: &Process{done: make(chan struct{})},
		pid:     l.proc.Pid,
		ready:   make(chan struct{}),
		heard:   make(chan struct{}),
		exited:  make(chan struct{}),
	}
	w.process.kill = w.stop

	w.copyStreams(l)
	disk := newDisk(l.filled(), &l.spec, l.proc)
	go w.enforce(ctx, l, disk)
	go w.finish(ctx, l)
	return w
}

// copyStreams reads the program's output and writes its input.
func (w *watcher) copyStreams(l *launch) {
	for i, r := range l.outs {
		w.kept[i].Half = max(1, l.spec.Limits.Output/2)
		w.copies.Go(func() { io.Copy(&w.kept[i], r) })
	}

	w.copies.Go(func() {
		<-w.readyOrExited()
		// A program that does not read its input causes an error here, which means nothing.
		l.stdin.Write(l.spec.Stdin)
		l.stdin.Close()
	})
}

// enforce ends the program when ctx ends, its time is over, or it exceeds a limit that the kernel
// does not enforce.
func (w *watcher) enforce(ctx context.Context, l *launch, disk *disk) {
	timer := time.NewTimer(l.spec.Limits.Time)
	defer timer.Stop()

	// The looks begin when the program runs. Before that, the child's socket holds the descriptors
	// that the set-up sends to it, which would count as files that a program hides in a queue.
	ready := w.ready
	check := time.NewTimer(lookSoonest)
	check.Stop()
	defer check.Stop()

	for {
		select {
		case <-ctx.Done():
			w.stop(Cancelled)
			return
		case <-timer.C:
			w.stop(TimedOut)
			return
		case <-ready:
			ready = nil
			check.Reset(lookSoonest)
		case <-check.C:
			over, next := l.exceeded(disk)
			if over != "" {
				w.stop(over)
				return
			}
			check.Reset(next)
		case <-w.exited:
			return
		}
	}
}

// finish waits for the program's end, releases its resources, and sets its result.
func (w *watcher) finish(ctx context.Context, l *launch) {
	defer close(w.process.done)
	state, err := w.reap(l.proc)
	close(w.exited)

	// All processes that could hold the pipes were killed. A process that left its group, which is
	// possible only with None, delays nothing.
	for _, r := range l.outs {
		r.SetReadDeadline(time.Now().Add(2 * time.Second))
	}
	l.stdin.SetWriteDeadline(time.Now())
	w.copies.Wait()

	full := l.group.full() // before clean removes the group
	<-w.heard
	l.clean()

	res := &w.process.res
	if w.unserve != nil {
		res.Refused = w.unserve()
	}
	res.Time = time.Since(l.begun)
	res.Stdout = output(&w.kept[0])
	res.Stderr = output(&w.kept[1])
	w.process.err = w.conclude(ctx, state, err, l.spec.Limits)
	if full && res.End != Cancelled {
		res.End = UsedMemory
	}
}

// readyOrExited returns a channel that is closed when the program runs or has ended.
func (w *watcher) readyOrExited() chan struct{} {
	either := make(chan struct{})
	go func() {
		defer close(either)
		select {
		case <-w.ready:
		case <-w.exited:
		}
	}()
	return either
}

// reap waits for the program's end, ends the rest of its group while its process ID is still
// reserved, and releases the ID.
func (w *watcher) reap(proc *os.Process) (*os.ProcessState, error) {
	procgroup.AwaitEnd(w.pid)
	w.mu.Lock()
	unix.Kill(-w.pid, unix.SIGKILL)
	state, err := proc.Wait()
	w.reaped = true
	w.mu.Unlock()
	return state, err
}

// conclude sets how the program ended.
func (w *watcher) conclude(ctx context.Context, state *os.ProcessState, err error, limits Limits) error {
	r := &w.process.res
	r.Exit = -1
	if err != nil {
		r.End = Cancelled
		return fmt.Errorf("sandbox: wait: %w", err)
	}
	r.CPU = state.UserTime() + state.SystemTime()
	if u, ok := state.SysUsage().(*syscall.Rusage); ok {
		r.Memory = u.Maxrss << 10
	}

	w.mu.Lock()
	why := w.why
	w.mu.Unlock()

	status := state.Sys().(syscall.WaitStatus)
	byLimit := status.Signal() == syscall.SIGKILL || status.Signal() == syscall.SIGXCPU
	switch {
	case status.Exited():
		// It exited before it could be ended.
		r.End = Exited
		r.Exit = status.ExitStatus()
		return nil
	case why != "":
		r.End = why
	case byLimit && r.CPU >= limits.CPU/2:
		// This process did not kill it. The kernel's clock for limits is ahead of its clock for
		// reports.
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
