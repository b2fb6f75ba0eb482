package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest/internal/wire"
	"github.com/pawl-go/pawl/pawltest/mutant"
	"github.com/pawl-go/pawl/script"
)

// testReply asks for one reply, in fragments and whole: both must equal the turn.
func testReply[TT mutant.T[TT]](t TT, m llm.Model, turn script.Turn) {
	req := Question()
	before := Form(req)
	streamed, err := Streamed(t, m, req)
	if err != nil {
		t.Fatalf("streamed: %v", err)
	}
	whole, err := llm.Complete(t.Context(), m, req)
	if err != nil {
		t.Fatalf("whole: %v", err)
	}
	if got, want := Sorted(Form(whole)), Sorted(Form(streamed)); got != want {
		t.Errorf("whole and streamed differ:\nwhole:    %s\nstreamed: %s", got, want)
	}
	if got := Form(req); got != before {
		t.Errorf("the request was changed:\nbefore: %s\nafter:  %s", before, got)
	}

	got := forms(streamed.Message.Parts, partForm)
	want := forms(turn.Parts, partForm)
	if !slices.Equal(got, want) {
		t.Errorf("got parts:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	expectNames(t, streamed)
	expectEnd(t, streamed, turn)
}

// expectNames checks that a reply and its calls have names of their own.
func expectNames[TT mutant.T[TT]](t TT, resp *llm.Response) {
	t.Helper()
	ids := map[string]bool{}
	for _, c := range resp.Message.Calls() {
		if c.ID == "" || ids[c.ID] {
			t.Errorf("the id %q of a call is empty or not unique", c.ID)
		}
		ids[c.ID] = true
	}
	if resp.Model == "" || resp.ID == "" {
		t.Errorf("the reply has the model %q and the id %q, want both", resp.Model, resp.ID)
	}
}

// expectEnd checks the finish of a reply, and its usage if the turn has one.
func expectEnd[TT mutant.T[TT]](t TT, resp *llm.Response, turn script.Turn) {
	t.Helper()
	finish := turn.Finish
	switch {
	case finish != "":
	case resp.Message.HasCalls():
		finish = llm.FinishReasonToolCalls
	default:
		finish = llm.FinishReasonStop
	}
	if resp.Finish != finish {
		t.Errorf("got finish %q, want %q", resp.Finish, finish)
	}

	if turn.Usage == nil {
		return
	}
	got := resp.Usage
	got.Raw = nil // in the words of the API
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", *turn.Usage) {
		t.Errorf("got usage %+v, want %+v", got, *turn.Usage)
	}
}

// testUnspeakable asks for a reply that api cannot transport completely, or not at all. The outcome
// must not contain an executable call that the model did not make.
func testUnspeakable[TT mutant.T[TT]](t TT, api string, m llm.Model, turn script.Turn) {
	for _, whole := range []bool{false, true} {
		req := Question()
		req.Whole = whole
		resp, err := Streamed(t, m, req)
		if err != nil {
			continue // refusing it is as good
		}
		for i, c := range resp.Message.Calls() {
			said := turn.Parts[i].(llm.ToolCall).Args
			switch {
			case resp.Finish.Cut(), string(c.Args) == string(said):
			case api == wire.Anthropic && whole && string(c.Args) == "{}": // the received reply
			default:
				t.Errorf("whole %t: a call of %s with %s (%s), but the model wrote %s", whole, c.Name, c.Args, resp.Finish, said)
			}
		}
		if turn.Finish != "" && resp.Finish != turn.Finish {
			t.Errorf("whole %t: got finish %q, want %q", whole, resp.Finish, turn.Finish)
		}
	}
}

// unspeakable reports whether api cannot transport the calls of turn in each form of a reply,
// because their arguments are not an object. A stream of Anthropic's can, and a whole reply cannot.
func unspeakable(api string, turn script.Turn) bool {
	if api != wire.Gemini && api != wire.Anthropic {
		return false
	}
	return slices.ContainsFunc(turn.Parts, func(p llm.Part) bool {
		c, ok := p.(llm.ToolCall)
		return ok && !wire.IsObject(string(c.Args))
	})
}
