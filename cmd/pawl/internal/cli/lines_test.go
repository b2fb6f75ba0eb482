package cli

import (
	"errors"
	"io"
	"strings"
	"testing"
)

func TestLines(t *testing.T) {
	l := NewLines(strings.NewReader("one\r\n\ntwo"))
	for _, want := range []string{"one", "", "two"} {
		if got, err := l.Next(t.Context()); got != want || err != nil {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	for range 2 {
		if _, err := l.Next(t.Context()); err != io.EOF {
			t.Errorf("got %v, want io.EOF", err)
		}
	}
	broken := errors.New("broken")
	if _, err := NewLines(io.MultiReader(errReader{broken})).Next(t.Context()); err != broken {
		t.Errorf("got %v, want %v", err, broken)
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }
