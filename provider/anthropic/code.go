package anthropic

import (
	"slices"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// held returns req without the messages after results for which code in the server's container
// waits. The API accepts nothing but results then. The messages keep their place in the
// conversation, and a later request sends them. Without such messages, held returns req itself.
func (d *dialect) held(req *llm.Request) *llm.Request {
	at := len(req.Messages) - 1
	for at >= 0 && req.Messages[at].Role != llm.RoleAssistant {
		at--
	}
	end := at + 2 // after the results
	if at < 0 || end >= len(req.Messages) {
		return req
	}

	answered := req.Messages[at+1].Role == llm.RoleTool
	if !answered || !slices.ContainsFunc(req.Messages[at].Parts, d.calledByCode) {
		return req
	}
	sent := *req
	sent.Messages = req.Messages[:end]
	return &sent
}

// codeWaits reports whether code in the server's container waits for the results that end messages.
func (d *dialect) codeWaits(messages []llm.Message) bool {
	for _, msg := range slices.Backward(messages) {
		if msg.Role == llm.RoleAssistant {
			return slices.ContainsFunc(msg.Parts, d.calledByCode)
		}
	}
	return false
}

// calledByCode reports whether p is a call by code in the server's container.
func (d *dialect) calledByCode(p llm.Part) bool {
	c, ok := p.(llm.ToolCall)
	if !ok || c.Opaque == nil || c.Opaque.Provider != d.tag {
		return false
	}
	return foreign(wire.Member(c.Opaque.Data, "caller"))
}

// emitHeld emits a notice if messages of req are not sent with it.
func (m *Model) emitHeld(req *llm.Request, yield func(llm.Delta, error) bool) bool {
	if m.held(req) == req {
		return true
	}
	return yield(llm.Delta{Notice: &llm.Notice{Code: "message_held", Text: "anthropic: code in the container " +
		"waits for results, and the API accepts nothing else now; a later request sends the messages after them"}}, nil)
}
