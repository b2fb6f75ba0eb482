package telemetry_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/runtrace"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/observe"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/telemetry"
)

// A call that starts while the model is still writing has the times of its execution, not the times
// of its events.
func TestEarlyStartsHaveTheirTimes(t *testing.T) {
	for _, seen := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, telemetry.Options{Model: "m"})
			start := time.Now()
			slow := tool("slow", pawl.EffectRead,
				func(context.Context) (string, error) { time.Sleep(100 * time.Millisecond); return "done", nil })
			m := modelFunc(func(_ context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
				return func(yield func(llm.Delta, error) bool) {
					if len(req.Messages) > 1 {
						yield(llm.Delta{Part: llm.Text{Text: "done"}, Done: true, Finish: llm.FinishReasonStop}, nil)
						return
					}
					time.Sleep(50 * time.Millisecond)
					if yield(llm.Delta{Part: llm.ToolCall{ID: "1", Name: "slow", Args: []byte(`{}`)}, Done: true}, nil) {
						time.Sleep(time.Second)
						yield(llm.Delta{Finish: llm.FinishReasonToolCalls}, nil)
					}
				}
			})
			if _, err := run(t.Context(), b.Runner(b.agent("a", seen, m, slow))); err != nil {
				t.Fatal(err)
			}
			for _, s := range b.spans.Ended() {
				if s.Name() == "execute_tool slow" {
					if began, ended := s.StartTime().Sub(start),
						s.EndTime().Sub(start); began != 50*time.Millisecond || ended != 150*time.Millisecond {
						t.Errorf("middleware %v: the span is from %v to %v, want 50ms to 150ms", seen, began, ended)
					}
				}
			}
		})
	}
}

// A run that continues another is linked to it through the Result.
func TestResumedAndForkedRunsAreLinked(t *testing.T) {
	b := newBench(t, telemetry.Options{Model: "m"})
	ask := &pawl.Tool{Name: "ask", Passive: true, Input: []byte(`{"type":"object"}`)}
	a := b.agent("a", true, script.New(script.Call("ask", `{}`), script.Say("done")), ask)
	first, err := run(t.Context(), b.Runner(a))
	if err != nil || first.Stop != pawl.StopPending {
		t.Fatal(first, err)
	}
	at := telemetry.Traceparent(first)
	for _, is := range []telemetry.Relation{telemetry.Resumed, telemetry.Forked} {
		ctx := telemetry.LinkTo(t.Context(), is, at)
		r := observe.RunnerFunc(func(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
			return a.ResumeStream(ctx, first, msgs...)
		})
		if _, err := run(ctx, b.Runner(r), llm.Message{Role: llm.RoleUser,
			Parts: []llm.Part{first.Pending[0].Answer("me", llm.TextResult("7"))}}); err != nil {
			t.Fatal(err)
		}
	}
	var links []string
	for _, s := range b.spans.Ended() {
		for _, l := range s.Links() {
			links = append(links, fmt.Sprint(s.Name(), " ", l.Attributes[0].Value.AsString(), " ",
				"00-"+l.SpanContext.TraceID().String()+"-"+l.SpanContext.SpanID().String()+"-01" == at))
		}
	}
	if diff := cmp.Diff(links, []string{"invoke_agent a resume true", "invoke_agent a fork true"}); diff != "" {
		t.Errorf("got -, want +\n%s", diff)
	}
	if got := telemetry.LinkTo(t.Context(), telemetry.Forked, "no traceparent"); got != t.Context() {
		t.Error("what is no traceparent makes a link")
	}
}

// A resumed durable run is linked to its previous attempt automatically, and its context contains
// its own position.
func TestAttemptsAreLinked(t *testing.T) {
	const before, origin = "00-0102030405060708090a0b0c0d0e0f10-0102030405060708-01", "00-1102030405060708090a0b0c0d0e0f10-1102030405060708-01"
	for data, want := range map[string]string{
		`{"attempt":2,"kept":3,"trace":"` + before + `"}`:                                                              "resume 01",
		`{"attempt":2,"kept":3,"forked_from":{"run":"a","steps":1,"trace":"` + origin + `"}}`:                          "fork 11",
		`{"attempt":3,"kept":3,"trace":"` + before + `","forked_from":{"run":"a","steps":1,"trace":"` + origin + `"}}`: "resume 01",
		`{"attempt":2,"kept":3}`:                   "",
		`{"attempt":2,"trace":"what is no place"}`: "",
	} {
		b := newBench(t, telemetry.Options{Model: "m"})
		a := b.agent("a", true, script.New(script.Say("done")))
		stands := ""
		r := observe.RunnerFunc(func(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
			stands = runtrace.Of(ctx)
			return func(yield func(pawl.Event, error) bool) {
				if !yield(pawl.Event{Kind: pawl.EventNotice, Run: "run", Code: "attempt", Data: json.RawMessage(data)}, nil) {
					return
				}
				for e, err := range a.Stream(ctx, msgs...) {
					if !yield(e, err) {
						return
					}
				}
			}
		})
		res, err := run(t.Context(), b.Runner(r), llm.User("go"))
		if err != nil || stands == "" || stands != telemetry.Traceparent(res) {
			t.Errorf("%s: its position is %q, and its traceparent %q; %v", data, stands, telemetry.Traceparent(res), err)
		}
		got := ""
		for _, s := range b.spans.Ended() {
			for _, l := range s.Links() {
				got += l.Attributes[0].Value.AsString() + " " + l.SpanContext.SpanID().String()[:2]
			}
		}
		if got != want {
			t.Errorf("%s: linked to %q, want %q", data, got, want)
		}
	}
}
