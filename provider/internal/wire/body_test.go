package wire

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-go/pawl/llm"
)

// late is an http.RoundTripper that answers before it has read the body, as net/http may. It reads
// it later, at the same time as other requests are encoded, and then closes it.
type late struct {
	t       *testing.T
	reading sync.WaitGroup
	again   bool // reads a second reader of GetBody too
	after   bool // reads after Close, against the contract
}

func (l *late) RoundTrip(r *http.Request) (*http.Response, error) {
	bodies := []io.ReadCloser{r.Body}
	if l.again {
		second, err := r.GetBody()
		if err != nil {
			l.t.Error(err)
		}
		bodies = append(bodies, second)
	}
	for _, body := range bodies {
		l.reading.Go(func() {
			all, err := io.ReadAll(body)
			if err != nil || int64(len(all)) != r.ContentLength || bytes.Count(all, all[:1]) != len(all) {
				l.t.Errorf("the body of another request was read: %.20q, %v", all, err)
			}
			body.Close()
			if !l.after {
				return
			}
			if n, err := body.Read(make([]byte, 10)); n != 0 || err == nil {
				l.t.Errorf("after Close, %d bytes were read, and the error is %v", n, err)
			}
		})
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("{}"))}, nil
}

// TestBodiesAreNotMixed sends requests at once, each of one letter, over RoundTrippers that read
// bodies after they have returned.
func TestBodiesAreNotMixed(t *testing.T) {
	l := &late{t: t, again: true, after: true}
	c := &Client{Provider: "p", HTTP: l}
	u := &url.URL{Scheme: "https", Host: "p.test"}
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			letter := string(rune('a' + worker))
			for n := range 200 {
				b := Buffer(&llm.Request{}, NoTools)
				body := NewBody(append(b, strings.Repeat(letter, 500+n)...))
				out := &Emitter{Provider: "p", Yield: func(llm.Delta, error) bool { return true }}
				read := func(*Emitter) Decoder { return answer{"p", func([]byte) error { return nil }} }
				if err := c.send(t.Context(), u, nil, body, true, out, read); err != nil {
					t.Error(err)
				}
				body.Release()
			}
		})
	}
	all.Wait()
	l.reading.Wait()
}

// TestReleasedBody shows that a released body gives no reader any more, so that a RoundTripper that
// calls GetBody too late gets an error and not the bytes of another request.
func TestReleasedBody(t *testing.T) {
	body := NewBody([]byte("abc"))
	held, err := body.reader()
	if err != nil {
		t.Fatal(err)
	}
	body.Release()
	if second, err := body.reader(); err != nil {
		t.Errorf("while a reader is open, another one fails: %v", err)
	} else {
		second.Close()
		second.Close()
	}
	if all, err := io.ReadAll(held); string(all) != "abc" || err != nil {
		t.Errorf("an open reader gives %q, %v after the release; want abc", all, err)
	}
	held.Close()
	if _, err := body.reader(); !errors.Is(err, errBodyClosed) {
		t.Errorf("got %v, want %v", err, errBodyClosed)
	}
}
