package durable

// failure.go: the usage of requests without a reply.

import (
	"cmp"
	"context"

	"github.com/pawl-go/pawl/durable/internal/record"
	"github.com/pawl-go/pawl/llm"
)

// countFailure counts the requests of a reply that did not arrive: the end of the attempt stores them.
// fetched means that the reply stays at the provider for the next attempt.
func (s *session) countFailure(ctx context.Context, key llm.Key, resp *llm.Response, err error, fetched bool) {
	why := cmp.Or(context.Cause(ctx), err, resp.Err())
	f := record.Failure{Requests: resp.Requests, Usage: resp.Usage, Error: why.Error()}
	if ctx.Err() != nil && !fetched {
		f.Requests++ // as the run counts it
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failures == nil {
		s.failures = map[llm.Key]record.Failure{}
	}
	s.failures[key] = s.failures[key].With(f)
}

// after yields the usage of the earlier requests f, and returns yield for the reply after them.
func after(f record.Failure, yield func(llm.Delta, error) bool) func(llm.Delta, error) bool {
	if f.Error == "" {
		return yield // none
	}
	more := yield(llm.Delta{Requests: max(f.Requests, 0), Usage: &f.Usage}, nil)
	return func(d llm.Delta, err error) bool {
		if d.Usage != nil {
			d.Usage = d.Usage.Plus(f.Usage)
		}
		return more && yield(d, err)
	}
}
