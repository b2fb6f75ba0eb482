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

// ErrStopped is why a durable run stops that is interrupted: it is not given up, and can be
// resumed.
var ErrStopped = errors.New("interrupted")

// Interruptible returns a context that the first Ctrl-C (or a request to terminate) cancels with
// pawl.ErrCancelled, so that calls end, results are written and the transcript is saved. The second
// one ends the program at once. Call stop when the work is done. What happens is told on w.
func Interruptible(ctx context.Context, w io.Writer) (_ context.Context, stop func()) {
	return InterruptibleBy(ctx, w, pawl.ErrCancelled)
}

// InterruptibleBy is interruptible with another cause.
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
			fmt.Fprintln(w, "\npawl: interrupted; once more ends the program at once")
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

// Attended returns a context that is cancelled with cause when nobody reads the output of sys any
// more (head has seen enough, a pager was left), and sys with outputs that notice. Without it the
// system would end the program on the spot, and the transcript would not be saved.
func Attended(ctx context.Context, sys *System, cause error) (context.Context, *System) {
	signal.Ignore(syscall.SIGPIPE) // a write fails instead
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
