package wire

import (
	"slices"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
)

// Rules are the requirements of an API on the messages of a request.
type Rules struct {
	llm.HistoryRules
	// Heads are options that continue a conversation stored at the provider. Its earlier messages
	// are then unknown.
	Heads []string
}

// Repair returns req with messages that the rules allow. It returns req itself if nothing needs
// repair, and otherwise a copy. It emits each repair through yield, and reports whether the
// consumer wants more. Faults without a repair remain, and the encoder rejects them. options are
// the request's options for this provider.
func (r *Rules) Repair(req *llm.Request, options []byte,
	yield func(llm.Delta, error) bool) (*llm.Request, bool) {
	sent, repairs := r.RepairRequest(req)
	if len(repairs) == 0 || r.continues(options) {
		return req, true
	}
	for _, m := range repairs {
		if !yield(llm.Delta{Notice: m.Notice()}, nil) {
			return sent, false
		}
	}
	return sent, true
}

// continues reports whether options has one of Heads.
func (r *Rules) continues(options []byte) bool {
	if len(r.Heads) == 0 || !jsonscan.IsObject(options) {
		return false
	}
	c := jsonscan.New(options)
	for k := range c.Members() {
		if slices.Contains(r.Heads, string(k)) {
			return true
		}
	}
	return false
}
