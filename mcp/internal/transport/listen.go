package transport

import (
	"context"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/pawl-go/pawl/internal/guard"
)

// listenTime is the maximum time until the stream of unsolicited messages begins.
const listenTime = 2 * time.Second

// The pauses before the stream is opened again.
const (
	minListenPause = time.Second
	maxListenPause = time.Minute
)

// opening is the result of a request for the stream.
type opening struct {
	res   *http.Response // nil means that there is no stream
	again bool           // it may exist later
}

// Listener opens the stream of unsolicited messages, and opens it again when it ends.
type Listener struct {
	Send   func(r *http.Request) (*http.Response, error)
	Events func(r io.ReadCloser) io.ReadCloser // returns a stream with repaired messages
}

// Listen opens the stream. Some servers respond only when they have a message, and the SDK waits
// for the response. After listenTime, Listen therefore returns a response, and the stream follows
// when it begins. The SDK also ends the connection, with all calls in progress, if the stream ends
// a few times, as proxies let it end. It therefore gets one stream that ends with the session.
func (l Listener) Listen(r *http.Request) *http.Response {
	ctx, cancel := context.WithCancel(r.Context())
	r = r.WithContext(ctx)
	came := make(chan opening, 1)
	go func() { came <- l.opened(r) }()

	wait := time.NewTimer(listenTime)
	defer wait.Stop()
	select {
	case o := <-came:
		if o.res == nil && !o.again {
			cancel()
			return Response(r, http.StatusMethodNotAllowed, "", nil)
		}
		came <- o
	case <-wait.C:
	}

	out, in := io.Pipe()
	go func() {
		_ = guard.Call(func() { l.follow(r, <-came, in) })
		// A stream that never began does not end, because the SDK would request it again.
		<-ctx.Done()
		in.Close()
	}()
	res := Response(r, http.StatusOK, "text/event-stream", nil)
	res.ContentLength = -1
	res.Body = &ends{out, cancel}
	return res
}

// opened requests the stream.
func (l Listener) opened(r *http.Request) (o opening) {
	var res *http.Response
	var err error
	panicked := guard.Call(func() { res, err = l.Send(r) })
	if panicked != nil || err != nil {
		return opening{again: panicked == nil}
	}

	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if res.StatusCode == http.StatusOK && kind == "text/event-stream" {
		return opening{res: res, again: true}
	}
	_ = res.Body.Close()
	return opening{again: res.StatusCode >= 500}
}

// follow copies the stream to out, and opens it again when it ends, until the context of r ends or
// the server does not have it.
func (l Listener) follow(r *http.Request, o opening, out io.Writer) {
	pause := minListenPause
	for o.again {
		begun := time.Now()
		if o.res != nil {
			events := l.Events(o.res.Body)
			_, _ = io.Copy(out, events) // the stream is opened again
			_ = events.Close()
		}

		// A stream that was open for some time did not fail.
		if time.Since(begun) > maxListenPause {
			pause = minListenPause
		}

		select {
		case <-r.Context().Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, maxListenPause)
		o = l.opened(r.Clone(r.Context()))
	}
}

// ends is a body with a function to call when it is closed.
type ends struct {
	io.ReadCloser
	close func()
}

// Close closes the body.
func (e *ends) Close() error {
	e.close()
	return e.ReadCloser.Close()
}
