package temporal

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/temporal"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
)

// lie changes what an executor, or the activity of a call, returns after it has executed the call.
type lie func(*pawl.Execution) error

func changes(change func(*pawl.Execution)) lie {
	return func(x *pawl.Execution) error {
		change(x)
		return nil
	}
}

func fails(err error) lie { return func(*pawl.Execution) error { return err } }

var lies = map[string]lie{
	"empty":     changes(func(x *pawl.Execution) { *x = pawl.Execution{} }),
	"other key": changes(func(x *pawl.Execution) { x.Key = "run/9/9" }),
	"other ID":  changes(func(x *pawl.Execution) { x.Call.ID = "c9" }),
	"outcome":   changes(func(x *pawl.Execution) { x.Outcome = "done" }),
	"unknown":   changes(func(x *pawl.Execution) { x.Outcome = pawl.OutcomeUnknown }),
	"pending":   changes(func(x *pawl.Execution) { x.Outcome = pawl.OutcomePending }),
	"question of another call": changes(func(x *pawl.Execution) {
		x.Outcome = pawl.OutcomeUnknown
		x.Pending = []pawl.PendingCall{{Key: "run/9/9", Call: x.Call, Outcome: pawl.OutcomeUnknown, Digest: "d"}}
	}),
	"question without a digest": changes(func(x *pawl.Execution) {
		x.Outcome = pawl.OutcomeUnknown
		x.Pending = []pawl.PendingCall{{Key: x.Key, Call: x.Call, Outcome: pawl.OutcomeUnknown}}
	}),
	"question of an ended call": changes(func(x *pawl.Execution) {
		x.Pending = []pawl.PendingCall{{Key: x.Key, Call: x.Call, Outcome: pawl.OutcomeUnknown, Digest: "d"}}
	}),
	"error": fails(errors.New("connection reset")),
}

// ofCluster are lies that only an activity can report.
var ofCluster = map[string]lie{
	"own error":      fails(sdk.NewNonRetryableApplicationError("no", "mine", nil)),
	"lost":           fails(sdk.NewHeartbeatTimeoutError("it acted")),
	"never begun":    fails(sdk.NewApplicationError("stopped", again)),
	"nothing begun":  fails(sdk.NewHeartbeatTimeoutError()),
	"not executable": fails(sdk.NewNonRetryableApplicationError("no agent", notStarted, nil)),
}

// payer is an agent with one tool that counts how often it paid.
type payer struct {
	effect pawl.Effect
	paid   atomic.Int32
}

func (p *payer) agent() *pawl.Agent {
	pay := &pawl.Tool{Name: "pay", Effect: p.effect, Run: func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
		p.paid.Add(1)
		return llm.TextResult("paid"), nil
	}}
	return &pawl.Agent{
		Name:  "clerk",
		Model: script.New(script.Call("pay", `{}`), script.Say("It is paid.")),
		Tools: []pawl.Toolset{pay},
	}
}

// by is an Executor that lies.
type by struct{ lie }

func (b by) Do(ctx context.Context, t pawl.Task, emit func(pawl.Event)) (pawl.Execution, error) {
	x := t.Do(ctx, emit)
	return x, b.lie(&x)
}

// inMemory runs the agent of p. It returns how the run stopped.
func inMemory(t *testing.T, p *payer, change lie) *pawl.Result {
	t.Helper()
	a := p.agent()
	a.Executor = by{change}
	res, err := a.Run(t.Context(), ask...)
	return stopped(t, res, err)
}

func overJournal(t *testing.T, p *payer, change lie) *pawl.Result {
	t.Helper()
	a := p.agent()
	a.Executor = by{change}
	engine := &durable.Engine{Journal: new(store.MemoryJournal)}
	res, err := engine.Runner("r", a).Run(t.Context(), ask...)
	return stopped(t, res, err)
}

func stopped(t *testing.T, res *pawl.Result, err error) *pawl.Result {
	t.Helper()
	if res == nil {
		t.Fatalf("the run has no result: %v", err)
	}
	return res
}

// overTemporal runs the agent of p in the test environment, until it has ended or waits.
func overTemporal(t *testing.T, p *payer, change lie) *pawl.Result {
	t.Helper()
	e := start(t, p.agent())
	lieIn(e, change, new(int))
	return untilWaits(t, e, input{Messages: ask})
}

// lieIn makes the activities of calls lie.
func lieIn(e *env, change lie, count *int) {
	e.OnActivity(activityCall, mock.Anything, mock.Anything).Return(
		func(ctx context.Context, in callInput) (pawl.Execution, error) {
			*count++
			x, err := e.w.act.call(ctx, in)
			if err != nil {
				return x, err
			}
			return x, change(&x)
		})
}

// errWaits ends the run of a test that waits for an answer.
var errWaits = errors.New("it waits")

func untilWaits(t *testing.T, e *env, in input) *pawl.Result {
	t.Helper()
	var waiting *pawl.Result
	e.tick = func() error {
		s, err := e.state()
		if err != nil || !s.Waits {
			return err
		}
		waiting = &pawl.Result{Stop: pawl.StopPending, Pending: s.Pending}
		return errWaits
	}
	out, err := e.run(in)
	if waiting != nil {
		return waiting
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Result
}

// state describes how a run stopped.
func state(res *pawl.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, answer %v", res.Stop, res.Answer != nil)
	for _, w := range res.Pending {
		fmt.Fprintf(&b, ", %s is %s, digest %v", w.Key, w.Outcome, w.Digest != "")
	}
	return b.String()
}

// A run whose calls are executed by a lying implementation has no answer without the outcome of its
// call. A write becomes one question and is not repeated. In memory, with a journal and on Temporal
// the run stops alike. The answer to the question then settles the call.
func TestLies(t *testing.T) {
	effects := map[string]pawl.Effect{
		"write":      pawl.EffectWrite,
		"unstated":   pawl.EffectUnstated,
		"idempotent": pawl.EffectIdempotent,
		"read":       pawl.EffectRead,
	}
	for name, change := range lies {
		for of, effect := range effects {
			t.Run(name+"/"+of, func(t *testing.T) {
				memory := &payer{effect: effect}
				journal := &payer{effect: effect}
				cluster := &payer{effect: effect}
				res := inMemory(t, memory, change)
				want := state(res)
				if got := state(overJournal(t, journal, change)); got != want {
					t.Errorf("with a journal: %s; want %s", got, want)
				}
				if got := state(overTemporal(t, cluster, change)); got != want {
					t.Errorf("on Temporal: %s; want %s", got, want)
				}
				if effect.Assumed() != pawl.EffectWrite {
					return
				}

				if !strings.HasSuffix(want, asksOnce) {
					t.Errorf("in memory: %s; want a question", want)
				}
				if memory.paid.Load() != 1 || journal.paid.Load() != 1 || cluster.paid.Load() != 1 {
					t.Errorf("paid %d, %d and %d times", memory.paid.Load(), journal.paid.Load(), cluster.paid.Load())
				}
			})
		}
	}
}

// asksOnce is the end of the state of a run that asks about its write.
const asksOnce = ", answer false, run/1/0 is unknown, digest true"

// The activities of a write lie for ever. The run asks after a few of them, and the write is done
// once. The answer ends the run, if the activities then are honest.
func TestLyingActivities(t *testing.T) {
	all := maps.Clone(lies)
	maps.Copy(all, ofCluster)
	for name, change := range all {
		t.Run(name, func(t *testing.T) {
			p := &payer{effect: pawl.EffectWrite}
			e := start(t, p.agent())
			count := 0
			asked := 0
			lieIn(e, func(x *pawl.Execution) error {
				if asked > 0 {
					return nil
				}
				return change(x)
			}, &count)
			e.tick = func() error {
				s, err := e.state()
				if err != nil || !s.Waits {
					return err
				}
				if got := state(&pawl.Result{Stop: pawl.StopPending, Pending: s.Pending}); got != "pending"+asksOnce {
					t.Errorf("it waits with %s", got)
				}
				asked++
				return e.update(updateDecide, fmt.Sprint(e.ticks), []llm.Decision{
					s.Pending[0].Answer("ann", llm.TextResult("it happened")),
				})
			}
			out, err := e.run(input{Messages: ask})
			if err != nil {
				t.Fatal(err)
			}

			if count > tries+2 {
				t.Errorf("%d activities", count)
			}
			switch name {
			case "never begun", "nothing begun":
				// It says that the call did not begin, and may be repeated. It lies here.
				if out.Result.Stop != pawl.StopAnswer || asked > 0 {
					t.Errorf("%s, asked %d times", state(out.Result), asked)
				}
				return
			case "not executable":
				return // as well
			}
			if p.paid.Load() != 1 {
				t.Errorf("paid %d times", p.paid.Load())
			}
			if out.Result.Stop == pawl.StopFailed {
				if !strings.HasSuffix(state(out.Result), asksOnce) {
					t.Errorf("it failed with %s", state(out.Result))
				}
				return
			}
			if asked != 1 || out.Result.Text() != "It is paid." {
				t.Errorf("asked %d times, then %s", asked, state(out.Result))
			}
		})
	}
}

// The activities that settle a write with an unknown outcome do not begin, or fail. The run asks
// about the write: it does not say that it was not sent.
func TestUnsettledWrite(t *testing.T) {
	for name, later := range ofCluster {
		t.Run(name, func(t *testing.T) {
			p := &payer{effect: pawl.EffectWrite}
			e := start(t, p.agent())
			count := 0
			lieIn(e, func(*pawl.Execution) error {
				if count == 1 {
					return sdk.NewHeartbeatTimeoutError("it acted")
				}
				return later(nil)
			}, &count)
			res := untilWaits(t, e, input{Messages: ask})
			if got := state(res); got != "pending"+asksOnce {
				t.Errorf("got %s", got)
			}
			if p.paid.Load() != 1 || count > tries+2 {
				t.Errorf("paid %d times in %d activities", p.paid.Load(), count)
			}
		})
	}
}

// A run that is cancelled while the outcome of its write is unknown ends as cancelled.
func TestCancelledUnsettled(t *testing.T) {
	p := &payer{effect: pawl.EffectWrite}
	e := start(t, p.agent())
	count := 0
	lieIn(e, func(*pawl.Execution) error {
		e.CancelWorkflow()
		return sdk.NewHeartbeatTimeoutError("it acted")
	}, &count)
	out, err := e.run(input{Messages: ask})
	if err != nil {
		t.Fatal(err)
	}
	if out.Result.Stop != pawl.StopCancelled || p.paid.Load() != 1 {
		t.Errorf("%s, %s, paid %d times", state(out.Result), out.Error, p.paid.Load())
	}
}

// lossy is a client whose first updates are lost after they have arrived.
type lossy struct {
	client.Client
	updates int
}

func (c *lossy) UpdateWorkflow(context.Context, client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	c.updates++
	if c.updates < 3 {
		return nil, serviceerror.NewUnavailable("connection reset")
	}
	return found{}, nil
}

func (*lossy) RecordActivityHeartbeat(context.Context, []byte, ...any) error { return nil }

// found is the update of a call that was executed.
type found struct{ client.WorkflowUpdateHandle }

func (found) Get(_ context.Context, v any) error {
	*v.(*pawl.Execution) = pawl.Execution{
		Key:     "run/1/0/s0",
		Call:    llm.ToolCall{ID: "s0", Name: "pay", Args: []byte(`{}`)},
		Outcome: pawl.OutcomeOK,
		Result:  llm.TextResult("paid"),
	}
	return nil
}

// The outcome of a call that a composing tool makes does not arrive. The tool does not continue
// without it: its next activity finds the outcome.
func TestLostOutcomeInside(t *testing.T) {
	p := &payer{effect: pawl.EffectWrite}
	a := p.agent()
	heard := 0
	plan := &pawl.Tool{Name: "plan", Effect: pawl.EffectCompose}
	plan.Run = func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
		all, err := pawl.InvocationFrom(ctx).Do(ctx, llm.ToolCall{Name: "pay", Args: []byte(`{}`)})
		if err == nil && all[0].Outcome == pawl.OutcomeOK {
			heard++
		}
		return llm.TextResult("planned"), err
	}
	a.Tools = append(a.Tools, plan)
	a.Model = script.New(script.Call("plan", `{}`), script.Say("It is paid."))

	e := start(t, a)
	c := new(lossy)
	e.w.engine.Client = c
	out, err := e.run(input{Messages: ask})
	if err != nil {
		t.Fatal(err)
	}
	if out.Result.Text() != "It is paid." || heard != 1 || c.updates != 3 {
		t.Errorf("%s, %s, %q, heard %d times after %d updates", state(out.Result), out.Error, out.Result.Text(), heard, c.updates)
	}
}

// A Model that breaks its contract answers nothing, and none of the calls of its reply is executed:
// in memory, with a journal and on Temporal.
func TestLyingModels(t *testing.T) {
	said := llm.Delta{Part: llm.Text{Text: "It is paid."}, Done: true}
	called := llm.Delta{Index: 1, Part: llm.ToolCall{ID: "c1", Name: "pay", Args: []byte(`{}`)}, Done: true}
	end := llm.Delta{Finish: llm.FinishReasonStop}
	for name, deltas := range map[string][]llm.Delta{
		"no finish":                 {said},
		"nothing":                   nil,
		"an unknown finish":         {said, {Finish: "done"}},
		"unknown after a call":      {said, called, {Finish: "done"}},
		"a part after the end":      {said, end, called},
		"two ends":                  {said, end, end},
		"a part skipped":            {called, end},
		"a result of a call":        {{Part: llm.ToolResult{CallID: "c1"}, Done: true}, end},
		"two calls with one ID":     {said, called, {Index: 2, Part: called.Part, Done: true}, {Finish: llm.FinishReasonToolCalls}},
		"a call without a name":     {said, {Index: 1, Part: llm.ToolCall{ID: "c1"}, Done: true}, {Finish: llm.FinishReasonToolCalls}},
		"control: announces a call": {said, {Finish: llm.FinishReasonToolCalls}},
		"control: an answer":        {said, end},
		"control: a call, empty":    {said, called, end},
	} {
		t.Run(name, func(t *testing.T) {
			agent := func(p *payer) *pawl.Agent {
				a := p.agent()
				a.Model = liar(deltas)
				a.Limits.Rounds = 1
				return a
			}
			var memory, journal, cluster payer
			first, err := agent(&memory).Run(t.Context(), ask...)
			want := state(stopped(t, first, err))
			engine := &durable.Engine{Journal: new(store.MemoryJournal)}
			second, err := engine.Runner("r", agent(&journal)).Run(t.Context(), ask...)
			if got := state(stopped(t, second, err)); got != want || journal.paid.Load() != memory.paid.Load() {
				t.Errorf("with a journal: %s, want %s", got, want)
			}
			third := untilWaits(t, start(t, agent(&cluster)), input{Messages: ask})
			if got := state(third); got != want || cluster.paid.Load() != memory.paid.Load() {
				t.Errorf("on Temporal: %s, want %s", got, want)
			}
			t.Logf("%s: %s, paid %d", name, want, memory.paid.Load())
		})
	}
}

// liar is a Model that yields the same deltas for each request.
type liar []llm.Delta

func (l liar) Stream(context.Context, *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		for _, d := range l {
			if !yield(d, nil) {
				return
			}
		}
	}
}

// The activity of a request returns no reply. The run fails; its workflow does not.
func TestNoReplyOfActivity(t *testing.T) {
	e := start(t, new(payer).agent())
	e.OnActivity(activityModel, mock.Anything, mock.Anything).Return(modelOutput{}, nil)
	out, err := e.run(input{Messages: ask})
	if err != nil || out.Result.Stop != pawl.StopFailed || out.Result.Answer != nil {
		t.Errorf("%+v, %v", out, err)
	}
}
