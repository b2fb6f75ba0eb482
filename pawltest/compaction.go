package pawltest

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest/internal/reply"
	"github.com/pawl-go/pawl/pawltest/internal/seal"
	"github.com/pawl-go/pawl/pawltest/internal/summaries"
	"github.com/pawl-go/pawl/pawltest/internal/wire"
)

// unmanaged refuses an order that the API does not know, is not allowed to follow, or that is too
// early, and a summary without its beta feature.
func unmanaged(got *Received) *wire.Error {
	if got.API == Responses {
		if o, ok := summaries.OrderOf(got.Body, true); ok && (o.Kind != "compaction" || o.Trigger < 1000) {
			return &wire.Error{Status: 400, Param: "context_management", Message: fmt.Sprintf("context_management: %+v is not possible", o)}
		}
		return nil
	}
	if why := summaries.Refusal(got.Body, got.Header, got.Request); why != "" {
		return &wire.Error{Status: 400, Param: "context_management", Message: why}
	}
	return nil
}

// manage follows the order of a request: it returns the model that answers, whose reply begins with
// a summary or which does not see old results.
func (s *Simulator) manage(got *Received, answer *reply.Reply, model llm.Model) llm.Model {
	m, ok := summaries.OrderOf(got.Body, got.API == Responses)
	tokens := len(got.Body) / 4
	if s.opts.Tokens != nil {
		tokens = s.opts.Tokens(got)
	}
	if got.API == Anthropic && summaries.Asked(got.Body) {
		answer.Managed.OnDemand = tokens
		return onDemand(len(got.Request.Messages))
	}
	if !ok || tokens <= m.Trigger {
		return model
	}
	if m.Kind == "clear_tool_uses_20250919" {
		return clearResults(answer, model, m.Keep)
	}
	summary := seal.Text(fmt.Sprintf("summary of %d messages", len(got.Request.Messages)))
	block := wire.Object{"type": "compaction", "content": summary}
	if got.API == Responses {
		block = wire.Object{"type": "compaction", "id": "cmp_" + answer.ID, "encrypted_content": summary}
	}
	answer.Managed.Compacted = tokens
	name := map[string]string{Responses: "openai", Anthropic: "anthropic"}[got.API]
	if answer.Prefix != "" { // thinking is bound to the summary
		only := new(*got.Request)
		only.Messages = summaries.Instructions(got.Request)
		all := seal.Prefixes(only, true)
		answer.Prefix = all[len(all)-1]
	}
	part := llm.Reasoning{Opaque: &llm.Opaque{Provider: name, Data: wire.Marshal(block)}}
	return modelFunc(func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			if !yield(llm.Delta{Part: part, Done: true}, nil) {
				return
			}
			for d, err := range model.Stream(ctx, req) {
				if d.Part != nil || d.Done {
					d.Index++
				}
				if !yield(d, err) {
					return
				}
			}
		}
	})
}

// onDemand returns the model that writes a signed summary of n messages, and nothing else.
func onDemand(n int) llm.Model {
	summary := fmt.Sprintf("summary of %d messages", n)
	block := wire.Object{"type": "compaction", "content": summary, "signature": seal.Sign(summary)}
	part := llm.Reasoning{Opaque: &llm.Opaque{Provider: "anthropic", Data: wire.Marshal(block)}}
	return modelFunc(func(context.Context, *llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			if yield(llm.Delta{Part: part, Done: true}, nil) {
				yield(llm.Delta{Usage: new(llm.Usage), Finish: "compaction"}, nil)
			}
		}
	})
}

// clearResults returns the model that sees a line in place of each result but the last keep.
func clearResults(answer *reply.Reply, model llm.Model, keep int) llm.Model {
	req := new(*answer.Request)
	req.Messages = slices.Clone(req.Messages)
	bytes := 0
	for i, m := range slices.Backward(req.Messages) {
		if m.Role != llm.RoleTool {
			continue
		}
		req.Messages[i].Parts = slices.Clone(m.Parts)
		for k, p := range slices.Backward(m.Parts) {
			if p, ok := p.(llm.ToolResult); ok {
				keep--
				if keep < 0 {
					bytes += len(p.Text())
					answer.Managed.Cleared++
					p.Parts = []llm.Part{llm.Text{Text: "[cleared to save context]"}}
					req.Messages[i].Parts[k] = p
				}
			}
		}
	}
	answer.Managed.ClearedTokens = bytes / 4
	return modelFunc(func(ctx context.Context, _ *llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			for d, err := range model.Stream(ctx, req) {
				if d.Usage != nil {
					u := *d.Usage
					u.Input = max(1, u.Input-answer.Managed.ClearedTokens)
					d.Usage = &u
				}
				if !yield(d, err) {
					return
				}
			}
		}
	})
}

// modelFunc is a Model of one function.
type modelFunc func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error]

func (f modelFunc) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return f(ctx, req)
}
