package team

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// Network returns the lead with its workers as tools, by name and after its own tools. Its model
// gives out work as it calls any tool. Plans (tools/plan) and code (tools/code) among its tools can
// call workers, too, in parallel. If the model answers without text, the last words of a worker are
// the answer.
func Network(lead *pawl.Agent, workers ...Worker) (*pawl.Agent, error) {
	if err := checked(lead, workers); err != nil {
		return nil, err
	}
	a := *lead
	a.Name = nameOf(lead)
	workers = slices.Clone(workers)
	// The order of tools is a part of the prompt that caches compare, so that it must not depend on
	// the program.
	slices.SortFunc(workers, func(a, b Worker) int { return strings.Compare(a.Agent.Name, b.Agent.Name) })
	a.Tools = slices.Clone(lead.Tools)
	for _, w := range workers {
		a.Tools = append(a.Tools, w.tool())
	}
	names := namesOf(workers)
	a.Middleware = append(slices.Clone(lead.Middleware),
		pawl.Middleware{Model: func(m llm.Model) llm.Model { return &spoken{m, names} }})
	return &a, nil
}

// spoken is a model that answers with the last words of a worker if it would answer without text.
type spoken struct {
	llm.Model
	workers []string
}

var _ llm.Model = (*spoken)(nil)

// Unwrap returns the model of the lead.
func (s *spoken) Unwrap() llm.Model { return s.Model }

// Stream passes a reply on. A reply without text and without calls gets its text before its end.
func (s *spoken) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		said := false
		next := 0
		for d, err := range s.Model.Stream(ctx, req) {
			switch p := d.Part.(type) {
			case llm.Text:
				said = said || strings.TrimSpace(p.Text) != ""
			// A call is no answer, and media are one.
			case llm.ToolCall, llm.Media:
				said = true
			}
			if d.Part != nil {
				next = max(next, d.Index+1)
			}
			if d.Finish == llm.FinishReasonStop && !said && err == nil {
				if text := s.last(req.Messages); text != "" &&
					!yield(llm.Delta{Index: next, Part: llm.Text{Text: text}, Done: true}, nil) {
					return
				}
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// last is what a worker said last in this turn; "" for none.
func (s *spoken) last(msgs []llm.Message) string {
	for i := len(msgs) - 1; i > 0 && msgs[i].Role != llm.RoleUser; i-- {
		for k := len(msgs[i].Parts) - 1; k >= 0; k-- {
			r, ok := msgs[i].Parts[k].(llm.ToolResult)
			if !ok || r.IsError {
				continue
			}
			for _, c := range msgs[i-1].Calls() {
				if c.ID == r.CallID && slices.Contains(s.workers, c.Name) {
					return r.Text()
				}
			}
		}
	}
	return ""
}
