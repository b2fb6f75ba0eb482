package core_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

func brokeOff(retryable bool, parts ...llm.Part) script.Turn {
	return script.Turn{Parts: parts, Err: &llm.ProviderError{Code: llm.CodeStream, Message: "the reply broke off", Retryable: retryable}}
}

// A reply that broke off after its beginning is asked for again, if that may help and no call has
// started: no call of a write starts before its reply is complete.
func TestReplyBrokeOff(t *testing.T) {
	half := text("half")
	write := says("f", "x")
	write.Effect = pawl.EffectWrite
	read := says("read", "x")
	read.Effect = pawl.EffectRead
	passive := &pawl.Tool{Name: "ask", Description: "Asks.", Passive: true}
	for _, test := range []struct {
		name     string
		turns    []script.Turn
		want     string // the answer; "" means that the run fails
		requests int    // that the model received
		streamed bool   // only such requests
	}{
		{"once", []script.Turn{brokeOff(true, half), script.Say("whole")}, "whole", 2, false},
		{"twice", []script.Turn{brokeOff(true, half), brokeOff(true, half), script.Say("whole")}, "whole", 3, false},
		{"each time", []script.Turn{brokeOff(true, half), brokeOff(true, half), brokeOff(true, half), script.Say("whole")}, "", 3, false},
		{"in its reasoning", []script.Turn{brokeOff(true, llm.Reasoning{Text: "hm"}), script.Say("whole")}, "whole", 2, false},
		{"for good", []script.Turn{brokeOff(false, half), script.Say("whole")}, "", 1, false},
		{"before its beginning, which the model repeats itself", []script.Turn{brokeOff(true), script.Say("whole")}, "", 1, false},
		{"with a call", []script.Turn{brokeOff(true, half, call("c", "f", "{}")), script.Say("whole")}, "whole", 2, false},
		{"with two calls", []script.Turn{brokeOff(true, call("c", "f", "{}"), call("d", "f", "{}")), script.Say("whole")}, "whole", 2, false},
		{"with a call, and then with it", []script.Turn{brokeOff(true, call("c", "f", "{}")), script.Call("f", nil), script.Say("whole")}, "whole", 3, false},
		{"with a call that nothing offers", []script.Turn{brokeOff(true, call("c", "g", "{}")), script.Say("whole")}, "whole", 2, false},
		{"with a call that has started", []script.Turn{brokeOff(true, call("c", "read", "{}")), script.Say("whole")}, "", 1, true},
		{"with a call that a reader may have started", []script.Turn{brokeOff(true, call("c", "ask", "{}")), script.Say("whole")}, "", 1, false},
		{"then a call", []script.Turn{brokeOff(true, half), script.Call("f", nil), script.Say("whole")}, "whole", 3, false},
	} {
		for way, run := range ways {
			if test.streamed && way != "streamed" {
				continue // no call starts before a whole reply has arrived
			}
			m := &runtest.InTurn{Turns: test.turns}
			res, err := run(t.Context(), &pawl.Agent{Model: m, Tools: []pawl.Toolset{write, read, passive}}, llm.User("go"))
			if (err == nil) != (test.want != "") || err == nil && res.Text() != test.want || m.Asked != test.requests {
				t.Errorf("%s, %s: got %q, %v after %d requests", test.name, way, res.Text(), err, m.Asked)
			}
			if strings.Contains(fmt.Sprint(res.Messages), "half") {
				t.Errorf("%s, %s: the transcript has what broke off", test.name, way)
			}
		}
	}
}

// Readers learn that what they saw is void, before the reply begins again.
func TestReplyBrokeOffIsRetracted(t *testing.T) {
	broken := brokeOff(true, llm.Reasoning{Text: "hm"}, text("half"))
	a := &pawl.Agent{Model: &runtest.InTurn{Turns: []script.Turn{broken, script.Say("whole")}}}
	var got []string
	shown := map[int]string{}
	res, err := pawl.Collect(a.Stream(t.Context(), llm.User("go")), func(e pawl.Event) {
		switch e.Kind {
		case pawl.EventText, pawl.EventReasoning:
			shown[e.Index] += e.Text
		case pawl.EventTextRetracted:
			if shown[e.Index] != e.Text {
				t.Errorf("part %d: %q is void, and %q was emitted", e.Index, e.Text, shown[e.Index])
			}
			delete(shown, e.Index)
			got = append(got, fmt.Sprintf("%s %d", e.Kind, e.Step))
		case pawl.EventStepStarted, pawl.EventRequestStarted, pawl.EventNotice, pawl.EventResponseReceived:
			got = append(got, fmt.Sprintf("%s %d", e.Kind, e.Step))
		}
	})
	want := []string{"step_started 1", "request_started 1", "text_retracted 1", "text_retracted 1", "notice 1", "step_started 1",
		"request_started 1", "response_received 1"}
	if err != nil || shown[0] != "whole" || len(shown) != 1 || !slices.Equal(got, want) {
		t.Errorf("got %v, which show %v; %v", got, shown, err)
	}
	if res.Spent.Requests != 2 || len(res.Steps) != 1 {
		t.Errorf("got %+v and %d steps", res.Spent, len(res.Steps))
	}
}

// The budget counts the tokens of a reply that broke off.
func TestReplyBrokeOffIsPaid(t *testing.T) {
	broken := brokeOff(true, text("half"))
	broken.Deltas = []llm.Delta{{Part: text("half"), Usage: &llm.Usage{Input: 40, Output: 20}}}
	whole := script.Say("whole")
	whole.Usage = &llm.Usage{Input: 40, Output: 30}
	a := &pawl.Agent{Model: &runtest.InTurn{Turns: []script.Turn{broken, whole}}, Limits: pawl.Limits{Tokens: 100}}
	res, err := a.Run(t.Context(), llm.User("go"))
	var stop *pawl.StopError
	if !errors.As(err, &stop) || res.Limit != "tokens" || res.Spent.Usage.Total() != 130 {
		t.Errorf("got %v, %+v", err, res.Spent)
	}
}

// An answer without text is asked for once more, and then is an error. No run ends well with
// nothing.
func TestEmptyAnswer(t *testing.T) {
	nothing := script.Turn{}
	thought := script.Turn{Parts: []llm.Part{llm.Reasoning{Text: "hm"}}}
	picture := script.Turn{Parts: []llm.Part{llm.Media{MIME: "image/png", Data: []byte("x")}}}
	for _, test := range []struct {
		name     string
		turns    []script.Turn
		limits   pawl.Limits
		want     string // the answer
		fails    bool
		requests int
	}{
		{"once", []script.Turn{nothing, script.Say("yes")}, pawl.Limits{}, "yes", false, 2},
		{"blank", []script.Turn{script.Say(" \n"), script.Say("yes")}, pawl.Limits{}, "yes", false, 2},
		{"only reasoning", []script.Turn{thought, script.Say("yes")}, pawl.Limits{}, "yes", false, 2},
		{"after a call", []script.Turn{script.Call("f", nil), nothing, script.Say("yes")}, pawl.Limits{}, "yes", false, 3},
		{"then a call", []script.Turn{nothing, script.Call("f", nil), script.Say("yes")}, pawl.Limits{}, "yes", false, 3},
		{"twice", []script.Turn{nothing, nothing, script.Say("yes")}, pawl.Limits{}, "", true, 2},
		{"without corrections", []script.Turn{nothing, script.Say("yes")}, pawl.Limits{Corrections: -1}, "", true, 1},
		{"a picture is an answer", []script.Turn{picture}, pawl.Limits{}, "", false, 1},
		{"a model that sends nothing", []script.Turn{{Requests: -1}}, pawl.Limits{}, "", false, 1},
	} {
		for way, run := range ways {
			m := script.New(test.turns...)
			res, err := run(t.Context(), &pawl.Agent{Model: m, Limits: test.limits,
				Tools: []pawl.Toolset{says("f", "x")}}, llm.User("go"))
			var pe *llm.ProviderError
			failed := errors.As(err, &pe) && pe.Code == llm.CodeMalformedReply && res.Stop == pawl.StopFailed
			other := err != nil && !failed
			if failed != test.fails || other || res.Text() != test.want || len(m.Requests()) != test.requests {
				t.Errorf("%s, %s: got %s, %q, %v after %d requests", test.name, way, res.Stop, res.Text(), err, len(m.Requests()))
			}
			mustBeValid(t, res)
		}
	}
}

// A message that was sent in the meantime follows an empty answer too.
func TestEmptyAnswerAndAMessage(t *testing.T) {
	m := script.New(script.Turn{}, script.Say("yes"))
	ctx := pawl.WithRunOptions(t.Context(), pawl.RunOptions{Messages: laterMessages{llm.User("and?")}})
	res, err := (&pawl.Agent{Model: m}).Run(ctx, llm.User("go"))
	if err != nil || res.Text() != "yes" {
		t.Fatalf("got %v", err)
	}
	last := m.Requests()[1].Messages
	if got := last[len(last)-1].Text(); got != "and?" {
		t.Errorf("the last message is %q", got)
	}
}

// laterMessages sends its messages before the second request.
type laterMessages []llm.Message

func (f laterMessages) Take(_ context.Context, key llm.Key) []llm.Message {
	if key != "run/1/model" {
		return nil
	}
	return f
}

func (laterMessages) Close(context.Context) []llm.Message { return nil }
