package runs

// estimate.go: the size of a request before a model has counted it.

import (
	"context"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/history"
	"github.com/pawl-go/pawl/llm"
)

// Estimate returns about how many tokens the first request of a run would have: the instructions
// and the tools of the agent and of its client, and the messages. No run is started.
func (s *Service) Estimate(ctx context.Context, c Caller, r Request) (tokens int, err error) {
	a, err := s.Agent(r.Agent)
	if err != nil {
		return 0, err
	}
	a, err = r.Extras.apply(c.in(ctx), a)
	if err != nil {
		return 0, err
	}
	tools, err := pawl.Toolsets(a.Tools).Tools(c.in(ctx))
	if err != nil {
		return 0, err
	}

	req := &llm.Request{Messages: append([]llm.Message{llm.System(a.Instructions)}, r.Messages...)}
	for _, t := range tools {
		req.Tools = append(req.Tools, t.Spec())
	}
	return history.Estimate(req), nil
}
