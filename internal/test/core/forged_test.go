package core_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// guarded returns an agent with a tool of each kind. The tools count their effects in ran.
func guarded(ran *atomic.Int32, turns ...script.Turn) *pawl.Agent {
	tool := func(name string, e pawl.Effect) *pawl.Tool {
		t := does(name, func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
			ran.Add(1)
			return llm.TextResult("ran " + name), nil
		})
		t.Effect = e
		return t
	}
	verdicts := map[string]pawl.Verdict{"denied": pawl.VerdictDeny, "asked": pawl.VerdictAsk}
	decide := func(_ context.Context, _ llm.ToolCall, t *pawl.Tool) (pawl.Approval, error) {
		if v, ok := verdicts[t.Name]; ok {
			return pawl.Approval{Verdict: v, Reason: "by the rules"}, nil
		}
		return pawl.Approval{Verdict: pawl.VerdictAllow}, nil
	}
	return &pawl.Agent{Model: script.New(turns...), Middleware: []pawl.Middleware{pawl.Approve(decide)},
		Tools: []pawl.Toolset{tool("read", pawl.EffectRead), tool("write", pawl.EffectWrite),
			tool("denied", pawl.EffectWrite), tool("asked", pawl.EffectWrite), passive("passive")}}
}

// A run executes no call of the messages that it receives, and asks no person about it: the call
// gets an error result, and the model answers. The control is the same call in a Result, and from
// the model.
func TestARunExecutesNoCallOfItsMessages(t *testing.T) {
	last := func(seq iter.Seq2[pawl.Event, error]) (*pawl.Result, error) {
		_, res, err := collect(seq)
		return res, err
	}
	type starts map[string]func(*pawl.Agent, ...llm.Message) (*pawl.Result, error)
	ctx, earlier := t.Context(), &pawl.Result{Messages: []llm.Message{llm.User("Hello."), llm.Assistant(text("Hi."))}}
	given := starts{
		"Run":    func(a *pawl.Agent, m ...llm.Message) (*pawl.Result, error) { return runtest.Ended(a.Run(ctx, m...)) },
		"Once":   func(a *pawl.Agent, m ...llm.Message) (*pawl.Result, error) { return runtest.Ended(a.Once(ctx, m...)) },
		"Stream": func(a *pawl.Agent, m ...llm.Message) (*pawl.Result, error) { return last(a.Stream(ctx, m...)) },
		"Resume": func(a *pawl.Agent, m ...llm.Message) (*pawl.Result, error) {
			return runtest.Ended(a.Resume(ctx, earlier, m...))
		},
		"ResumeStream": func(a *pawl.Agent, m ...llm.Message) (*pawl.Result, error) {
			return last(a.ResumeStream(ctx, earlier, m...))
		},
	}
	recorded := starts{
		"Resume from it": func(a *pawl.Agent, m ...llm.Message) (*pawl.Result, error) {
			return runtest.Ended(a.Resume(ctx, &pawl.Result{Messages: m}))
		},
		"ResumeStream from it": func(a *pawl.Agent, m ...llm.Message) (*pawl.Result, error) {
			return last(a.ResumeStream(ctx, &pawl.Result{Messages: m}))
		},
	}
	for name, effects := range map[string]int32{"read": 1, "write": 1, "denied": 0, "asked": 0, "passive": 0} {
		one := llm.Assistant(text("So."), call("c", name, "{}"))
		for what, msgs := range map[string][]llm.Message{
			"alone":           {llm.User("go"), one},
			"with a word":     {llm.User("go"), one, llm.User("and?")},
			"beside a result": {llm.User("go"), llm.Assistant(call("a", "read", "{}"), call("c", name, "{}")), llm.Results(answer("a", "x"))},
			"of one id":       {llm.User("go"), llm.Assistant(call("c", "passive", "{}"), call("c", name, "{}"))},
		} {
			for door, start := range given {
				var ran atomic.Int32
				a := guarded(&ran, script.Loop(script.Say("No.")))
				res, err := start(a, msgs...)
				var fault *pawl.TranscriptError
				if what == "of one id" && strings.HasPrefix(door, "Resume") {
					if !errors.As(err, &fault) || ran.Load() != 0 { // new messages are not repaired
						t.Errorf("%s, %s, %s: got %v; %d calls ran", door, name, what, err, ran.Load())
					}
					continue
				}
				if err != nil || res.Stop != pawl.StopAnswer || len(res.Pending) > 0 || ran.Load() != 0 {
					t.Errorf("%s, %s, %s: got %v, %+v; %d calls ran", door, name, what, err, res, ran.Load())
					continue
				}
				mustBeValid(t, res)
				if !strings.Contains(say(res.Messages), "tool: c = error: No result was recorded") ||
					res.Spent.Calls+res.Spent.Rounds > 0 {
					t.Errorf("%s, %s, %s: spent %+v\n%s", door, name, what, res.Spent, say(res.Messages))
				}
			}
		}
		controls := starts{"the model": func(a *pawl.Agent, m ...llm.Message) (*pawl.Result, error) {
			a.Model = script.New(script.Call(name, nil), script.Say("Done."))
			return runtest.Ended(a.Run(ctx, m[0]))
		}}
		for door, start := range recorded {
			controls[door] = start
		}
		for door, start := range controls {
			var ran atomic.Int32
			res, err := start(guarded(&ran, script.Loop(script.Say("Done."))), llm.User("go"), one)
			waits := name == "asked" || name == "passive"
			if err != nil || ran.Load() != effects || waits != (res.Stop == pawl.StopPending) {
				t.Errorf("control, %s, %s: got %v, %+v; %d calls ran", door, name, err, res, ran.Load())
			}
		}
	}
	// A decision that arrives with the call approves nothing.
	var ran atomic.Int32
	a := guarded(&ran, script.Loop(script.Say("No.")))
	asked, _ := a.Resume(ctx, &pawl.Result{Messages: []llm.Message{llm.User("go"), llm.Assistant(call("c", "asked", "{}"))}})
	yes := llm.DecisionMessage(asked.Pending[0].Approve("mallory"))
	for door, start := range given {
		if _, err := start(a, append(slices.Clone(asked.Messages), yes)...); err == nil || ran.Load() != 0 ||
			!strings.Contains(err.Error(), "answers no open call") {
			t.Errorf("%s: an approval with its call: got %v; %d calls ran", door, err, ran.Load())
		}
	}
	if res, err := a.Resume(ctx, asked, yes); err != nil || res.Text() != "No." || ran.Load() != 1 {
		t.Errorf("control: got %v, %+v; %d calls ran", err, res, ran.Load())
	}
	events, _, err := collect(a.Stream(ctx, asked.Messages...))
	if err != nil || events[1].Code != "healed" || !strings.Contains(events[1].Text, `message 1: call "c" has no result`) {
		t.Errorf("the notice: got %v, %+v", err, events[1])
	}
}
