package openai

// call.go: call, a request to an endpoint.

import (
	"github.com/pawl-go/pawl/server/internal/turns"
	"github.com/pawl-go/pawl/server/internal/web"
)

// handler has what the endpoints share.
type handler struct{ *turns.Handler }

// call is a request to an endpoint.
type call struct{ *turns.Call }

// asked is the parsed request of either API form.
type asked struct {
	turns.Asked
	tools toolIndex // of Extras.Tools
}

type object = map[string]any

// on converts a handler of this package.
func (h *handler) on(do func(*call) error) func(*web.Call) error {
	return func(c *web.Call) error { return do(h.call(c)) }
}

// call returns a request.
func (h *handler) call(c *web.Call) *call {
	return &call{&turns.Call{Call: c, Handler: h.Handler}}
}
