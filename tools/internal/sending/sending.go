// Package sending finds out how far a request over HTTP came, for the Certainty of the call that
// sent it.
//
//	ctx, sent := sending.Watch(ctx)
//	res, err := client.Do(req.WithContext(ctx))
//	if err != nil {
//		return delivery.NewError(sent.Certainty(), "…", err)
//	}
//	certainty := sending.OfStatus(res.StatusCode, isEmpty)
package sending

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/delivery"
	"github.com/pawl-go/pawl/internal/outgoing"
	"github.com/pawl-go/pawl/llm"
)

// Request is what is known about the requests that are sent with one context. It is safe for
// concurrent use.
type Request struct {
	sent   atomic.Bool
	status atomic.Int64 // of the last response; 0 means none
	empty  atomic.Bool  // whether that response has no body
}

type requestKey struct{}

// Watch returns a context whose requests are watched. Their first byte is sent after the engine of
// the run has stored the intent of the call: pawl.Invocation.Sending.
func Watch(ctx context.Context) (context.Context, *Request) {
	r := new(Request)
	call := pawl.InvocationFrom(ctx)
	watched := outgoing.Before(ctx, func() error { return call.Sending(ctx) })
	trace := &httptrace.ClientTrace{WroteHeaders: func() { r.sent.Store(true) }}
	return context.WithValue(httptrace.WithClientTrace(watched, trace), requestKey{}, r), r
}

// Answered records the response to a request whose context may be watched.
func Answered(res *http.Response) {
	r, ok := res.Request.Context().Value(requestKey{}).(*Request)
	if !ok {
		return
	}
	r.status.Store(int64(res.StatusCode))
	r.empty.Store(res.ContentLength == 0)
}

// Status returns the status of the last response, and whether the response has no body. 0 means
// that there was no response.
func (r *Request) Status() (status int, empty bool) { return int(r.status.Load()), r.empty.Load() }

// Certainty returns what is known about a call whose request got no response that can be read.
func (r *Request) Certainty() delivery.Certainty {
	if stated := OfStatus(r.Status()); stated != "" {
		return stated
	}
	if r.sent.Load() {
		return delivery.Unknown
	}
	return delivery.NotSent
}

// OfStatus returns what a status says about the work of a request. Empty means that the server
// answered, so that its response says what happened. empty means that the response has no body.
func OfStatus(status int, empty bool) delivery.Certainty {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusTooManyRequests:
		return delivery.Refused
	case http.StatusServiceUnavailable:
		if empty {
			return delivery.Refused
		}

	// A gateway did not get the response of the server that does the work.
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		return delivery.Unknown
	}
	return ""
}

// IsDown reports whether a status says that the service is down or busy, and not that it refuses
// this request.
func IsDown(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// Down marks the error of a call that failed because the service is down or busy. The pipeline
// retries the call if its effect allows it, and policy.Breaker counts it.
func Down(e *delivery.Error) *delivery.Error {
	cause := e.Err
	if cause == nil {
		cause = errors.New(e.Result.Text())
	}
	down := *e
	down.Err = pawl.RetryableError(cause)
	return &down
}

// Stated returns the result of a call that a server answered with a status, or the Error that
// the status stands for.
func Stated(res llm.ToolResult, status int, empty bool) (llm.ToolResult, error) {
	if c := OfStatus(status, empty); c != "" {
		return llm.ToolResult{}, &delivery.Error{Certainty: c, Result: res}
	}
	return res, nil
}
