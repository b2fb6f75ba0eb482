package core_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// These benchmarks measure the core without a provider: joining fragments, one call through the
// pipeline, and whole runs. make bench compares pawl with hand-written loops over HTTP.

// fixed is a model that makes the given number of calls in each of the given number of replies and
// then answers. Its replies are not streamed, so that only the core is measured.
type fixed struct {
	rounds, calls int
	args          json.RawMessage
	ids           []string
}

func newFixed(rounds, calls int) *fixed {
	f := &fixed{rounds: rounds, calls: calls, args: json.RawMessage(`{"path":"/a/b","limit":10,"query":"abcdefghij klmnopqrst"}`)}
	for i := range calls {
		f.ids = append(f.ids, fmt.Sprintf("call_%03d", i))
	}
	return f
}

func (f *fixed) Stream(_ context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		replies := 0
		for _, m := range req.Messages {
			if m.Role == llm.RoleAssistant {
				replies++
			}
		}
		if replies < f.rounds {
			for i := range f.calls {
				if !yield(llm.Delta{Index: i, Part: llm.ToolCall{ID: f.ids[i], Name: "look", Args: f.args},
					Done: true}, nil) {
					return
				}
			}
			yield(llm.Delta{Finish: llm.FinishReasonToolCalls}, nil)
			return
		}
		if yield(llm.Delta{Part: llm.Text{Text: "DONE"}, Done: true}, nil) {
			yield(llm.Delta{Finish: llm.FinishReasonStop}, nil)
		}
	}
}

const lookSchema = `{"type":"object","properties":{"path":{"type":"string"},"query":{"type":"string"},"limit":{"type":"integer"}},"required":["path","query","limit"],"additionalProperties":false}`

// look returns a tool whose result differs each time, so that a run of many rounds does not count
// as stalled.
func look() *pawl.Tool {
	result := strings.Repeat("result-line 0123456789 abcdefgh\n", 8)
	var n atomic.Int64
	return &pawl.Tool{Name: "look", Input: json.RawMessage(lookSchema), Effect: pawl.EffectRead,
		Run: func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
			return llm.TextResult(result[:len(result)-int(n.Add(1)%8)]), nil
		}}
}

func BenchmarkResponseAdd(b *testing.B) {
	for _, kib := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprintf("%dKiB", kib), func(b *testing.B) {
			fragment := json.RawMessage(strings.Repeat("x", 64))
			b.SetBytes(int64(kib) << 10)
			countCPU(b)
			for b.Loop() {
				var r llm.Response
				if err := r.Add(llm.Delta{Part: llm.ToolCall{ID: "c", Name: "look"}}); err != nil {
					b.Fatal(err)
				}
				for range kib << 10 / len(fragment) {
					if err := r.Add(llm.Delta{Part: llm.ToolCall{Args: fragment}}); err != nil {
						b.Fatal(err)
					}
				}
				if err := r.Add(llm.Delta{Finish: llm.FinishReasonToolCalls}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkPipeline(b *testing.B) {
	tool := look()
	for _, c := range []struct{ name, args string }{
		{"valid", `{"path":"/a/b","limit":10,"query":"abcdefghij klmnopqrst"}`},
		{"invalid", `{"path":"/a/b","limit":"ten"}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			call := llm.ToolCall{ID: "c", Name: "look", Args: json.RawMessage(c.args)}
			countCPU(b)
			for b.Loop() {
				if x := (pawl.Toolsets{tool}).Execute(b.Context(),
					call); (x.Outcome == pawl.OutcomeOK) != (c.name == "valid") {
					b.Fatalf("outcome %s: %s", x.Outcome, x.Error)
				}
			}
		})
	}
}

// BenchmarkByHand is the comparison for BenchmarkRun: a hand-written loop over a model in the same
// process. The loop has no argument check, no limit, no event and no record.
func BenchmarkByHand(b *testing.B) {
	type message struct {
		role, text, id string
		calls          []llm.ToolCall
	}
	result := strings.Repeat("result-line 0123456789 abcdefgh\n", 8)
	tools := map[string]func(args json.RawMessage) (string, error){"look": func(args json.RawMessage) (string, error) {
		var in struct {
			Path, Query string
			Limit       int
		}
		err := json.Unmarshal(args, &in)
		return result, err
	}}
	for _, shape := range []struct{ rounds, calls int }{{1, 1}, {3, 5}, {10, 1}, {1, 20}} {
		f := newFixed(shape.rounds, shape.calls)
		model := func(messages []message) message {
			replies := 0
			for _, m := range messages {
				if m.role == "assistant" {
					replies++
				}
			}
			if replies == f.rounds {
				return message{role: "assistant", text: "DONE"}
			}
			m := message{role: "assistant", calls: make([]llm.ToolCall, f.calls)}
			for i := range m.calls {
				m.calls[i] = llm.ToolCall{ID: f.ids[i], Name: "look", Args: f.args}
			}
			return m
		}
		b.Run(fmt.Sprintf("%dx%d", shape.rounds, shape.calls), func(b *testing.B) {
			countCPU(b)
			for b.Loop() {
				messages := []message{{role: "system", text: "Be brief."}, {role: "user", text: "look"}}
				for {
					reply := model(messages)
					messages = append(messages, reply)
					if len(reply.calls) == 0 {
						break
					}
					for _, c := range reply.calls {
						text, err := tools[c.Name](c.Args)
						if err != nil {
							b.Fatal(err)
						}
						messages = append(messages, message{role: "tool", text: text, id: c.ID})
					}
				}
				if messages[len(messages)-1].text != "DONE" {
					b.Fatal(messages)
				}
			}
		})
	}
}

func BenchmarkRun(b *testing.B) {
	for _, shape := range []struct{ rounds, calls int }{{1, 1}, {3, 5}, {10, 1}, {1, 20}} {
		agent := &pawl.Agent{Model: newFixed(shape.rounds, shape.calls), Tools: []pawl.Toolset{look()}, Instructions: "Be brief."}
		b.Run(fmt.Sprintf("%dx%d/whole", shape.rounds, shape.calls), func(b *testing.B) {
			countCPU(b)
			for b.Loop() {
				res, err := agent.Run(b.Context(), llm.User("look"))
				if err != nil || res.Text() != "DONE" {
					b.Fatalf("%+v %v", res, err)
				}
			}
		})
		b.Run(fmt.Sprintf("%dx%d/streamed", shape.rounds, shape.calls), func(b *testing.B) {
			countCPU(b)
			for b.Loop() {
				var last pawl.Event
				for e, err := range agent.Stream(b.Context(), llm.User("look")) {
					if err != nil {
						b.Fatal(err)
					}
					last = e
				}
				if last.Kind != pawl.EventRunEnded || last.Result.Text() != "DONE" {
					b.Fatalf("%+v", last)
				}
			}
		})
	}
}
