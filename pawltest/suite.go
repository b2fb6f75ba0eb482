package pawltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// T is the part of a test that the suites need. *testing.T implements it.
type T[Self any] interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(f func())
	Context() context.Context
	Run(name string, f func(t Self)) bool
}

// TestModel runs the suite that every llm.Model must pass. open returns the Model to test, set up
// so that it answers with the replies of behind: an adapter is opened on a Simulator of behind, and
// a script is behind itself. The Model must not retry failed requests.
//
//	pawltest.TestModel(t, func(t *testing.T, behind llm.Model) llm.Model { return behind })
func TestModel[TT T[TT]](t TT, open func(t TT, behind llm.Model) llm.Model) { testModel(t, "", open) }

// testModel is TestModel over api. An empty api can transport everything.
func testModel[TT T[TT]](t TT, api string, open func(t TT, behind llm.Model) llm.Model) {
	for name, turn := range replies() {
		if unspeakable(api, turn, true) {
			t.Run("reply/"+name, func(t TT) { testUnspeakable(t, api, open(t, script.New(turn)), turn) })
			continue
		}
		t.Run("reply/"+name, func(t TT) { testReply(t, open(t, script.New(turn)), turn) })
	}
	t.Run("conversation", func(t TT) { testConversation(t, open) })
	t.Run("errors", func(t TT) { testErrors(t, open) })
	t.Run("cancel", func(t TT) { testCancel(t, open) })
	t.Run("break", func(t TT) { testBreak(t, open) })
	t.Run("concurrent", func(t TT) { testConcurrent(t, open) })
}

// replies are the turns that a Model must return unchanged.
func replies() map[string]script.Turn {
	long := strings.Repeat("Grüße, 世界 🌍 \"quoted\" \\ {braces}\n", 200)
	object := `{"text":` + string(marshal(long)) + `,"n":[1,2.5e3,-0],"ok":true}`
	return map[string]script.Turn{
		"text":                  script.Say("Hello."),
		"long text":             script.Say(long),
		"call":                  script.Call("look", `{"at":"the sky"}`),
		"long arguments":        script.Call("look", object),
		"escaped arguments":     script.Call("look", `{"at":"\u00e9\ud83c\udf0d\n"}`),
		"empty object":          script.Call("look", `{}`),
		"broken arguments":      script.Call("look", `{"at": [1, 2`),
		"parallel calls":        script.Together(script.Call("look", `{"at":"a"}`), script.Call("find", `{"at":"b"}`), script.Call("look", `{"at":"a"}`)),
		"text and calls":        script.Together(script.Say("I look."), script.Call("look", `{"at":"a"}`)),
		"reasoning, then text":  script.Together(script.Think("Let me see."), script.Say("Yes.")),
		"reasoning, then calls": script.Together(script.Think("Let me see."), script.Call("look", `{"at":"a"}`), script.Call("find", `{"at":"b"}`)),
		"cut text":              script.Cut(script.Say("And then")),
		"cut call":              script.Cut(script.Call("look", `{"at":"th`)),
		"filtered":              {Parts: []llm.Part{llm.Text{Text: "I "}}, Finish: llm.FinishReasonContentFilter},
		"usage": {Parts: []llm.Part{llm.Text{Text: "x"}},
			Usage: &llm.Usage{Input: 1000, Output: 200, Reasoning: 150, CacheRead: 900}},
	}
}

// question is a request that starts a conversation.
func question() *llm.Request {
	schema := json.RawMessage(`{"type":"object","properties":{"at":{"type":"string"}}}`)
	return &llm.Request{
		Model:    "test-model",
		Messages: []llm.Message{llm.System("Be brief."), llm.User("What is there?")},
		Tools: []*llm.ToolSpec{
			{Name: "look", Description: "Looks.", Input: schema},
			{Name: "find", Description: "Finds.", Input: schema},
		},
	}
}

// streamed sends a request to m, and checks the contract of Delta.
func streamed[TT T[TT]](t TT, m llm.Model, req *llm.Request) (*llm.Response, error) {
	t.Helper()
	resp := new(llm.Response)
	sealed := map[int]bool{}
	next := 0
	for d, err := range m.Stream(t.Context(), req) {
		if err != nil {
			return resp, err
		}
		if resp.Finish != "" {
			t.Errorf("a delta came after the one with Finish: %+v", d)
		}
		if d.Part != nil {
			switch {
			case d.Index > next || d.Index < 0:
				t.Errorf("part %d came when part %d was next", d.Index, next)
			case d.Index == next:
				next++
			}
			if sealed[d.Index] {
				t.Errorf("part %d was continued after it was sealed", d.Index)
			}
		}
		sealed[d.Index] = sealed[d.Index] || d.Done
		if err := resp.Add(d); err != nil {
			t.Fatalf("the joiner refuses %+v: %v", d, err)
		}
	}
	if resp.Finish == "" {
		t.Errorf("the reply ended without a delta with Finish, and without an error")
	}
	return resp, nil
}

// testReply asks for one reply, in fragments and whole: both must equal the turn.
func testReply[TT T[TT]](t TT, m llm.Model, turn script.Turn) {
	req := question()
	before := form(req)
	inPieces, err := streamed(t, m, req)
	if err != nil {
		t.Fatalf("streamed: %v", err)
	}
	whole, err := llm.Complete(t.Context(), m, req)
	if err != nil {
		t.Fatalf("whole: %v", err)
	}
	if got, want := sorted(form(whole)), sorted(form(inPieces)); got != want {
		t.Errorf("whole and streamed differ:\nwhole:    %s\nstreamed: %s", got, want)
	}
	if got := form(req); got != before {
		t.Errorf("the request was changed:\nbefore: %s\nafter:  %s", before, got)
	}
	var got, want []string
	for _, p := range inPieces.Message.Parts {
		got = append(got, partForm(p))
	}
	for _, p := range turn.Parts {
		want = append(want, partForm(p))
	}
	for i, p := range whole.Message.Parts {
		if i < len(got) && partForm(p) != got[i] {
			t.Errorf("part %d is %q whole, %q streamed", i, partForm(p), got[i])
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got parts:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	ids := map[string]bool{}
	for _, c := range inPieces.Message.Calls() {
		if c.ID == "" || ids[c.ID] {
			t.Errorf("the id %q of a call is empty or not unique", c.ID)
		}
		ids[c.ID] = true
	}
	finish := turn.Finish
	if finish == "" {
		finish = llm.FinishReasonStop
		if len(ids) > 0 {
			finish = llm.FinishReasonToolCalls
		}
	}
	if inPieces.Finish != finish {
		t.Errorf("got finish %q, want %q", inPieces.Finish, finish)
	}
	if turn.Usage != nil {
		u := inPieces.Usage
		u.Raw = nil
		if fmt.Sprintf("%+v", u) != fmt.Sprintf("%+v", *turn.Usage) {
			t.Errorf("got usage %+v, want %+v", u, *turn.Usage)
		}
	}
}

// testUnspeakable asks for a reply that api cannot transport completely, or not at all. The outcome
// must not contain an executable call that the model did not make.
func testUnspeakable[TT T[TT]](t TT, api string, m llm.Model, turn script.Turn) {
	for _, whole := range []bool{false, true} {
		req := question()
		req.Whole = whole
		resp, err := streamed(t, m, req)
		if err != nil {
			continue // refusing it is as good
		}
		for i, c := range resp.Message.Calls() {
			said := turn.Parts[i].(llm.ToolCall).Args
			switch {
			case resp.Finish.Cut(), string(c.Args) == string(said):
			case api == Anthropic && whole && string(c.Args) == "{}": // the received reply
			default:
				t.Errorf("whole %t: a call of %s with %s (%s), but the model wrote %s", whole, c.Name, c.Args, resp.Finish, said)
			}
		}
		if turn.Finish != "" && resp.Finish != turn.Finish {
			t.Errorf("whole %t: got finish %q, want %q", whole, resp.Finish, turn.Finish)
		}
	}
}

// partForm is the visible content of a part. Ids and opaque data belong to the provider.
func partForm(p llm.Part) string {
	switch p := p.(type) {
	case llm.Text:
		return "text " + p.Text
	case llm.Reasoning:
		return "reasoning " + p.Text
	case llm.ToolCall:
		return "call " + p.Name + " " + string(p.Args)
	}
	return fmt.Sprintf("%T", p)
}

func form(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// sorted returns JSON with sorted keys: their order in opaque data has no meaning.
func sorted(s string) string {
	var v any
	if json.Unmarshal([]byte(s), &v) != nil {
		return s
	}
	return form(v)
}

// testConversation sends replies back in requests: the model behind must see the same content.
func testConversation[TT T[TT]](t TT, open func(TT, llm.Model) llm.Model) {
	behind := script.New(
		script.Together(script.Think("First both."), script.Say("I look. "), script.Call("look", `{"at":"a"}`), script.Call("find", `{"at":"b"}`)),
		script.Together(script.Think("Once more."), script.Call("look", `{"at":"c"}`)),
		script.Func(func(req *llm.Request) script.Turn { return script.Say("There is " + script.Results(req)[0].Text()) }),
	)
	for _, whole := range []bool{false, true} {
		m := open(t, behind)
		req := question()
		req.Whole = whole
		for i := range 3 {
			resp, err := streamed(t, m, req)
			if err != nil {
				t.Fatalf("whole %t, reply %d: %v", whole, i+1, err)
			}
			req.Messages = append(req.Messages, resp.Message)
			if results := answer(resp.Message); results != nil {
				req.Messages = append(req.Messages, *results)
			} else if got, want := resp.Message.Text(), `There is look of {"at":"c"}`; got != want {
				t.Errorf("whole %t: got the answer %q, want %q", whole, got, want)
			}
		}
	}
}

func testErrors[TT T[TT]](t TT, open func(TT, llm.Model) llm.Model) {
	for name, turn := range map[string]script.Turn{
		"refused":    script.Fail(&llm.ProviderError{Status: 400, Code: llm.CodeInvalidRequest, Message: "no such thing"}),
		"broken off": script.Together(script.Say("A long answer that breaks off, and "), script.Fail(errors.New("line down"))),
		"broken call": script.Together(script.Call("look", `{"at":"the end of the line`),
			script.Fail(errors.New("line down"))),
	} {
		for _, whole := range []bool{false, true} {
			req := question()
			req.Whole = whole
			resp, err := streamed(t, open(t, script.New(turn)), req)
			if err == nil {
				t.Errorf("%s, whole %t: no error, but %s", name, whole, form(resp))
			}
			if resp.Finish != "" {
				t.Errorf("%s, whole %t: a reply that failed has finish %q", name, whole, resp.Finish)
			}
		}
	}
	if _, err := streamed(t, open(t, script.New()), question()); err == nil {
		t.Errorf("a script without turns: no error")
	}
}

// watched reports when a reply of its model has ended, in any way.
type watched struct {
	llm.Model
	ended chan struct{}
}

// Unwrap returns the wrapped model.
func (w watched) Unwrap() llm.Model { return w.Model }

func (w watched) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		defer close(w.ended)
		w.Model.Stream(ctx, req)(yield)
	}
}

// held is a model whose reply stops after its first fragment until the request is cancelled.
func held() watched {
	turn := script.Say("A long answer that does not come to its end for now.")
	turn.Hold = make(chan struct{})
	return watched{script.New(turn), make(chan struct{})}
}

// patience is the time limit of the suite for immediate events.
const patience = 20 * time.Second

func testCancel[TT T[TT]](t TT, open func(TT, llm.Model) llm.Model) {
	behind := held()
	m := open(t, behind)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	inner, stop := context.WithCancel(ctx)
	defer stop()
	var last error
	fragments := 0
	for d, err := range m.Stream(inner, question()) {
		last = err
		if err == nil && d.Part != nil {
			fragments++
			stop()
		}
	}
	switch {
	case ctx.Err() != nil:
		t.Errorf("cancelling did not end the reply")
	case fragments == 0:
		t.Errorf("no fragment came before the end: %v", last)
	case last == nil:
		t.Errorf("a cancelled reply ended without an error")
	case !errors.Is(last, context.Canceled):
		t.Errorf("got error %v, want context.Canceled", last)
	}
	expectEnded(t, behind)

	dead, kill := context.WithCancel(t.Context())
	kill()
	for d, err := range open(t, script.New(script.Say("x"))).Stream(dead, question()) {
		if err == nil {
			t.Errorf("a request with a cancelled context was answered: %+v", d)
		}
	}
}

func testBreak[TT T[TT]](t TT, open func(TT, llm.Model) llm.Model) {
	behind := held()
	m := open(t, behind)
	for _, err := range m.Stream(t.Context(), question()) {
		if err != nil {
			t.Fatalf("%v", err)
		}
		break
	}
	expectEnded(t, behind)
}

func expectEnded[TT T[TT]](t TT, w watched) {
	t.Helper()
	select {
	case <-w.ended:
	case <-time.After(patience):
		t.Errorf("the provider still answers, though the client has left")
	}
}

func testConcurrent[TT T[TT]](t TT, open func(TT, llm.Model) llm.Model) {
	m := open(t, &script.Model{Quiet: true, Turns: []script.Turn{script.Func(func(req *llm.Request) script.Turn {
		said := req.Messages[len(req.Messages)-1].Parts // an adapter may join messages
		return script.Call("look", `{"at":"`+said[len(said)-1].(llm.Text).Text+`"}`)
	})}})
	var wg sync.WaitGroup
	failures := make(chan string, 64)
	for i := range 32 {
		wg.Go(func() {
			req := question()
			req.Whole = i%2 == 0
			text := fmt.Sprintf("number %d", i)
			req.Messages = append(req.Messages, llm.User(text))
			resp := new(llm.Response)
			for d, err := range m.Stream(t.Context(), req) {
				if err == nil {
					err = resp.Add(d)
				}
				if err != nil {
					failures <- fmt.Sprintf("request %d: %v", i, err)
					return
				}
			}
			calls := resp.Message.Calls()
			if want := `{"at":"` + text + `"}`; len(calls) != 1 || string(calls[0].Args) != want {
				failures <- fmt.Sprintf("request %d: got %s, want a call with %s", i, form(resp), want)
			}
		})
	}
	wg.Wait()
	close(failures)
	for f := range failures {
		t.Errorf("%s", f)
	}
}
