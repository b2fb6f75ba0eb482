package openai

// call.go: call, a request to an endpoint.

import "github.com/pawl-go/pawl/server/internal/web"

// Options are what the replies show.
type Options struct {
	HideReasoning bool // leaves reasoning_content out of Chat Completions
	ShowCalls     bool // adds a line for each call of the agent's own tools to it
}

// handler has what the endpoints share.
type handler struct {
	Options
	window window
}

// call is a request to an endpoint.
type call struct {
	*web.Call
	handler *handler
}

type object = map[string]any

// on converts a handler of this package.
func (h *handler) on(do func(*call) error) func(*web.Call) error {
	return func(c *web.Call) error { return do(&call{c, h}) }
}
