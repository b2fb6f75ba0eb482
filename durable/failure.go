package durable

// failure.go: replays the usage of requests without a reply.

import (
	"github.com/pawl-go/pawl/durable/internal/record"
	"github.com/pawl-go/pawl/llm"
)

// yields is the consumer of a reply. It returns false when it wants no more.
type yields func(llm.Delta, error) bool

// yieldFailures yields the requests of earlier attempts that got no reply, and returns the consumer
// of the reply after them, whose usage includes theirs.
func yieldFailures(f record.Failure, yield yields) yields {
	if f.Error == "" {
		return yield // there were none
	}

	more := yield(llm.Delta{Requests: max(f.Requests, 0), Usage: &f.Usage}, nil)
	return func(d llm.Delta, err error) bool {
		if d.Usage != nil {
			d.Usage = d.Usage.Plus(f.Usage)
		}
		return more && yield(d, err)
	}
}
