package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
)

// A message sent to a run follows the next results. If the model has answered meanwhile, the run
// continues with the message.
func TestSteering(t *testing.T) {
	for way, run := range ways {
		var s pawl.Steering
		work := does("work", func(ctx context.Context, c llm.ToolCall) (llm.ToolResult, error) {
			if c.ID == "a" { // another call of the step is still open
				if err := s.Steer(ctx, llm.User("be brief"), llm.User("and kind")); err != nil {
					t.Error(err)
				}
			}
			return llm.TextResult("done " + c.ID), nil
		})
		m := script.New(script.Turn{Parts: []llm.Part{call("a", "work", "{}"), call("b", "work", "{}")}},
			script.Func(func(*llm.Request) script.Turn {
				if err := s.Steer(t.Context(), llm.User("in English")); err != nil {
					t.Error(err)
				}
				return script.Say("Voilà.")
			}), script.Say("There."))
		ctx := pawl.WithRunOptions(t.Context(), pawl.RunOptions{Messages: &s})
		res, err := run(ctx, &pawl.Agent{Model: m, Tools: []pawl.Toolset{work}},
			llm.User("go"))
		if err != nil || res.Stop != pawl.StopAnswer || res.Spent.Rounds != 2 || len(res.Unread) > 0 {
			t.Errorf("%s: got %v, %+v", way, err, res)
		}
		if diff := cmp.Diff(say(res.Messages), `user: go
assistant: a work {}
assistant: b work {}
tool: a = done a
tool: b = done b
user: be brief
user: and kind
assistant: Voilà.
user: in English
assistant: There.
`); diff != "" {
			t.Errorf("%s: %s", way, diff)
		}
		mustBeValid(t, res)
		if err := s.Steer(t.Context(), llm.User("too late")); !errors.Is(err, pawl.ErrRunEnded) {
			t.Errorf("after the end: %v", err)
		}
	}
}

func TestSteeringEvents(t *testing.T) {
	var s pawl.Steering
	if err := s.Steer(t.Context(), llm.User("before it begins")); err != nil {
		t.Fatal(err)
	}
	a := &pawl.Agent{Model: script.New(script.Say("hi"))}
	events, res, err := collect(a.Stream(pawl.WithRunOptions(t.Context(), pawl.RunOptions{Messages: &s}), llm.User("go")))
	if err != nil || say(res.Messages) != "user: go\nuser: before it begins\nassistant: hi\n" {
		t.Errorf("got %v\n%s", err, say(res.Messages))
	}
	for i, e := range events {
		if e.Kind == pawl.EventSteered {
			if e.Message.Text() != "before it begins" || e.Path != "run/0/model" || e.Step != 1 || events[i+1].Step != 1 {
				t.Errorf("got %+v", e)
			}
			return
		}
	}
	t.Error("no event tells of the message")
}

// A message that was in no request is returned as unread, for every cause that ends the run.
func TestUnreadMessages(t *testing.T) {
	for _, test := range []struct {
		name   string
		turns  []script.Turn
		limits pawl.Limits
		stop   pawl.StopReason
	}{
		{"limit", []script.Turn{script.Call("work", nil), script.Say("done")}, pawl.Limits{Rounds: 1}, pawl.StopLimit},
		{"failure", []script.Turn{script.Fail(errors.New("lost"))}, pawl.Limits{}, pawl.StopFailed},
		{"pending", []script.Turn{script.Call("person", nil)}, pawl.Limits{}, pawl.StopPending},
		{"cut", []script.Turn{script.Cut(script.Say("it is"))}, pawl.Limits{}, pawl.StopLimit},
	} {
		var s pawl.Steering
		last := len(test.turns)
		m := modelFunc(func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
			n := 1
			for _, m := range req.Messages {
				if m.Role == llm.RoleAssistant {
					n++
				}
			}
			if n == last {
				if err := s.Steer(ctx, llm.User("wait")); err != nil {
					t.Error(err)
				}
			}
			return script.New(test.turns...).Stream(ctx, req)
		})
		a := &pawl.Agent{Model: m, Tools: []pawl.Toolset{says("work", "x"), passive("person")}, Limits: test.limits}
		res, _ := runtest.Ended(a.Run(pawl.WithRunOptions(t.Context(), pawl.RunOptions{Messages: &s}), llm.User("go")))
		if res.Stop != test.stop || len(res.Unread) != 1 || res.Unread[0].Text() != "wait" ||
			strings.Contains(say(res.Messages), "wait") {
			t.Errorf("%s: got %s, unread %v\n%s", test.name, res.Stop, res.Unread, say(res.Messages))
		}
		if diff := cmp.Diff(roundTrip(t, res).Unread, res.Unread); diff != "" {
			t.Error(diff)
		}
	}
}

// A message is for the outermost run: inner runs receive none.
func TestInnerRunsAreNotSteered(t *testing.T) {
	var s pawl.Steering
	inner := script.New(script.Say("fine"))
	child := &pawl.Agent{Name: "child", Model: inner}
	byHand := does("by_hand", func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
		if err := s.Steer(ctx, llm.User("for the whole")); err != nil {
			return llm.ToolResult{}, err
		}
		res, err := child.Run(ctx, llm.User("go"))
		return llm.TextResult(res.Text()), err
	})
	a := &pawl.Agent{Model: script.New(script.Call("by_hand", nil), script.Call("child", `{"task":"x"}`),
		script.Say("done")), Tools: []pawl.Toolset{byHand, child.Tool("")}}
	res, err := a.Run(pawl.WithRunOptions(t.Context(), pawl.RunOptions{Messages: &s}), llm.User("go"))
	if err != nil || res.Stop != pawl.StopAnswer || res.Messages[3].Text() != "for the whole" {
		t.Errorf("got %v, %s\n%s", err, res.Stop, say(res.Messages))
	}
	for _, req := range inner.Requests() {
		if strings.Contains(say(req.Messages), "whole") {
			t.Errorf("an inner run took it:\n%s", say(req.Messages))
		}
	}
}

func TestWhatCannotSteer(t *testing.T) {
	var s pawl.Steering
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range map[string]error{
		"an answer": s.Steer(t.Context(), llm.User("fine"), llm.Assistant(text("hi"))),
		"a call":    s.Steer(t.Context(), llm.Message{Role: llm.RoleUser, Parts: []llm.Part{call("a", "b", "{}")}}),
		"nothing":   s.Steer(t.Context(), llm.Message{Role: llm.RoleUser}),
		"ctx":       s.Steer(ended, llm.User("hi")),
	} {
		if err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	if got := s.Close(t.Context()); len(got) > 0 {
		t.Errorf("took %v", got)
	}
}

// A message sent at any time is either in the transcript or unread, once and in order. No run makes
// more requests than its rounds allow.
func TestNoMessageIsLost(t *testing.T) {
	taken, unread := 0, 0
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 3))
			var s pawl.Steering
			var replies []written
			for n := range rnd.IntN(4) {
				w := written{Parts: []llm.Part{text("so")}, After: []time.Duration{time.Duration(rnd.IntN(30)) * ms}}
				for i := range rnd.IntN(3) {
					w.Parts = append(w.Parts, call(fmt.Sprint("c", n, "_", i), "work", fmt.Sprintf(`{"n":%d}`, rnd.IntN(1000))))
				}
				replies = append(replies, w)
			}
			began := new(runtest.Starts)
			rounds := 1 + rnd.IntN(3)
			a := &pawl.Agent{Model: slowly(replies...),
				Tools:  []pawl.Toolset{lasting("work", pawl.Effect(rnd.IntN(3)), 10*ms, began)},
				Limits: pawl.Limits{Rounds: rounds}}
			var want []string
			var wg sync.WaitGroup
			wg.Go(func() {
				for i := range 5 {
					time.Sleep(time.Duration(rnd.IntN(40)) * ms)
					if err := s.Steer(t.Context(), llm.User(fmt.Sprint("m", i))); err == nil {
						want = append(want, fmt.Sprint("m", i))
					} else if !errors.Is(err, pawl.ErrRunEnded) {
						t.Error(err)
					}
				}
			})
			ctx := pawl.WithRunOptions(t.Context(), pawl.RunOptions{Messages: &s})
			_, res, err := collect(a.Stream(ctx, llm.User("go")))
			wg.Wait()
			if err != nil || res.Spent.Requests > rounds+1 {
				t.Fatalf("seed %d: %v, %d requests with %d rounds", seed, err, res.Spent.Requests, rounds)
			}
			var got []string
			for _, m := range append(res.Messages[1:len(res.Messages):len(res.Messages)], res.Unread...) {
				if m.Role == llm.RoleUser {
					got = append(got, m.Text())
				}
			}
			if diff := cmp.Diff(got, want); diff != "" {
				t.Errorf("seed %d: %s", seed, diff)
			}
			unread += len(res.Unread)
			taken += len(got) - len(res.Unread)
			mustBeValid(t, res)
		})
	}
	t.Logf("%d messages were taken, %d were unread", taken, unread)
	if taken < 100 || unread < 10 {
		t.Error("the schedules are too tame")
	}
}

// A MessageSource that returns other messages than a user's ends the run before they reach the
// model, also in a journal. Control: a message of the user reaches it.
func TestMessageSourceFaults(t *testing.T) {
	for name, c := range map[string]struct {
		sent  llm.Message
		fault string // "" means none
	}{
		"a user's":  {llm.User("and?"), ""},
		"a call":    {llm.Assistant(llm.ToolCall{ID: "z", Name: "look"}), `"assistant"`},
		"a result":  {llm.Results(llm.ToolResult{CallID: "z"}), `"tool"`},
		"a system":  {llm.System("Obey."), `"system"`},
		"nothing":   {llm.Message{}, `""`},
		"no part":   {llm.Message{Role: llm.RoleUser, Parts: []llm.Part{nil}}, "<nil>"},
		"reasoning": {llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.Reasoning{}}}, "llm.Reasoning"},
	} {
		for _, stored := range []bool{false, true} {
			m := script.New(script.Say("Hi."), script.Say("Bye."))
			var r pawl.Runner = &pawl.Agent{Model: m}
			if stored {
				eng := &durable.Engine{Journal: new(store.MemoryJournal)}
				r = eng.Runner("r", &pawl.Agent{Model: m})
			}
			ctx := pawl.WithRunOptions(t.Context(), pawl.RunOptions{Messages: &once{c.sent}})
			res, err := pawl.Run(ctx, r, llm.User("go"))
			if c.fault == "" {
				if err != nil || len(m.Requests()) != 1 || len(m.Requests()[0].Messages) != 2 {
					t.Errorf("%s, stored %v: %v, %d requests", name, stored, err, len(m.Requests()))
				}
				continue
			}
			if err == nil || !strings.Contains(err.Error(), c.fault) || res == nil || res.Stop != pawl.StopFailed {
				t.Errorf("%s, stored %v: got %+v, %v; want a fault with %s", name, stored, res, err, c.fault)
			}
			if len(m.Requests()) > 0 {
				t.Errorf("%s, stored %v: it reached the model", name, stored)
			}
		}
	}
}

// once is a MessageSource with one message.
type once struct{ llm.Message }

func (o *once) Take(context.Context, llm.Key) []llm.Message {
	if o.Role == "sent" {
		return nil
	}
	sent := o.Message
	o.Message = llm.Message{Role: "sent"}
	return []llm.Message{sent}
}

func (*once) Close(context.Context) []llm.Message { return nil }
