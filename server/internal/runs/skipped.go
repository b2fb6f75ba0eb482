package runs

// skipped.go: the notice about tools of a client that are not offered.

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
	"sync/atomic"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// noticeSkipped returns a middleware that emits the notice tools_skipped with the first reply of a
// run: tools of these types are executed by the servers of the client's API, and not offered here.
func noticeSkipped(types []string) pawl.Middleware {
	return pawl.Middleware{Model: func(m llm.Model) llm.Model {
		return &skippingModel{Model: m, types: types}
	}}
}

// skippingModel is a model that emits the notice.
type skippingModel struct {
	llm.Model
	types []string
	said  atomic.Bool
}

// Unwrap returns the model without the notice.
func (m *skippingModel) Unwrap() llm.Model { return m.Model }

// Stream emits the notice before the first reply.
func (m *skippingModel) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	if m.said.Swap(true) {
		return m.Model.Stream(ctx, req)
	}
	data, _ := json.Marshal(map[string]any{"types": m.types}) // texts always marshal
	notice := &llm.Notice{
		Code: "tools_skipped",
		Text: "the client's tools of the types " + strings.Join(m.types, ", ") +
			" are executed by the servers of its API; they are not offered to the model",
		Data: data,
	}
	return func(yield func(llm.Delta, error) bool) {
		if !yield(llm.Delta{Notice: notice}, nil) {
			return
		}
		for d, err := range m.Model.Stream(ctx, req) {
			if !yield(d, err) {
				return
			}
		}
	}
}
