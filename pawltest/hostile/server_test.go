package hostile_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest/hostile"
	"github.com/pawl-go/pawl/pawltest/hostile/internal/plain"
	"github.com/pawl-go/pawl/provider/openai"
)

// The path or the model's name selects a behaviour. The verdict describes the runtime from the wire
// alone, and reports a bad runtime.
func TestServer(t *testing.T) {
	s, err := hostile.NewServer(hostile.Behaviours(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer s.Close()
	b := hostile.Find(hostile.Behaviours(), "args-enum")
	weather := hostile.Tools()["weather"]
	task := "Task args-enum: use the tools, then answer."
	ask := func(base, model string) {
		t.Helper()
		a := &pawl.Agent{Model: openai.NewChat(model, &openai.Options{BaseURL: base, Key: "k"}),
			Tools: []pawl.Toolset{&pawl.Tool{Name: weather.Name, Input: weather.Input, Passive: true}}}
		if _, err := a.Run(t.Context(), llm.User(task)); err != nil {
			t.Fatal(err)
		}
	}
	verdict := func(name string) *hostile.Verdict {
		t.Helper()
		v, err := s.Verdict(name)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if v := verdict(b.ID); v.Passed || v.Requests != 0 {
		t.Errorf("before a request: got %+v", v)
	}
	ask(hostile.Base(s.Root, b.ID, "openai-chat"), "any")
	if v := verdict(b.ID); !v.Passed || v.Requests != 2 || len(v.Results) != 1 || !strings.Contains(v.Results[0], "unit") {
		t.Errorf("by path: got %+v", v)
	}
	ask(hostile.Base(s.Root, b.ID, "openai-chat"), "any") // another conversation takes its place
	if v := verdict(b.ID); !v.Passed || v.Requests != 2 {
		t.Errorf("again: got %+v", v)
	}
	ask(s.Root+"/v1", "hostile/args-enum@tag")
	if v := verdict("args-enum@tag"); !v.Passed {
		t.Errorf("by the model's name: got %+v", v)
	}
	s.Forget("args-enum@tag")
	if v := verdict("args-enum@tag"); v.Requests != 0 {
		t.Errorf("forgotten: got %+v", v)
	}
	loop := &plain.Loop{URL: s.Root + "/b/args-enum@hand/v1",
		Tools: []plain.Tool{{Name: "weather", Input: weather.Input, Run: func(_ context.Context, args []byte) (string, error) {
			return "ran weather " + string(args), nil
		}}}}
	if _, err := loop.Run(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	if v := verdict("args-enum@hand"); v.Passed || !v.Valid {
		t.Errorf("by hand, which runs the call: got %+v", v)
	}
	if _, err := s.Verdict("nonsense"); err == nil {
		t.Error("a verdict about nothing")
	}
}

// A client is judged alone: after the verdict about a client that asks twice, the next one begins
// anew. Without the verdict both are one, and a reset forgets both.
func TestClientsAreJudgedApart(t *testing.T) {
	s, err := hostile.NewServer(hostile.Behaviours(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer s.Close()
	for _, name := range []string{"args-enum", "args-enum@tag"} {
		begin := func() {
			t.Helper()
			body := `{"model":"any","messages":[{"role":"user","content":"Task args-enum: use the tools, then answer."}]}`
			res, err := http.Post(s.Root+"/b/"+name+"/v1/chat/completions", "application/json", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
		}
		requests := func() int {
			t.Helper()
			v, err := s.Verdict(name)
			if err != nil {
				t.Fatal(err)
			}
			return v.Requests
		}

		begin()
		begin()
		if n := requests(); n != 2 {
			t.Errorf("%s: a client that asks twice has %d requests, want 2", name, n)
		}
		begin()
		if n := requests(); n != 1 {
			t.Errorf("%s: the next client has %d requests, want 1", name, n)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, s.Root+"/verdicts", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if n := requests(); n != 0 {
			t.Errorf("%s: after a reset there are %d requests", name, n)
		}
	}
}
