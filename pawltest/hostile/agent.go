package hostile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/runerr"
	"github.com/pawl-go/pawl/leak"
	"github.com/pawl-go/pawl/llm"
)

// Models opens an adapter for an API at a base URL. silence is how long the server may be silent; 0
// means the adapter's default.
type Models func(api, base string, silence time.Duration) (llm.Model, error)

// Agent is pawl as a Runtime, over adapters from open.
func Agent(open Models) Runtime {
	return func(ctx context.Context, job *Job) Report {
		setup := job.Behaviour.Setup
		m, err := open(job.API, job.Base, setup.Silence)
		if err != nil {
			return Report{Err: err}
		}
		a := &agentPlay{job: job, model: m}
		return a.play(ctx)
	}
}

type agentPlay struct {
	job      *Job
	model    llm.Model
	asked    int // from the approver
	progress int
	steering pawl.Steering
}

func (a *agentPlay) agent() *pawl.Agent {
	s := a.job.Behaviour.Setup
	agent := &pawl.Agent{Settings: llm.Settings{Effort: s.Effort}, Name: "kit", Model: a.model,
		Middleware: []pawl.Middleware{pawl.Approve(a.approve)},
		Limits: pawl.Limits{Rounds: s.Rounds, Calls: s.Calls, CallsPerStep: s.CallsPerStep, Tokens: s.Tokens,
			Time: s.Time}}
	for _, t := range a.job.Tools {
		agent.Tools = append(agent.Tools, a.tool(t))
	}
	switch s.Choice {
	case "":
	case "none":
		agent.Choice.Mode = llm.ToolNone
	case "required":
		agent.Choice.Mode = llm.ToolRequired
	default:
		agent.Choice = llm.Named(s.Choice)
	}
	if s.FromText {
		agent.Middleware = append(agent.Middleware, leak.Calls())
	}
	return agent
}

// tool returns a tool of the kit as a pawl.Tool.
func (a *agentPlay) tool(t *Tool) *pawl.Tool {
	if t.Agent {
		ping := a.tool(Tools()["ping"])
		child := &pawl.Agent{Name: t.Name, Model: a.model, Tools: []pawl.Toolset{ping}, Limits: pawl.Limits{Rounds: 3}}
		return child.Tool(t.Description)
	}
	// The kit orders calls only by Serial.
	p := &pawl.Tool{Name: t.Name, Description: t.Description, Input: t.Input, Passive: t.Passive, Timeout: t.Timeout,
		Concurrent: true}
	if t.Reads {
		p.Effect = pawl.EffectRead
	}
	if t.Plans {
		p.Effect = pawl.EffectCompose
	}
	if key := t.Serial; key != "" {
		p.Serial = func(args json.RawMessage) string {
			var m map[string]any
			json.Unmarshal(args, &m)
			return fmt.Sprint(m[key])
		}
	}
	if t.Passive {
		return p
	}
	p.Run = func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
		inv := pawl.InvocationFrom(ctx)
		if t.Plans {
			return a.plan(ctx, inv, call)
		}
		text, err := t.Call(ctx, a.job.Bench, call.Args)
		switch {
		case errors.Is(err, ErrPassing):
			return llm.ToolResult{}, pawl.RetryableError(err)
		case err != nil:
			return llm.ToolResult{}, err
		case t.Steers:
			if err := a.steering.Steer(ctx, llm.User(a.job.Behaviour.Setup.Word)); err != nil {
				return llm.ToolResult{}, err
			}
		case t.Ends:
			return llm.ToolResult{}, pawl.FinishError(llm.TextResult(text))
		case t.Aborts:
			return llm.ToolResult{}, pawl.AbortError(errors.New("the tool gives up"))
		}
		return llm.TextResult(text), nil
	}
	return p
}

// plan executes the steps in a call's arguments.
func (a *agentPlay) plan(ctx context.Context, inv *pawl.Invocation, call llm.ToolCall) (llm.ToolResult, error) {
	var in struct {
		Steps []struct {
			Tool string          `json:"tool"`
			Args json.RawMessage `json:"args"`
		} `json:"steps"`
	}
	if err := json.Unmarshal(call.Args, &in); err != nil {
		return llm.ToolResult{}, err
	}
	var calls []llm.ToolCall
	for _, s := range in.Steps {
		calls = append(calls, llm.ToolCall{Name: s.Tool, Args: s.Args})
	}
	inv.Emit(fmt.Sprintf("%d steps", len(calls)), nil)
	done, err := inv.Do(ctx, calls...)
	if err != nil {
		return llm.ToolResult{}, err
	}
	text := receiptOf("plan", fmt.Sprintf("(%d steps)", len(calls)))
	for _, x := range done {
		text += "\n" + string(x.Outcome) + ": " + x.Result.Text()
	}
	return llm.TextResult(text), nil
}

// approve returns the policy of the kit.
func (a *agentPlay) approve(_ context.Context, call llm.ToolCall, _ *pawl.Tool) (pawl.Approval, error) {
	for _, t := range a.job.Tools {
		switch {
		case t.Name != call.Name:
		case t.Deny:
			return pawl.Approval{Verdict: pawl.VerdictDeny, Reason: "the policy forbids " + t.Name}, nil
		case t.Ask:
			return pawl.Approval{Verdict: pawl.VerdictAsk, Reason: "a person must allow this"}, nil
		case t.Lost:
			return pawl.Approval{}, errors.New("the policy's server is down")
		}
	}
	return pawl.Approval{Verdict: pawl.VerdictAllow}, nil
}

// play makes the run and resumes it if the behaviour asks for it, each time from its stored form.
func (a *agentPlay) play(ctx context.Context) Report {
	res, err := a.part(ctx, nil)
	for n := 0; n < 3 && a.job.Behaviour.Setup.GoOn && res != nil &&
		(res.Stop == pawl.StopPending || errors.Is(err, ErrShutdown)); n++ {
		stored, jsonErr := json.Marshal(res)
		from := new(pawl.Result)
		if jsonErr == nil {
			jsonErr = json.Unmarshal(stored, from)
		}
		if jsonErr != nil {
			return Report{Err: jsonErr}
		}
		res, err = a.part(ctx, from)
	}
	err = runerr.Cause(err)
	r := Report{Err: err, Progress: a.progress}
	if res != nil {
		r.Stop, r.Messages = res.Stop, res.Messages
		if r.Err == nil && res.Cause != "" {
			r.Err = errors.New(res.Cause)
		}
	}
	return r
}

// part executes the run until it stops.
func (a *agentPlay) part(ctx context.Context, from *pawl.Result) (*pawl.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a.job.Bench.mu.Lock()
	a.job.Bench.end = func(why error) {
		if why == ErrCancel {
			why = pawl.ErrCancelled
		}
		cancel(why)
	}
	a.job.Bench.mu.Unlock()
	if from == nil {
		ctx = pawl.WithRunOptions(ctx, pawl.RunOptions{Messages: &a.steering})
	}
	agent := a.agent()
	msgs := []llm.Message{llm.User(a.job.Task)}
	if from != nil {
		msgs = nil
		if d := a.decisions(from); d != nil {
			msgs = append(msgs, d...)
		}
		if word := a.job.Behaviour.Setup.Word; word != "" {
			msgs = append(msgs, llm.User(word))
		}
	}
	if !a.job.Stream {
		if from != nil {
			return agent.Resume(ctx, from, msgs...)
		}
		return agent.Run(ctx, msgs...)
	}
	events := agent.Stream(ctx, msgs...)
	if from != nil {
		events = agent.ResumeStream(ctx, from, msgs...)
	}
	return pawl.Collect(events, func(e pawl.Event) {
		if e.Kind == pawl.EventProgress || e.Run != "run" {
			a.progress++
		}
	})
}

// decisions answers the pending calls: the first question with an approval, the others with a
// denial, and passive calls with their receipt.
func (a *agentPlay) decisions(from *pawl.Result) []llm.Message {
	var ds []llm.Decision
	for _, w := range from.Pending {
		switch {
		case w.Passive:
			ds = append(ds, w.Answer("kit", llm.TextResult(receiptOf(w.Call.Name, canonical(w.Call.Args)))))
		case a.asked == 0:
			ds = append(ds, w.Approve("kit"))
			a.asked++
		default:
			ds = append(ds, w.Deny("kit", "one is enough"))
		}
	}
	if ds == nil {
		return nil
	}
	return []llm.Message{llm.DecisionMessage(ds...)}
}
