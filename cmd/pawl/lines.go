package main

import (
	"bufio"
	"context"
	"io"
	"strings"
)

// lines reads lines for a person's sake: a wait for one ends with the context, and the line that comes later is not lost but the next
// one's. It may be used by one reader at a time.
type lines struct {
	got chan typed
}

type typed struct {
	text string
	err  error
}

// newLines reads from in on a goroutine that ends with in: nothing can wake a read from a terminal.
func newLines(in io.Reader) *lines {
	l := &lines{make(chan typed)}
	go func() {
		r := bufio.NewReader(in)
		for {
			s, err := r.ReadString('\n')
			if s != "" {
				l.got <- typed{text: strings.TrimRight(s, "\r\n")}
			}
			if err != nil {
				for {
					l.got <- typed{err: err}
				}
			}
		}
	}()
	return l
}

// next returns the next line without its end. The error is io.EOF at the end of the input, or the cause of ctx.
func (l *lines) next(ctx context.Context) (string, error) {
	select {
	case t := <-l.got:
		return t.text, t.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
