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
	"github.com/pawl-go/pawl/provider/anthropic"
	"github.com/pawl-go/pawl/provider/openai"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/store"
)

// An agent whose model is an agent on a server, through our own adapters, over each API, with a
// tool that the local agent executes.
func TestAnAgentOfAnAgent(t *testing.T) {
	for name, open := range map[string]func(url string) llm.Model{
		"responses": func(url string) llm.Model { return openai.New("clerk", &openai.Options{BaseURL: url, Key: "none"}) },
		"chat":      func(url string) llm.Model { return openai.NewChat("clerk", &openai.Options{BaseURL: url, Key: "none"}) },
		"messages": func(url string) llm.Model {
			return anthropic.New("clerk", &anthropic.Options{BaseURL: url, Key: "none"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := serve(t, nil)
			ran := 0
			locate := &pawl.Tool{Name: "locate", Description: "Where the user is.",
				Input: json.RawMessage(`{"type":"object"}`), Run: func(_ context.Context, call llm.ToolCall) (llm.ToolResult, error) {
					ran++
					return llm.TextResult("Rome"), nil
				}}
			near := &pawl.Agent{Model: open(v.url + "/v1"), Tools: []pawl.Toolset{locate}}
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
	v := serve(t, func(o *options) {
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
	v := serve(t, func(o *options) { o.Journal = journal })
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
	next := serve(t, func(o *options) { o.Journal = journal })
	var second struct {
		Choices []struct{ Message struct{ Content string } }
	}
	next.do("POST", "/v1/chat/completions", answer, 200, &second)
	if got := second.Choices[0].Message.Content; got != "Done: Rome" {
		t.Errorf("got %q", got)
	}
	var list api.Runs
	next.do("GET", "/v1/runs", "", 200, &list)
	if len(list.Runs) != 1 || list.Runs[0].State != "over" {
		t.Errorf("runs: %+v", list.Runs)
	}
	again := request(t, "POST", serve(t, func(o *options) { o.Journal = journal }).url+"/v1/chat/completions", answer)
	again.Header.Set("X-Stainless-Retry-Count", "1") // another process answered the first try
	if res, err := next.client.Do(again); err != nil || res.StatusCode != 422 {
		t.Errorf("repeated: %v, %v", res, err)
	}
	next.do("POST", "/v1/chat/completions", strings.Replace(answer, id, "call_chat_nobody_1-0", 2), 404, nil)
	for _, bad := range []string{`{"model":"clerk"}`, `{"model":"clerk","messages":[{"role":"x"}]}`, `{"model":"clerk","n":2,"messages":[{"role":"user","content":"x"}]}`, `{"model":"clerk","messages":[{"role":"user","content":5}]}`,
		`{"model":"clerk","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"pay"}}]}`, `{"model":"clerk","messages":[{"role":"user","content":"x"}],"tools":[{"name":"web"}]}`,
		`{"model":"clerk","messages":[{"role":"user","content":"x"}],"tool_choice":"sometimes"}`} {
		next.do("POST", "/v1/chat/completions", bad, 400, nil)
	}
	for _, bad := range []string{`{"model":"clerk"}`, `{"model":"clerk","input":[{"type":"item_reference"}]}`, `{"model":"clerk","input":[{}]}`, `{"model":"clerk","input":"x","background":true}`} {
		next.do("POST", "/v1/responses", bad, 400, nil)
	}
}

// A conversation goes on after the client gave its results: a run that failed continues, and does
// not call again; if the user writes again, or wants another answer, a new run begins.
func TestConversationAfterResults(t *testing.T) {
	gate := make(chan struct{})
	defer close(gate)
	broken, paid := false, 0
	model := script.New(script.Loop(script.Func(func(req *llm.Request) script.Turn {
		last := req.Messages[len(req.Messages)-1]
		switch res := script.Results(req); {
		case last.Role == llm.RoleUser && last.Text() != "begin":
			return script.Say("heard " + last.Text())
		case res == nil:
			return script.Call("locate", nil)
		case res[0].Text() == "slow":
			return script.Call("wait", nil)
		case res[0].Text() == "paid" && broken:
			return script.Fail(&llm.ProviderError{Status: 400, Message: "made to fail"})
		case res[0].Text() == "paid":
			return script.Say("Done.")
		}
		return script.Call("pay", nil)
	})))
	pay := pawl.Func("pay", "Pays.", func(context.Context, struct{}) (string, error) { paid++; return "paid", nil })
	wait := pawl.Func("wait", "Waits.", func(ctx context.Context, _ struct{}) (string, error) {
		select {
		case <-gate:
		case <-ctx.Done():
		}
		return "waited", ctx.Err()
	})
	v := serve(t, func(o *options) {
		o.Agents = []*pawl.Agent{{Name: "clerk", Model: model, Tools: []pawl.Toolset{pay, wait}}}
	})
	type reply struct {
		ID      string
		Choices []struct {
			Message struct {
				Content   string
				ToolCalls []struct{ ID string } `json:"tool_calls"`
			}
		}
	}
	ask := func(status int, messages string) (r reply) {
		t.Helper()
		v.do("POST", "/v1/chat/completions", `{"model":"clerk","messages":[`+messages+`],"tools":[{"type":"function","function":{"name":"locate"}}]}`, status, &r)
		return r
	}
	begin := func(result string) (messages string, first reply) {
		t.Helper()
		first = ask(200, `{"role":"user","content":"begin"}`)
		id := first.Choices[0].Message.ToolCalls[0].ID
		return `{"role":"user","content":"begin"},{"role":"assistant","tool_calls":[{"id":"` + id + `","type":"function","function":{"name":"locate","arguments":"{}"}}]},{"role":"tool","tool_call_id":"` + id + `","content":"` + result + `"}`, first
	}
	const more = `,{"role":"user","content":"more"}`
	check := func(name string, r reply, text string, runs, payments int) {
		t.Helper()
		var list api.Runs
		v.do("GET", "/v1/runs", "", 200, &list)
		if got := r.Choices[0].Message.Content; got != text || len(list.Runs) != runs || paid != payments {
			t.Errorf("%s: %q in %d runs with %d payments, want %q, %d, %d", name, got, len(list.Runs), paid, text, runs, payments)
		}
	}
	broken = true
	messages, first := begin("Rome")
	ask(424, messages)
	broken = false
	second := ask(200, messages)
	check("a failed run", second, "Done.", 1, 1)
	if first.ID == second.ID {
		t.Errorf("two answers have the id %s", first.ID)
	}
	check("another answer", ask(200, messages), "Done.", 2, 2)
	check("another message", ask(200, messages+more), "heard more", 3, 2)
	broken = true
	messages, _ = begin("Rome")
	ask(424, messages)
	check("another message after a failure", ask(200, messages+more), "heard more", 5, 3)

	messages, first = begin("slow")
	ctx, leave := context.WithCancel(t.Context())
	body := `{"model":"clerk","stream":true,"messages":[` + messages + `]}`
	res, err := v.client.Do(request(t, "POST", v.url+"/v1/chat/completions", body).WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	leave()
	res.Body.Close()
	check("another message while the run still works", ask(200, messages+more), "heard more", 7, 3)
	v.do("POST", "/v1/runs/"+strings.Replace(first.ID, "chatcmpl-", "chat_", 1)+"/cancel", "", 200, nil)
	check("after the user stopped it", ask(200, messages+more), "heard more", 8, 3)
}

// An agent without rounds offers its tools and returns the calls, which the client sees at both
// APIs as calls of its own. None is executed.
func TestCallsOfAnAgentWithoutRounds(t *testing.T) {
	ran := false
	look := pawl.Func("look", "Looks.", func(context.Context, struct{ N int }) (string, error) {
		ran = true
		return "seen", nil
	})
	v := serve(t, func(o *options) {
		o.Agents = []*pawl.Agent{{Name: "caller", Model: script.New(script.Loop(script.Call("look", `{"N":1}`))),
			Tools: []pawl.Toolset{look}, Limits: pawl.Limits{Rounds: pawl.NoRounds}}}
	})

	var chat struct {
		Choices []struct {
			Finish  string `json:"finish_reason"`
			Message struct {
				Calls []struct {
					Function struct{ Name, Arguments string }
				} `json:"tool_calls"`
			}
		}
	}
	v.do("POST", "/v1/chat/completions", `{"model":"caller","messages":[{"role":"user","content":"go"}]}`, 200, &chat)
	choice := chat.Choices[0]
	if choice.Finish != "tool_calls" || len(choice.Message.Calls) != 1 || choice.Message.Calls[0].Function.Arguments != `{"N":1}` {
		t.Errorf("chat: %+v", choice)
	}

	var response struct {
		Status string
		Output []struct{ Type, Name, Arguments string }
	}
	v.do("POST", "/v1/responses", `{"model":"caller","input":"go"}`, 200, &response)
	if response.Status != "completed" || len(response.Output) != 1 || response.Output[0].Name != "look" {
		t.Errorf("responses: %+v", response)
	}
	if ran {
		t.Error("the tool ran")
	}
}
