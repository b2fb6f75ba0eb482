package running

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/eval/internal/suite"
	"github.com/pawl-go/pawl/eval/internal/trial"
	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/recording"
)

// playing.go: plays a run with the answers of its suite, and keeps what it did and left.

// playing is a run with the answers of its suite.
type playing struct {
	runner  *Runner
	id      string
	built   *agentfile.Built
	replies []*suite.Reply
	out     *trial.Record
	used    map[*suite.Reply]int
	result  *pawl.Result
	calls   map[llm.Key]*pawl.Execution
}

// play runs the agent, and answers its questions until there is none that an answer fits.
func (p *playing) play(ctx context.Context, messages []llm.Message) error {
	p.used = map[*suite.Reply]int{}
	for {
		p.calls = map[llm.Key]*pawl.Execution{} // the events of the stored part are repeated
		began := time.Now()
		run := p.runner.Engine.Runner(p.id, p.built.Agent)
		res, err := pawl.Collect(run.Stream(ctx, messages...), p.observe)
		p.out.Spent.Time += time.Since(began)
		p.result = res
		if judged := judgeable(ctx, err); judged != nil || res == nil {
			return errors.Join(judged, unstarted(res, err))
		}
		if res.Stop != pawl.StopPending {
			return nil
		}

		decisions := p.decide(res.Pending)
		if len(decisions) == 0 {
			return nil
		}
		messages = []llm.Message{llm.DecisionMessage(decisions...)}
	}
}

// unstarted returns the error of a run without a result.
func unstarted(res *pawl.Result, err error) error {
	if res == nil && err != nil {
		return fmt.Errorf("%w: %w", errAgent, err)
	}
	return nil
}

// observe keeps the calls that have ended.
func (p *playing) observe(e pawl.Event) {
	if e.Kind == pawl.EventCallCompleted && e.Execution != nil {
		p.calls[e.Execution.Key] = e.Execution
	}
}

// judgeable returns the error of a run that says nothing about the agent: of the provider, or of an
// interruption. Nil means that checks judge the run.
func judgeable(ctx context.Context, err error) error {
	var failed *llm.ProviderError
	var miss *recording.Miss
	switch {
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case errors.As(err, &miss):
		return err
	case errors.As(err, &failed) && !IsJudged(string(failed.Code)):
		return err
	}
	return nil
}

// person is who answers in an eval.
const person = "eval"

// decide answers the questions that an answer fits.
func (p *playing) decide(pending []pawl.PendingCall) (all []llm.Decision) {
	for _, q := range pending {
		asked := trial.Question{Tool: q.Call.Name, Args: q.Call.Args}
		reply := p.reply(q.Call)
		if reply != nil {
			p.used[reply]++
			asked.Answer = reply.Do
			all = append(all, decision(q, reply))
		}
		if reply != nil || !p.knows(asked) {
			p.out.Asked = append(p.out.Asked, asked)
		}
	}
	return all
}

// knows reports whether an open question was recorded before.
func (p *playing) knows(q trial.Question) bool {
	return slices.ContainsFunc(p.out.Asked, func(other trial.Question) bool {
		return other.Answer == "" && other.Tool == q.Tool && string(other.Args) == string(q.Args)
	})
}

// reply returns the first answer that fits and is not used up. Nil means none.
func (p *playing) reply(call llm.ToolCall) *suite.Reply {
	for _, r := range p.replies {
		isUsedUp := r.Times > 0 && p.used[r] >= r.Times
		if isUsedUp || !r.Answers(call) {
			continue
		}
		return r
	}
	return nil
}

func decision(q pawl.PendingCall, r *suite.Reply) llm.Decision {
	switch r.Do {
	case "approve":
		return q.Approve(person)
	case "edit":
		return q.Edit(person, json.RawMessage(r.With))
	case "answer":
		return q.Answer(person, llm.TextResult(textOf(r.With)))
	}
	return q.Deny(person, textOf(r.With))
}

// keep fills in the record what the run did and left. The error says that its world cannot be read.
func (p *playing) keep(w *World) error {
	out := p.out
	out.Misses = w.Misses()
	p.keepCalls()
	p.keepResult()
	after, err := w.Files()
	if err != nil {
		return fmt.Errorf("%w: %w", errWorld, err)
	}
	out.After = after
	return nil
}

// keepResult fills in the result.
func (p *playing) keepResult() {
	out := p.out
	res := p.result
	if res == nil {
		return
	}

	out.Stop = string(res.Stop)
	out.Limit = string(res.Limit)
	out.Cause = res.Cause
	if res.Answer != nil {
		out.Answer = res.Answer.Text
	}
	out.Output = res.Output
	out.Spent.Count(&res.Spent)
	out.Spent.Repairs += len(res.Repairs)
}

// usage is the usage of the run.
func (p *playing) usage() llm.Usage {
	if p.result == nil {
		return llm.Usage{}
	}
	return p.result.Spent.Usage
}

// keepCalls fills in the calls, in the order of their keys, with the state of their effects.
func (p *playing) keepCalls() {
	// The context of the trial may have ended, and the ledger is there all the same.
	ctx := context.Background()
	effects := p.effects(ctx)
	states := map[llm.Key]string{}
	if ledger, err := p.runner.Engine.Effects(ctx, p.id); err == nil {
		for _, entry := range ledger {
			states[entry.Key] = string(entry.State)
		}
	}

	for _, key := range slices.SortedFunc(maps.Keys(p.calls), journal.CompareKeys) {
		x := p.calls[key]
		p.out.AddCall(key, x, effects[x.Call.Name], states[key])
	}
}

// effects returns the effects of the agent's tools by name.
func (p *playing) effects(ctx context.Context) map[string]string {
	all := map[string]string{}
	tools, err := pawl.Toolsets(p.built.Agent.Tools).Tools(ctx)
	if err != nil {
		tools = p.built.Tools
	}
	for _, t := range slices.Concat(p.built.Within, tools) {
		all[t.Name] = t.Effect.Assumed().String()
	}
	return all
}
