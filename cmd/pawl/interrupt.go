package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/pawl-go/pawl"
)

// interruptible returns a context that the first Ctrl-C (or a request to terminate) cancels with pawl.ErrCancelled, so that calls end,
// results are written and the transcript is saved. The second one ends the program at once. Call stop when the work is done.
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
