package script_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ask streams req and joins the reply.
func ask(t *testing.T, m llm.Model, req *llm.Request) (*llm.Response, []llm.Delta, error) {
	t.Helper()
	resp := new(llm.Response)
	var deltas []llm.Delta
	for d, err := range m.Stream(t.Context(), req) {
		if err != nil {
			return resp, deltas, err
		}
		if err := resp.Add(d); err != nil {
			t.Fatalf("delta %d: %v", len(deltas), err)
		}
		deltas = append(deltas, d)
	}
	return resp, deltas, nil
}

// after is a conversation with n replies.
func after(n int) *llm.Request {
	req := &llm.Request{Messages: []llm.Message{llm.System("be brief"), llm.User("go")}}
	for i := range n {
		id := fmt.Sprint("c", i)
		req.Messages = append(req.Messages,
			llm.Assistant(llm.ToolCall{ID: id, Name: "look", Args: []byte("{}")}),
			llm.Results(llm.ToolResult{CallID: id, Parts: []llm.Part{llm.Text{Text: fmt.Sprint("result ", i)}}}))
	}
	return req
}

func TestTurnsByReplies(t *testing.T) {
	m := script.New(script.Say("one"), script.Say("two"), script.Loop(script.Say("odd"), script.Say("even")), script.Say("never"))
	var got []string
	for n := range 6 {
		resp, _, err := ask(t, m, after(n))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, resp.Message.Text())
	}
	if diff := cmp.Diff(got, []string{"one", "two", "odd", "even", "odd", "even"}); diff != "" {
		t.Error(diff)
	}
	if resp, _, _ := ask(t, m, after(1)); resp.Message.Text() != "two" {
		t.Errorf("asked again after one reply: got %q, want the same turn", resp.Message.Text())
	}
	skipping := &script.Model{Turns: m.Turns, Skip: 2}
	if resp, _, _ := ask(t, skipping, after(3)); resp.Message.Text() != "two" {
		t.Errorf("with Skip 2 after three replies: got %q, want two", resp.Message.Text())
	}
}

func TestExhausted(t *testing.T) {
	for _, test := range []struct {
		model *script.Model
		asked int
		want  script.ExhaustedError
	}{
		{script.New(), 0, script.ExhaustedError{Turn: 1}},
		{&script.Model{}, 2, script.ExhaustedError{Turn: 3}},
		{script.New(script.Say("a"), script.Say("b")), 2, script.ExhaustedError{Turn: 3, Turns: 2}},
	} {
		_, _, err := ask(t, test.model, after(test.asked))
		var got *script.ExhaustedError
		if !errors.As(err, &got) || *got != test.want {
			t.Errorf("after %d replies: got %v, want %v", test.asked, err, &test.want)
		}
	}
	if got := (&script.ExhaustedError{Turn: 3, Turns: 2}).Error(); !strings.Contains(got, "turn 3") {
		t.Errorf("the error does not name the turn: %s", got)
	}
}

func TestReplies(t *testing.T) {
	boom := errors.New("boom")
	long := strings.Repeat("Straße nach Oslo, ", 40)
	for name, test := range map[string]struct {
		turn   script.Turn
		parts  []llm.Part
		finish llm.FinishReason
		err    error
	}{
		"say":   {script.Say(long), []llm.Part{llm.Text{Text: long}}, llm.FinishReasonStop, nil},
		"empty": {script.Turn{}, nil, llm.FinishReasonStop, nil},
		"call": {script.Call("weather", map[string]string{"city": "Tromsø"}),
			[]llm.Part{llm.ToolCall{ID: "call_1_0", Name: "weather", Args: []byte(`{"city":"Tromsø"}`)}}, llm.FinishReasonToolCalls, nil},
		"no args": {script.Call("now", nil),
			[]llm.Part{llm.ToolCall{ID: "call_1_0", Name: "now", Args: []byte(`{}`)}}, llm.FinishReasonToolCalls, nil},
		"broken args": {script.Call("now", `{"a": [1,`),
			[]llm.Part{llm.ToolCall{ID: "call_1_0", Name: "now", Args: []byte(`{"a": [1,`)}}, llm.FinishReasonToolCalls, nil},
		"together": {script.Together(script.Think("hm"), script.Say("I look."), script.Call("a", nil), script.Call("b", nil)),
			[]llm.Part{llm.Reasoning{Text: "hm"}, llm.Text{Text: "I look."},
				llm.ToolCall{ID: "call_1_0", Name: "a", Args: []byte(`{}`)}, llm.ToolCall{ID: "call_1_1", Name: "b", Args: []byte(`{}`)}},
			llm.FinishReasonToolCalls, nil},
		"cut": {script.Cut(script.Call("a", `{"x":"`)),
			[]llm.Part{llm.ToolCall{ID: "call_1_0", Name: "a", Args: []byte(`{"x":"`)}}, llm.FinishReasonLength, nil},
		"fail":       {script.Fail(boom), nil, "", boom},
		"broken off": {script.Together(script.Say("Well"), script.Fail(boom)), []llm.Part{llm.Text{Text: "Well"}}, "", boom},
		"own id": {script.Turn{Parts: []llm.Part{llm.ToolCall{ID: "x", Name: "a"}}},
			[]llm.Part{llm.ToolCall{ID: "x", Name: "a"}}, llm.FinishReasonToolCalls, nil},
		"own finish": {script.Turn{Finish: llm.FinishReasonContentFilter}, nil, llm.FinishReasonContentFilter, nil},
		"own opaque": {script.Turn{Parts: []llm.Part{llm.Reasoning{Opaque: &llm.Opaque{Provider: "p",
			Data: []byte(`"s"`)}}}}, []llm.Part{llm.Reasoning{Opaque: &llm.Opaque{Provider: "p",
			Data: []byte(`"s"`)}}}, llm.FinishReasonStop, nil},
		"own deltas": {script.Turn{Deltas: []llm.Delta{{Part: llm.Text{Text: "x"}},
			{Finish: llm.FinishReasonStop}}}, []llm.Part{llm.Text{Text: "x"}}, llm.FinishReasonStop, nil},
		"a func": {script.Func(func(*llm.Request) script.Turn { return script.Say("x") }),
			[]llm.Part{llm.Text{Text: "x"}}, llm.FinishReasonStop, nil},
		"func of one": {script.Func(func(*llm.Request) script.Turn { return script.Loop(script.Say("x")) }),
			[]llm.Part{llm.Text{Text: "x"}}, llm.FinishReasonStop, nil},
	} {
		for _, whole := range []bool{false, true} {
			req := after(0)
			req.Whole = whole
			resp, deltas, err := ask(t, script.New(test.turn), req)
			if !errors.Is(err, test.err) || resp.Finish != test.finish {
				t.Errorf("%s, whole %t: got finish %q, error %v; want %q, %v", name, whole, resp.Finish, err, test.finish, test.err)
			}
			if err == nil {
				if diff := cmp.Diff(resp.Message.Parts, test.parts); diff != "" {
					t.Errorf("%s, whole %t: got -, want +\n%s", name, whole, diff)
				}
			}
			if want := len(test.parts) + 1; whole && err == nil && len(deltas) != want {
				t.Errorf("%s: whole reply came in %d deltas, want %d", name, len(deltas), want)
			}
		}
	}
}

// Tests of streaming need fragments: several of a reply, none through a rune, and each part sealed
// exactly once.
func TestFragments(t *testing.T) {
	m := script.New(script.Together(script.Say("Grüße aus København æøå"), script.Call("a", `{"city":"København","n":[1,2,3]}`)))
	_, deltas, err := ask(t, m, after(0))
	if err != nil {
		t.Fatal(err)
	}
	pieces, done := map[int]int{}, map[int]int{}
	for _, d := range deltas {
		switch p := d.Part.(type) {
		case llm.Text:
			pieces[d.Index]++
			if !utf8.ValidString(p.Text) {
				t.Errorf("fragment %q cuts a rune", p.Text)
			}
		case llm.ToolCall:
			pieces[d.Index]++
			if !utf8.Valid(p.Args) {
				t.Errorf("fragment %q cuts a rune", p.Args)
			}
		}
		if d.Done {
			done[d.Index]++
		}
	}
	if pieces[0] < 3 || pieces[1] < 3 {
		t.Errorf("got %v fragments by part, want several each", pieces)
	}
	if diff := cmp.Diff(done, map[int]int{0: 1, 1: 1}); diff != "" {
		t.Errorf("sealed, by part: %s", diff)
	}
	_, again, _ := ask(t, m, after(0))
	if diff := cmp.Diff(deltas, again); diff != "" {
		t.Errorf("the same request was answered in other fragments: %s", diff)
	}
	big := strings.Repeat("x", 1<<20)
	if _, deltas, _ = ask(t, script.New(script.Say(big)), after(0)); len(deltas) > 100 {
		t.Errorf("a megabyte came in %d fragments, want at most 100", len(deltas))
	}
}

func TestFuncSeesResults(t *testing.T) {
	m := script.New(script.Call("look", nil), script.Func(func(req *llm.Request) script.Turn {
		return script.Say(script.Results(req)[0].Text() + ", " + script.ResultOf(req, "look").Text())
	}))
	resp, _, err := ask(t, m, after(1))
	if err != nil || resp.Message.Text() != "result 0, result 0" {
		t.Errorf("got %q, %v", resp.Message.Text(), err)
	}
	if r := script.ResultOf(after(2), "other"); r != nil {
		t.Errorf("got a result of a tool that was not called: %v", r)
	}
	if r := script.Results(after(0)); r != nil {
		t.Errorf("got results without calls: %v", r)
	}
}

func TestFlaky(t *testing.T) {
	busy := errors.New("busy")
	m := script.New(script.Flaky(script.Say("at last"), busy, busy))
	var got []string
	for range 3 {
		resp, _, err := ask(t, m, after(0))
		if err != nil {
			got = append(got, err.Error())
		} else {
			got = append(got, resp.Message.Text())
		}
	}
	if diff := cmp.Diff(got, []string{"busy", "busy", "at last"}); diff != "" {
		t.Error(diff)
	}
}

func TestRequestsAreCopies(t *testing.T) {
	m := script.New(script.Say("a"))
	req := after(1)
	ask(t, m, req)
	req.Messages[1] = llm.User("changed")
	req.Messages[2].Parts[0] = llm.Text{Text: "changed"}
	if diff := cmp.Diff(m.Requests()[0].Messages, after(1).Messages); diff != "" {
		t.Error(diff)
	}
	quiet := &script.Model{Turns: m.Turns, Quiet: true}
	ask(t, quiet, after(0))
	if n := len(quiet.Requests()); n != 0 {
		t.Errorf("a quiet model kept %d requests", n)
	}
}

func TestCancelWhileHeld(t *testing.T) {
	turn := script.Say("a long answer that is held")
	turn.Hold = make(chan struct{})
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	n, last := 0, error(nil)
	for _, err := range script.New(turn).Stream(ctx, after(0)) {
		if err == nil {
			n++
			cancel(cause)
		}
		last = err
	}
	if n != 1 || last != cause {
		t.Errorf("got %d fragments and %v, want 1 and the cause", n, last)
	}
}

func TestConcurrentUse(t *testing.T) {
	m := script.New(script.Say("0"), script.Say("1"), script.Say("2"))
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() {
			resp := new(llm.Response)
			for d, err := range m.Stream(t.Context(), after(i%3)) {
				if err == nil {
					err = resp.Add(d)
				}
				if err != nil {
					t.Error(err)
				}
			}
			if got, want := resp.Message.Text(), fmt.Sprint(i%3); got != want {
				t.Errorf("after %d replies: got %s", i%3, got)
			}
		})
	}
	wg.Wait()
	if n := len(m.Requests()); n != 30 {
		t.Errorf("%d requests were kept, want 30", n)
	}
}

func TestMistakesPanic(t *testing.T) {
	for name, f := range map[string]func(){
		"loop of nothing":        func() { script.Loop() },
		"together with a func":   func() { script.Together(script.Func(func(*llm.Request) script.Turn { return script.Turn{} })) },
		"together with a loop":   func() { script.Together(script.Loop(script.Say(""))) },
		"args without JSON form": func() { script.Call("a", func() {}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

func Example() {
	m := script.New(
		script.Together(script.Say("I look."), script.Call("weather", `{"city":"Oslo"}`)),
		script.Func(func(req *llm.Request) script.Turn {
			return script.Say("Oslo: " + script.Results(req)[0].Text())
		}),
	)
	messages := []llm.Message{llm.User("Do I need an umbrella?")}
	for range 2 {
		resp, err := llm.Complete(context.Background(), m, &llm.Request{Messages: messages})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(resp.Finish, resp.Message.Text())
		messages = slices.Concat(messages, []llm.Message{resp.Message})
		for _, call := range resp.Message.Calls() {
			messages = append(messages,
				llm.Results(llm.ToolResult{CallID: call.ID, Parts: []llm.Part{llm.Text{Text: "rain"}}}))
		}
	}
	_, err := llm.Complete(context.Background(), m, &llm.Request{Messages: append(messages, llm.User("And tomorrow?"))})
	fmt.Println(err)
	// Output:
	// tool_calls I look.
	// stop Oslo: rain
	// script: turn 3 was asked for, 2 are written
}

// An expectation that a request does not meet is shown as a difference.
func ExampleExpect() {
	m := script.New(script.Expect(script.Say("It rains."), script.Offered("weather"), script.Conversation(llm.System("Be brief."), llm.User("Oslo?"))))
	agent := &pawl.Agent{Model: m, Instructions: "Be brief and kind."}
	_, err := agent.Run(context.Background(), llm.User("Oslo?"))
	fmt.Println(strings.ReplaceAll(err.Error(), "; ", "\n"))
	// Output:
	// run/0/model: script: turn 1: the tools were to be ["weather"], and are []
	// the conversation is not as expected (- missing, + too much):
	// - system: Be brief.
	// + system: Be brief and kind.
	//   user: Oslo?
}

// A run is recorded once, with a model that costs something, and played again in tests.
func ExampleRecord() {
	// in place of openai.New("gpt-6.1-terra", nil)
	rec := script.Record(script.New(script.Say("It rains.")))

	if _, err := (&pawl.Agent{Model: rec}).Run(context.Background(), llm.User("Oslo?")); err != nil {
		fmt.Println(err)
	}
	written, err := rec.Script()
	if err != nil {
		fmt.Println(err)
	}
	res, err := (&pawl.Agent{Model: written}).Run(context.Background(), llm.User("Oslo?"))
	fmt.Println(res.Text(), err)
	// Output:
	// It rains. <nil>
}
