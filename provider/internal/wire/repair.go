package wire

import (
	"context"
	"slices"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
)

// Rules are what an API wants of the messages of a request.
type Rules struct {
	llm.HistoryRules
	Heads []string // options that say that the beginning of the conversation lies at the provider: what came before is not known then
}

// Heal returns req with messages that the rules allow: a copy where they had to be mended, else req itself. It tells each mend through
// yield, and reports whether the consumer wants more. What has no mend is left for the encoder to refuse. options are the request's for
// this provider.
func (r *Rules) Heal(ctx context.Context, req *llm.Request, options []byte, yield func(llm.Delta, error) bool) (*llm.Request, bool) {
	sent, mends := r.RepairRequest(req)
	if len(mends) == 0 || r.continues(options) {
		return req, true
	}
	for _, m := range mends {
		if !yield(llm.Delta{Notice: m.Notice()}, nil) {
			return sent, false
		}
	}
	return sent, true
}

// continues reports whether options name one of Heads.
func (r *Rules) continues(options []byte) bool {
	if len(r.Heads) == 0 || !jsonscan.IsObject(options) {
		return false
	}
	c := jsonscan.New(options)
	c.Object()
	for k, ok := c.Key(); ok; k, ok = c.Key() {
		if slices.Contains(r.Heads, string(k)) {
			return true
		}
	}
	return false
}
