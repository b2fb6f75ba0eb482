// model.go: models of tests.
package runtest

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strconv"
	"time"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// ModelFunc is a model that is a function.
type ModelFunc func(context.Context, *llm.Request) iter.Seq2[llm.Delta, error]

// Stream calls f.
func (f ModelFunc) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return f(ctx, req)
}

// InTurn is a model that plays one turn for each request. A script plays
// the turn of a conversation again if its request fails. Asked counts the requests.
type InTurn struct {
	Turns []script.Turn
	Asked int
}

// Stream plays the next turn.
func (m *InTurn) Stream(ctx context.Context, _ *llm.Request) iter.Seq2[llm.Delta, error] {
	m.Asked++
	turn := script.Fail(errors.New("no turn is left"))
	if m.Asked <= len(m.Turns) {
		turn = m.Turns[m.Asked-1]
	}
	return script.New(turn).Stream(ctx, &llm.Request{Messages: []llm.Message{llm.User("go")}})
}

// Written is a reply with its timing: the parts are sealed one after another, each after a pause.
type Written struct {
	Parts  []llm.Part
	After  []time.Duration // before each part, and before the end
	Finish llm.FinishReason
	Err    error // returned in place of the end
}

// Slowly is a model that streams replies, one for each request, in real time.
func Slowly(replies ...Written) ModelFunc {
	return func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
		n := 0
		for _, m := range req.Messages {
			if m.Role == llm.RoleAssistant {
				n++
			}
		}
		return func(yield func(llm.Delta, error) bool) {
			if n >= len(replies) {
				if yield(llm.Delta{Part: Text("done"), Done: true}, nil) {
					yield(llm.Delta{Finish: llm.FinishReasonStop}, nil)
				}
				return
			}
			r := replies[n]
			for i := 0; i <= len(r.Parts); i++ {
				if i < len(r.After) {
					select {
					case <-time.After(r.After[i]):
					case <-ctx.Done():
						yield(llm.Delta{}, ctx.Err())
						return
					}
				}
				if i < len(r.Parts) && !yield(llm.Delta{Index: i, Part: r.Parts[i], Done: true}, nil) {
					return
				}
			}
			if r.Err != nil {
				yield(llm.Delta{}, r.Err)
				return
			}
			finish := r.Finish
			if finish == "" {
				finish = llm.FinishReasonToolCalls
			}
			yield(llm.Delta{Finish: finish, Usage: &llm.Usage{Input: 10, Output: 5}}, nil)
		}
	}
}

// Together is a model that makes all calls in its first reply and then answers.
func Together(calls ...llm.ToolCall) *script.Model {
	parts := make([]llm.Part, len(calls))
	for i, c := range calls {
		if c.ID == "" {
			c.ID = "c" + strconv.Itoa(i)
		}
		if c.Args == nil {
			c.Args = json.RawMessage("{}")
		}
		parts[i] = c
	}
	return script.New(script.Turn{Parts: parts}, script.Say("done"))
}

// Named returns calls of the named tools.
func Named(names ...string) []llm.ToolCall {
	calls := make([]llm.ToolCall, len(names))
	for i, n := range names {
		calls[i].Name = n
	}
	return calls
}

// Reader is a model that makes the calls that next returns for each result, until next returns
// none.
func Reader(next func(last string) *llm.ToolCall) llm.Model {
	return ModelFunc(func(_ context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			last := ""
			if m := req.Messages[len(req.Messages)-1]; m.Role == llm.RoleTool {
				last = m.Parts[0].(llm.ToolResult).Text()
			}
			if c := next(last); c != nil {
				_ = yield(llm.Delta{Part: *c}, nil) && yield(llm.Delta{Finish: llm.FinishReasonToolCalls}, nil)
				return
			}
			_ = yield(llm.Delta{Part: Text("read")}, nil) && yield(llm.Delta{Finish: llm.FinishReasonStop}, nil)
		}
	})
}

// Caller is a model that makes a call of f in every reply, with new arguments each time.
func Caller() *script.Model {
	return script.New(script.Loop(script.Func(func(req *llm.Request) script.Turn {
		return script.Call("f", `{"n":`+strconv.Itoa(len(req.Messages))+`}`)
	})))
}
