package server_test

import (
	"context"
	"encoding/json"
	"iter"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/observe"
	"github.com/pawl-go/pawl/provider/openai"
	"github.com/pawl-go/pawl/server"
	"github.com/pawl-go/pawl/store"
)

// An agent whose model is an agent on a server, through our own adapter, over both APIs, with a
// tool that the local agent executes.
func TestAnAgentOfAnAgent(t *testing.T) {
	for name, open := range map[string]func(string, *openai.Options) *openai.Model{"responses": openai.New, "chat": openai.NewChat} {
		t.Run(name, func(t *testing.T) {
			v := serve(t, nil)
			options := &openai.Options{BaseURL: v.url + "/v1", Key: "none"}
			ran := 0
			locate := &pawl.Tool{Name: "locate", Description: "Where the user is.",
				Input: json.RawMessage(`{"type":"object"}`), Run: func(_ context.Context, call llm.ToolCall) (llm.ToolResult, error) {
					ran++
					return llm.TextResult("Rome"), nil
				}}
			near := &pawl.Agent{Model: open("clerk", options), Tools: []pawl.Toolset{locate}}
			res, err := near.Run(t.Context(), llm.User("locate me"))
			if err != nil || res.Text() != "Done: Rome" || ran != 1 {
				t.Errorf("got %q, %v; the tool ran %d times", res.Text(), err, ran)
			}
			var text strings.Builder
			for e, err := range near.Stream(t.Context(), llm.User("look here")) {
				if err != nil {
					t.Fatal(err)
				}
				text.WriteString(e.Text)
			}
			if !strings.Contains(text.String(), "Done: found here") {
				t.Errorf("streamed: %q", text.String())
			}
		})
	}
}

// A client's result that arrives before its run has stopped here resumes it all the same.
func TestAResultThatComesEarly(t *testing.T) {
	journal := new(store.MemoryJournal)
	stopped := make(chan struct{})
	v := serve(t, func(o *server.Options) {
		o.Journal = journal
		o.Around = func(_, _ string, r pawl.Runner) pawl.Runner {
			return observe.RunnerFunc(func(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
				return func(yield func(pawl.Event, error) bool) {
					for e, err := range r.Stream(ctx, msgs...) {
						if !yield(e, err) {
							return
						}
					}
					<-stopped
				}
			})
		}
	})
	ask := `{"model":"clerk","messages":[{"role":"user","content":"locate me"}],"tools":[{"type":"function","function":{"name":"locate"}}]}`
	var first, second struct {
		Choices []struct {
			Message struct {
				Content   string
				ToolCalls []struct{ ID string } `json:"tool_calls"`
			}
		}
	}
	v.do("POST", "/v1/chat/completions", ask, 200, &first)
	id := first.Choices[0].Message.ToolCalls[0].ID
	go func() {
		defer close(stopped)
		for t.Context().Err() == nil { // until the result is stored
			runs, err := journal.JournalRuns(t.Context(), store.Scope{}, "", store.Page{})
			if err != nil || len(runs) != 1 {
				return
			}
			records, _ := journal.JournalRecords(t.Context(), runs[0].Scope, runs[0].ID, 0)
			if slices.ContainsFunc(records, func(r store.Record) bool { return r.Kind == "decision" }) {
				for range 20 { // in the meantime the request looks for the run
					v.request("GET", "/v1/runs", "").Body.Close()
				}
				return
			}
			runtime.Gosched()
		}
	}()
	v.do("POST", "/v1/chat/completions", `{"model":"clerk","messages":[{"role":"user","content":"locate me"},{"role":"assistant","tool_calls":[{"id":"`+id+`","type":"function","function":{"name":"locate","arguments":"{}"}}]},{"role":"tool","tool_call_id":"`+id+`","content":"Rome"}]}`, 200, &second)
	if got := second.Choices[0].Message; got.Content != "Done: Rome" || len(got.ToolCalls) > 0 {
		t.Errorf("got %+v", got)
	}
}

// The calls that a client executes are answered once, also through a server that was started after
// they were made.
func TestAClientsResultsReachTheRun(t *testing.T) {
	journal := new(store.MemoryJournal)
	v := serve(t, func(o *server.Options) { o.Journal = journal })
	ask := `{"model":"clerk","messages":[{"role":"user","content":"locate me"}],"tools":[{"type":"function","function":{"name":"locate"}}]}`
	var first struct {
		Choices []struct {
			Message struct {
				ToolCalls []struct{ ID string } `json:"tool_calls"`
			}
		}
	}
	v.do("POST", "/v1/chat/completions", ask, 200, &first)
	id := first.Choices[0].Message.ToolCalls[0].ID
	answer := `{"model":"clerk","messages":[{"role":"user","content":"locate me"},{"role":"assistant","tool_calls":[{"id":"` + id + `","type":"function","function":{"name":"locate","arguments":"{}"}}]},{"role":"tool","tool_call_id":"` + id + `","content":"Rome"}]}`
	next := serve(t, func(o *server.Options) { o.Journal = journal })
	var second struct {
		Choices []struct{ Message struct{ Content string } }
	}
	next.do("POST", "/v1/chat/completions", answer, 200, &second)
	if got := second.Choices[0].Message.Content; got != "Done: Rome" {
		t.Errorf("got %q", got)
	}
	var list server.Runs
	next.do("GET", "/v1/runs", "", 200, &list)
	if len(list.Runs) != 1 || list.Runs[0].State != "over" {
		t.Errorf("runs: %+v", list.Runs)
	}
	next.do("POST", "/v1/chat/completions", answer, 422, nil)
	next.do("POST", "/v1/chat/completions", strings.Replace(answer, id, "call_chat_nobody_1-0", 2), 404, nil)
	for _, bad := range []string{`{"model":"clerk"}`, `{"model":"clerk","messages":[{"role":"x"}]}`, `{"model":"clerk","n":2,"messages":[{"role":"user","content":"x"}]}`, `{"model":"clerk","messages":[{"role":"user","content":5}]}`,
		`{"model":"clerk","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"pay"}}]}`, `{"model":"clerk","messages":[{"role":"user","content":"x"}],"tools":[{"type":"web"}]}`,
		`{"model":"clerk","messages":[{"role":"user","content":"x"}],"tool_choice":"sometimes"}`} {
		next.do("POST", "/v1/chat/completions", bad, 400, nil)
	}
	for _, bad := range []string{`{"model":"clerk"}`, `{"model":"clerk","input":[{"type":"item_reference"}]}`, `{"model":"clerk","input":[{}]}`, `{"model":"clerk","input":"x","background":true}`} {
		next.do("POST", "/v1/responses", bad, 400, nil)
	}
}
