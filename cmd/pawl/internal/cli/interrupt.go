package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/pawl-go/pawl"
)

// ErrStopped is the cause with which an interrupt cancels a durable run. The run stays open and can
// be resumed.
var ErrStopped = errors.New("interrupted")

// Interruptible returns a context that the first Ctrl-C or SIGTERM cancels with pawl.ErrCancelled,
// so that calls end, results are written and the transcript is saved. The second signal ends the
// program at once. A notice of the interrupt is written to w. Call stop when the work is done.
func Interruptible(ctx context.Context, w io.Writer) (_ context.Context, stop func()) {
	return InterruptibleBy(ctx, w, pawl.ErrCancelled)
}

// InterruptibleBy is Interruptible with cause in place of pawl.ErrCancelled.
func InterruptibleBy(ctx context.Context, w io.Writer, cause error) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	done := make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		defer close(done)
		select {
		case <-signals:
			signal.Stop(signals)
			fmt.Fprintln(w, "\npawl: interrupted; a second interrupt ends the program at once")
			cancel(cause)
		case <-ctx.Done():
			signal.Stop(signals)
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-done
	}
}

// Attended returns a context that is cancelled with cause when the reader of the output closes it,
// as a pager or head does, and a copy of sys whose outputs detect that. Without it, SIGPIPE would
// end the program before the transcript is saved.
func Attended(ctx context.Context, sys *System, cause error) (context.Context, *System) {
	signal.Ignore(syscall.SIGPIPE) // a write then returns an error
	ctx, cancel := context.WithCancelCause(ctx)
	s := *sys
	gone := func() { cancel(cause) }
	s.Out, s.Err = &attendedWriter{sys.Out, gone}, &attendedWriter{sys.Err, gone}
	return ctx, &s
}

type attendedWriter struct {
	w    io.Writer
	gone func()
}

func (a *attendedWriter) Write(b []byte) (int, error) {
	n, err := a.w.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		a.gone()
	}
	return n, err
}
