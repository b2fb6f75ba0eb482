package main

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

// interruptible returns a context that the first Ctrl-C (or a request to terminate) cancels with pawl.ErrCancelled, so that calls end,
// results are written and the transcript is saved. The second one ends the program at once. Call stop when the work is done. What happens is
// told on w.
func interruptible(ctx context.Context, w io.Writer) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	done := make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		defer close(done)
		select {
		case <-signals:
			signal.Stop(signals)
			fmt.Fprintln(w, "\npawl: interrupted; once more ends the program at once")
			cancel(pawl.ErrCancelled)
		case <-ctx.Done():
			signal.Stop(signals)
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-done
	}
}

// attended returns a context that is cancelled with pawl.ErrCancelled when nobody reads the output of sys any more (head has seen enough, a
// pager was left), and sys with outputs that notice. Without it the system would end the program on the spot, and the transcript
// would not be saved.
func attended(ctx context.Context, sys *system) (context.Context, *system) {
	signal.Ignore(syscall.SIGPIPE) // a write fails instead
	ctx, cancel := context.WithCancelCause(ctx)
	s := *sys
	s.out, s.err = &attendedWriter{sys.out, cancel}, &attendedWriter{sys.err, cancel}
	return ctx, &s
}

type attendedWriter struct {
	w      io.Writer
	cancel context.CancelCauseFunc
}

func (a *attendedWriter) Write(b []byte) (int, error) {
	n, err := a.w.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		a.cancel(pawl.ErrCancelled)
	}
	return n, err
}
