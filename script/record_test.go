package script_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// runs returns the result of an agent with model m: of a run and, after a failure or with more
// messages, of a second run that resumes it.
func runs(t *testing.T, m llm.Model, output string, more ...llm.Message) string {
	t.Helper()
	look := &pawl.Tool{Name: "look", Effect: pawl.EffectRead, Input: json.RawMessage(`{"type":"object","properties":{"at":{"type":"string"}}}`),
		Run: func(_ context.Context, c llm.ToolCall) (llm.ToolResult, error) {
			return llm.TextResult("seen " + string(c.Args)), nil
		}}
	a := &pawl.Agent{Model: m, Tools: []pawl.Toolset{look}, Instructions: "Be brief.", Output: json.RawMessage(output)}
	res, err := runtest.Ended(a.Run(t.Context(), llm.User("go")))
	if err != nil || more != nil {
		res, _ = a.Resume(t.Context(), res, more...)
	}
	for i := range res.Steps { // times are not compared
		for j := range res.Steps[i].Executions {
			x := &res.Steps[i].Executions[j]
			x.Started, x.Ended = time.Time{}, time.Time{}
		}
	}
	b, err := json.MarshalIndent(res, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A recorded run that is stored as JSON and played again has the same Result.
func TestRecord(t *testing.T) {
	const output = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`
	opaque := &llm.Opaque{Provider: "p", Data: []byte(`{"sig":"x"}`)}
	busy := &llm.ProviderError{Provider: "openai", Status: 529, Code: llm.CodeOverloaded, Message: "busy", Retryable: true}
	for name, tt := range map[string]struct {
		model  *script.Model
		output string
		more   []llm.Message
	}{
		"calls": {model: script.New(script.Together(script.Think("hm"), script.Say("I look."), script.Call("look", `{"at": "home"}`), script.Call("look", nil)),
			script.Call("look", `{"at":`), script.Call("fly", nil), script.Say("done"))},
		"opaque, usage, names": {model: script.New(script.Turn{Parts: []llm.Part{llm.Reasoning{Opaque: opaque},
			llm.ToolCall{ID: "own", Name: "look", Args: []byte(`{}`), Opaque: opaque}},
			Usage: &llm.Usage{Input: 10, Output: 5, Reasoning: 2, CacheRead: 3,
				Cost: 0.5}, Model: "m-1", ID: "r-1"}, script.Say("done"))},
		"empty":             {model: script.New(script.Turn{}, script.Say("done"))},
		"cut":               {model: script.New(script.Cut(script.Call("look", nil)), script.Cut(script.Say("hal")))},
		"two turns":         {model: script.New(script.Say("one"), script.Say("two")), more: []llm.Message{llm.User("again")}},
		"fails, then works": {model: script.New(script.Call("look", nil), script.Flaky(script.Say("done"), busy))},
		"fails for good":    {model: script.New(script.Call("look", nil), script.Fail(busy))},
		"some error":        {model: script.New(script.Fail(errors.New("boom")))},
		"output":            {model: script.New(script.Say("no"), script.Call("final_answer", `{"n":"1"}`)), output: output},
		"output, held":      {model: &script.Model{Holds: true, Turns: []script.Turn{script.Say("no"), script.Say(`{"n":1}`)}}, output: output},
	} {
		rec := script.Record(tt.model)
		want := runs(t, rec, tt.output, tt.more...)
		written, err := rec.Script()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		b, err := json.Marshal(written)
		again := new(script.Model)
		if err == nil {
			err = json.Unmarshal(b, again)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for kept, m := range map[string]*script.Model{"in memory": written, "as JSON": again} {
			got := runs(t, m, tt.output, tt.more...)
			// failures are not played again: both runs stop at the same place
			if name == "fails, then works" {
				var g, w pawl.Result
				if json.Unmarshal([]byte(got), &g) == nil && json.Unmarshal([]byte(want), &w) == nil &&
					g.Text() == w.Text() {
					continue
				}
			}
			if diff := cmp.Diff(got, want); diff != "" {
				t.Errorf("%s, %s: got -, want +\n%s", name, kept, diff)
			}
		}
	}
}

func TestRecordsOneConversation(t *testing.T) {
	rec := script.Record(script.New(script.Func(func(req *llm.Request) script.Turn {
		return script.Say(req.Messages[0].Text())
	})))
	for _, text := range []string{"a", "a", "b"} {
		if _, _, err := ask(t, rec, &llm.Request{Messages: []llm.Message{llm.User(text)}}); err != nil {
			t.Fatal(err)
		}
		if _, err := rec.Script(); (err != nil) != (text == "b") {
			t.Errorf("after %s: %v", text, err)
		}
	}
	rec = script.Record(script.New(script.Say("a"), script.Say("b"), script.Say("c"), script.Say("d")))
	for _, n := range []int{1, 3} {
		if _, _, err := ask(t, rec, after(n)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := rec.Script(); err == nil || !strings.Contains(err.Error(), "after 2 others") {
		t.Errorf("a gap: got %v", err)
	}
	rec = script.Record(script.New(script.Say("long enough to come in several pieces")))
	for range rec.Stream(t.Context(), after(0)) {
		break
	}
	if m, err := rec.Script(); err != nil || len(m.Turns) > 0 {
		t.Errorf("a reply that was broken off is kept: %v, %v", m.Turns, err)
	}
}

func TestScriptHasNoForm(t *testing.T) {
	for _, turn := range []script.Turn{script.Flaky(script.Say("x")), script.Loop(script.Say("x")),
		script.Expect(script.Say("x"), script.Asked("x")), {Size: 1}} {
		if _, err := json.Marshal(script.New(turn)); err == nil {
			t.Errorf("%+v was written", turn)
		}
	}
}

// Turns written by hand can distinguish conversations by the user's last message.
func TestWrittenTurns(t *testing.T) {
	var m script.Model
	say := func(text string) string {
		return `"message":{"role":"assistant","parts":[{"type":"text","text":"` + text + `"}]}`
	}
	if err := json.Unmarshal([]byte(`{"turns":[{"first":[{"asked":"plan",`+say("A plan.")+`},{"asked":"sum",`+say("A sum.")+`}]},{"asked":"again",`+say("Again.")+`}]}`), &m); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ asked, want string }{{"the plan", "A plan."}, {"the sum", "A sum."}, {"the rest", ""}} {
		res, err := llm.Complete(t.Context(), &m, &llm.Request{Messages: []llm.Message{llm.User(tt.asked)}})
		if tt.want == "" {
			if unfit := (*script.UnexpectedError)(nil); !errors.As(err, &unfit) || len(unfit.Faults) != 3 {
				t.Errorf("%s: got %v", tt.asked, err)
			}
		} else if err != nil || res.Message.Text() != tt.want {
			t.Errorf("%s: got %v, %v; want %s", tt.asked, res, err, tt.want)
		}
	}
}
