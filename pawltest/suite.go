package pawltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest/internal/cases"
	"github.com/pawl-go/pawl/pawltest/mutant"
	"github.com/pawl-go/pawl/script"
)

// T is the part of a test that the suites need. *testing.T implements it.
type T[Self any] interface{ mutant.T[Self] }

// TestModel runs the suite that every llm.Model must pass: requests arrive complete, replies come
// back complete, and errors are errors. open returns the Model to test, set up so that it sends its
// requests to behind and returns behind's replies. The suite compares both ends.
//
// A Model without a wire is behind itself. A Model of an API of your own needs a small server that
// reads a request, passes it to behind, and writes the reply. TestAdapter has that server for the
// APIs of Simulator. The Model must not retry failed requests.
//
//	pawltest.TestModel(t, func(t *testing.T, behind llm.Model) llm.Model {
//		s := httptest.NewServer(handler(behind)) // speaks the API
//		t.Cleanup(s.Close)
//		return mine.New(s.URL)
//	})
//
// lacks names the parts of the suite that the API cannot express, such as "request/settings/top_p"
// or "opaque". The test logs them. ScoreModel shows what the suite finds.
func TestModel[TT T[TT]](t TT, open func(t TT, behind llm.Model) llm.Model, lacks ...string) {
	runParts(t, slices.Concat(modelParts("", open), requestParts(open), errorParts(open), opaqueParts(open)), lacks)
}

// ScoreModel plants the faults of mutant.Models, one at a time, in the Model that open returns. A
// fault that TestModel does not find is an error. So is a fault that it finds without a planted
// one. The arguments are the same as for TestModel.
func ScoreModel[TT T[TT]](t TT, open func(t TT, behind llm.Model) llm.Model, lacks ...string) mutant.Score {
	t.Helper()
	suite := func(t TT, r *mutant.Recorder, plant func(llm.Model) llm.Model) {
		TestModel(r, func(_ *mutant.Recorder, behind llm.Model) llm.Model { return plant(open(t, behind)) }, lacks...)
	}
	return mutant.Try(t, mutant.Models(), lacks, suite)
}

// part is a part of a suite.
type part[TT any] struct {
	name string
	test func(t TT)
}

// runParts runs the parts of a suite, except for the parts in lacks.
func runParts[TT T[TT]](t TT, parts []part[TT], lacks []string) {
	t.Helper()
	for _, l := range lacks {
		if !slices.ContainsFunc(parts, func(p part[TT]) bool { return mutant.LeftOut(p.name, []string{l}) }) {
			t.Errorf("the suite has no part %q to leave out", l)
		}
	}
	for _, p := range parts {
		if mutant.LeftOut(p.name, lacks) {
			t.Logf("%s is left out", p.name)
			continue
		}
		t.Run(p.name, func(t TT) { inTime(t, p.test) })
	}
}

// inTime runs a part of a suite. A part that does not end in time is a failure, and its goroutine
// is abandoned: what it tests hangs.
func inTime[TT T[TT]](t TT, test func(t TT)) {
	ended := make(chan any, 1) // the panic of the part; nil means none
	go func() {
		defer func() { ended <- recover() }()
		test(t)
	}()

	limit := time.NewTimer(3 * patience(t))
	defer limit.Stop()
	select {
	case v := <-ended:
		if v != nil {
			panic(v)
		}
	case <-limit.C:
		t.Errorf("it does not end within %v", 3*patience(t))
	}
}

// modelParts are the parts about replies, cancellation and concurrency. An empty api can transport
// everything.
func modelParts[TT T[TT]](api string, open func(t TT, behind llm.Model) llm.Model) []part[TT] {
	var parts []part[TT]
	turns := cases.Replies()
	for _, name := range slices.Sorted(maps.Keys(turns)) {
		turn := turns[name]
		test := testReply[TT]
		if unspeakable(api, turn, true) {
			test = func(t TT, m llm.Model, turn script.Turn) { testUnspeakable(t, api, m, turn) }
		}
		parts = append(parts, part[TT]{"reply/" + name, func(t TT) { test(t, open(t, script.New(turn)), turn) }})
	}
	if api == "" {
		turn := cases.Picture()
		parts = append(parts, part[TT]{"reply/media", func(t TT) { testReply(t, open(t, script.New(turn)), turn) }})
	}
	return append(parts,
		part[TT]{"conversation", func(t TT) { testConversation(t, open) }},
		part[TT]{"errors/broken", func(t TT) { testBroken(t, open) }},
		part[TT]{"cancel", func(t TT) { testCancel(t, open) }},
		part[TT]{"break", func(t TT) { testBreak(t, open) }},
		part[TT]{"concurrent", func(t TT) { testConcurrent(t, open) }},
		part[TT]{"at once", func(t TT) { testAtOnce(t, open) }},
	)
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
	owner := map[string]int{} // the part of a call, by its id
	next := 0
	var failed error
	for d, err := range m.Stream(t.Context(), req) {
		if failed != nil {
			t.Errorf("after the error %v came %+v, %v", failed, d, err)
		}
		if err != nil {
			failed = err
			continue
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
		// The joiner makes ids unique, so that only the fragments show an id that comes twice.
		if c, ok := d.Part.(llm.ToolCall); ok && c.ID != "" {
			if first, known := owner[c.ID]; known && first != d.Index {
				t.Errorf("the id %q belongs to the parts %d and %d", c.ID, first, d.Index)
			}
			owner[c.ID] = d.Index
		}
		sealed[d.Index] = sealed[d.Index] || d.Done
		if err := resp.Add(d); err != nil {
			t.Fatalf("the joiner refuses %+v: %v", d, err)
		}
	}
	if resp.Finish == "" && failed == nil {
		t.Errorf("the reply ended without a delta with Finish, and without an error")
	}
	return resp, failed
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
	if inPieces.Model == "" || inPieces.ID == "" {
		t.Errorf("the reply has the model %q and the id %q, want both", inPieces.Model, inPieces.ID)
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
	case llm.Media:
		return fmt.Sprintf("media %s %s %q", p.MIME, p.URL, p.Data)
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

// testBroken breaks replies off: what came before the error is no complete reply.
func testBroken[TT T[TT]](t TT, open func(TT, llm.Model) llm.Model) {
	for name, turn := range cases.Broken() {
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
	hold  chan struct{} // closed to let a held reply go on
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
	hold := make(chan struct{})
	turn.Hold = hold
	return watched{script.New(turn), hold, make(chan struct{})}
}

// inTime calls f. If f does not return in time, that is an error, and the held reply goes on.
func (w watched) inTime(t any, errorf func(format string, args ...any), f func()) {
	late := time.AfterFunc(patience(t), func() {
		errorf("the Model does not end a request whose caller has left")
		close(w.hold)
	})
	defer late.Stop()
	f()
}

// patience is the time limit of the suite for immediate events.
func patience(t any) time.Duration {
	if r, ok := t.(*mutant.Recorder); ok {
		return r.Patience()
	}
	return 20 * time.Second
}

func testCancel[TT T[TT]](t TT, open func(TT, llm.Model) llm.Model) {
	behind := held()
	m := open(t, behind)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	fragments := 0
	behind.inTime(t, t.Errorf, func() {
		for d, err := range m.Stream(ctx, question()) {
			last = err
			if err == nil && d.Part != nil {
				fragments++
				cancel()
			}
		}
	})
	switch {
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
	behind.inTime(t, t.Errorf, func() {
		for _, err := range m.Stream(t.Context(), question()) {
			if err != nil {
				t.Fatalf("%v", err)
			}
			break
		}
	})
	expectEnded(t, behind)
}

func expectEnded[TT T[TT]](t TT, w watched) {
	t.Helper()
	select {
	case <-w.ended:
	case <-time.After(patience(t)):
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

// testAtOnce sends two requests that are answered only when both have arrived.
func testAtOnce[TT T[TT]](t TT, open func(TT, llm.Model) llm.Model) {
	m := open(t, &meeting{Model: script.New(script.Say("Met.")), both: make(chan struct{})})
	ctx, cancel := context.WithTimeout(t.Context(), patience(t))
	defer cancel()
	var wg sync.WaitGroup
	failures := make(chan error, 2)
	for range 2 {
		wg.Go(func() {
			_, err := llm.Complete(ctx, m, question())
			failures <- err
		})
	}
	wg.Wait()
	close(failures)
	for err := range failures {
		if err != nil {
			t.Errorf("of two requests at the same time, one waits for the other: %v", err)
		}
	}
}

// meeting is a model that answers when two requests have arrived.
type meeting struct {
	llm.Model
	mu      sync.Mutex
	arrived int
	both    chan struct{}
}

// Unwrap returns the wrapped model.
func (m *meeting) Unwrap() llm.Model { return m.Model }

func (m *meeting) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		m.mu.Lock()
		m.arrived++
		if m.arrived == 2 {
			close(m.both)
		}
		m.mu.Unlock()

		select {
		case <-m.both:
			m.Model.Stream(ctx, req)(yield)
		case <-ctx.Done():
			yield(llm.Delta{}, context.Cause(ctx))
		}
	}
}
