package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
)

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
	go func() {
		defer close(l.got)
		send := func(t typed) bool {
			select {
			case l.got <- t:
				return true
			case <-l.done:
				return false
			}
		}
		r := bufio.NewReader(in)
		for {
			s, err := r.ReadString('\n')
			if s != "" && !send(typed{text: strings.TrimRight(s, "\r\n")}) {
				return
			}
			if err != nil {
				if err != io.EOF {
					send(typed{err: err})
				}
				return
			}
		}
	}()
	return l
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
