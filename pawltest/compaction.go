package pawltest

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest/internal/summaries"
)

// unmanaged refuses an order that the API does not know, is not allowed to follow, or that is too
// early, and a summary without its beta feature.
func unmanaged(got *Received) *apiError {
	if got.API == Responses {
		if o, ok := summaries.OrderOf(got.Body, true); ok && (o.Kind != "compaction" || o.Trigger < 1000) {
			return &apiError{Status: 400, Param: "context_management", Message: fmt.Sprintf("context_management: %+v is not possible", o)}
		}
		return nil
	}
	if why := summaries.Refusal(got.Body, got.Header, got.Request); why != "" {
		return &apiError{Status: 400, Param: "context_management", Message: why}
	}
	return nil
}

// compaction returns the summary that a server wrote, or nil.
func compaction(p llm.Part) (content string, ok bool) {
	r, is := p.(llm.Reasoning)
	if !is || r.Opaque == nil {
		return "", false
	}
	var block struct {
		Type, Content string
		Encrypted     string `json:"encrypted_content"`
	}
	json.Unmarshal(r.Opaque.Data, &block)
	return or(block.Content, block.Encrypted), block.Type == "compaction"
}

// sinceCompaction returns the request as the server reads it: without what stands before the last
// summary, but for instructions. ok is false if there is no summary.
func sinceCompaction(req *llm.Request) (_ *llm.Request, ok bool) {
	if req == nil {
		return req, false
	}
	for i, m := range slices.Backward(req.Messages) {
		if !slices.ContainsFunc(m.Parts, func(p llm.Part) bool { _, ok := compaction(p); return ok }) {
			continue
		}
		r := new(*req)
		r.Messages = append(instructions(req), req.Messages[i:]...)
		return r, true
	}
	return req, false
}

func instructions(req *llm.Request) []llm.Message {
	return slices.DeleteFunc(slices.Clone(req.Messages), func(m llm.Message) bool { return m.Role != llm.RoleSystem })
}

// manage follows the order of a request: it returns the model that answers, whose reply begins with
// a summary or which does not see old results.
func (s *Simulator) manage(got *Received, r *reply, model llm.Model) llm.Model {
	m, ok := summaries.OrderOf(got.Body, got.API == Responses)
	tokens := len(got.Body) / 4
	if s.opts.Tokens != nil {
		tokens = s.opts.Tokens(got)
	}
	if got.API == Anthropic && summaries.Asked(got.Body) {
		r.onDemand = tokens
		return onDemand(len(got.Request.Messages))
	}
	if !ok || tokens <= m.Trigger {
		return model
	}
	if m.Kind == "clear_tool_uses_20250919" {
		return r.clear(model, m.Keep)
	}
	summary := seal(fmt.Sprintf("summary of %d messages", len(got.Request.Messages)))
	block := object{"type": "compaction", "content": summary}
	if got.API == Responses {
		block = object{"type": "compaction", "id": "cmp_" + r.id, "encrypted_content": summary}
	}
	r.compacted = tokens
	name := map[string]string{Responses: "openai", Anthropic: "anthropic"}[got.API]
	if r.prefix != "" { // thinking is bound to the summary
		only := new(*got.Request)
		only.Messages = instructions(got.Request)
		all := prefixes(only, true)
		r.prefix = all[len(all)-1]
	}
	part := llm.Reasoning{Opaque: &llm.Opaque{Provider: name, Data: marshal(block)}}
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
	block := object{"type": "compaction", "content": summary, "signature": sign(summary)}
	part := llm.Reasoning{Opaque: &llm.Opaque{Provider: "anthropic", Data: marshal(block)}}
	return modelFunc(func(context.Context, *llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			if yield(llm.Delta{Part: part, Done: true}, nil) {
				yield(llm.Delta{Usage: new(llm.Usage), Finish: "compaction"}, nil)
			}
		}
	})
}

// clear returns the model that sees a line in place of each result but the last keep.
func (r *reply) clear(model llm.Model, keep int) llm.Model {
	req := new(*r.req)
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
					r.cleared++
					p.Parts = []llm.Part{llm.Text{Text: "[cleared to save context]"}}
					req.Messages[i].Parts[k] = p
				}
			}
		}
	}
	r.clearedTokens = bytes / 4
	return modelFunc(func(ctx context.Context, _ *llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			for d, err := range model.Stream(ctx, req) {
				if d.Usage != nil {
					u := *d.Usage
					u.Input = max(1, u.Input-r.clearedTokens)
					d.Usage = &u
				}
				if !yield(d, err) {
					return
				}
			}
		}
	})
}

// managedMember adds to o what the server says of the results that it cleared.
func (r *reply) managedMember(o object) {
	if r.cleared > 0 {
		o["context_management"] = object{"applied_edits": []object{{"type": "clear_tool_uses_20250919",
			"cleared_tool_uses": r.cleared, "cleared_input_tokens": r.clearedTokens}}}
	}
}

// modelFunc is a Model of one function.
type modelFunc func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error]

func (f modelFunc) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return f(ctx, req)
}
