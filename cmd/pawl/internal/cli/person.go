package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
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
	interrupt, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ignore := context.AfterFunc(interrupt, func() {
		restore()
		fmt.Fprintln(w, "\npawl: interrupted; a second interrupt ends the program at once")
		cancel(cause)
	})
	return ctx, func() {
		ignore()
		restore()
		cancel(nil)
	}
}

// Attended returns a context that is cancelled with cause when the reader of the output closes it,
// as a pager or head does, and a copy of sys whose outputs detect that. Without it, SIGPIPE would
// end the program before the transcript is saved.
func Attended(ctx context.Context, sys *System, cause error) (context.Context, *System) {
	signal.Ignore(syscall.SIGPIPE) // a write then returns an error
	ctx, cancel := context.WithCancelCause(ctx)
	s := *sys
	s.gone = new(atomic.Bool)
	gone := func() {
		s.gone.Store(true)
		cancel(cause)
	}
	s.Out = &attendedWriter{sys.Out, gone}
	s.Err = &attendedWriter{sys.Err, gone}
	return ctx, &s
}

type attendedWriter struct {
	out  io.Writer
	gone func()
}

func (a *attendedWriter) Write(b []byte) (int, error) {
	n, err := a.out.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		a.gone()
	}
	return n, err
}

// Lines reads lines that a person types. The context ends the wait for a line; the next call
// returns a line that arrives later. A Lines must not be used concurrently.
type Lines struct {
	got  chan typed
	done chan struct{}
}

type typed struct {
	text string
	err  error
}

// NewLines starts to read from in on a goroutine. The goroutine ends with in, or at the first line
// after Stop, because a read from a terminal cannot be interrupted.
func NewLines(in io.Reader) *Lines {
	l := &Lines{make(chan typed), make(chan struct{})}
	go l.read(bufio.NewReader(in))
	return l
}

// read sends lines until the input ends, or Stop.
func (l *Lines) read(in *bufio.Reader) {
	defer close(l.got)
	for {
		s, err := in.ReadString('\n')
		// The last line of an input may have no line end.
		if s != "" && !l.send(typed{text: strings.TrimRight(s, "\r\n")}) {
			return
		}
		if err != nil {
			if err != io.EOF {
				l.send(typed{err: err})
			}
			return
		}
	}
}

// send passes on what was read. It reports false after Stop.
func (l *Lines) send(t typed) bool {
	select {
	case l.got <- t:
		return true
	case <-l.done:
		return false
	}
}

// Yes asks a question on w, and reports whether the answer is yes. It returns the error of Next.
func (l *Lines) Yes(ctx context.Context, w io.Writer, question string) (bool, error) {
	fmt.Fprint(w, question)
	answer, err := l.Next(ctx)
	said := strings.ToLower(strings.TrimSpace(answer))
	return err == nil && (said == "y" || said == "yes"), err
}

// Stop ends the goroutine. Next must not be called afterwards.
func (l *Lines) Stop() { close(l.done) }

// Next returns the next line without its end. The error is io.EOF at the end of the input, or the
// cause of ctx.
func (l *Lines) Next(ctx context.Context) (string, error) {
	select {
	case t, more := <-l.got:
		if !more {
			return "", io.EOF
		}
		return t.text, t.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
