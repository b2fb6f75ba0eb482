package pawl

// loop.go: the loop, and its steps: open calls, results, requests, replies.

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
)

// loop is THE LOOP: act, observe, decide, until the run ends. It acts first, so that a new run, a
// run resumed after a crash, a pending run and a new message take one path.
//
// It starts no goroutine, reads no clock and no random number, and depends only on messages,
// replies and executions. So the same loop runs in memory, with a journal, and as a workflow: an
// engine replaces the model and the executor. Early start (early.go) is the exception: it starts
// calls from here, and only if the agent has no Executor.
func (r *run) loop(ctx context.Context) (StopReason, error) {
	var resp *llm.Response // nil before the first request: open calls are of an earlier run
	for {
		// Act: execute the calls without a result.
		if tasks := r.open(resp); len(tasks) > 0 {
			over := (r.exhausted() || r.reply.final.limit != "") && !r.onlyAnswers(tasks)
			if over && r.agent.Limits.atLimit() == AtLimitReturn {
				r.stillWait(tasks)
				r.record(Step{Response: resp})
				return r.limit(reached{"rounds", "the rounds are used up; the calls of the last reply are handed back"})
			}
			r.noticeUnstated(tasks)
			execs := r.scope.execute(ctx, tasks, r.emit)

			// Observe: append the results to the conversation.
			ended := r.observe(ctx, execs)
			r.disclaim(execs)
			r.record(Step{Response: resp, Executions: execs})
			if x := ending(execs); x != nil {
				return r.finished(x)
			}
			switch {
			case ended:
				return r.interrupted(ctx)
			case len(r.res.Pending) > 0:
				return r.pending()
			case over:
				why := cmp.Or(r.reply.final, roundsUsedUp)
				why.cause += ", and the model went on calling"
				return r.limit(why)
			case r.stall.cause != "":
				return r.stalled()
			case !r.fitting(execs):
				return r.unfit()
			}
		} else if resp != nil && !r.askAgain(ctx, resp) && !r.steered(ctx, resp) {
			return r.answered(resp)
		}
		if why := r.admit(ctx); why.limit != "" {
			return r.limit(why)
		} else if ctx.Err() != nil {
			return r.interrupted(ctx)
		}

		// Decide: ask the model for the next step.
		r.takeMessages(ctx)
		if r.history.fault != nil {
			return StopFailed, r.history.fault
		}
		req, reply := r.request()
		for asking := true; asking; asking = r.restarts(ctx, req, reply) {
			for d, err := range r.setup.model.Stream(ctx, req) {
				if !r.read(ctx, reply, d, err) {
					break
				}
			}
		}
		if err := cmp.Or(r.reply.err, reply.Err()); err != nil {
			return r.broken(ctx, req, reply, err)
		}
		r.addReply(req, reply)
		resp = reply
	}
}

// open returns the tasks for the calls of the last reply without a result. Task.Refuse is the
// reason why a call must not run.
func (r *run) open(resp *llm.Response) []Task {
	open, reply := openCalls(r.res.Messages)
	if reply < 0 {
		return nil
	}
	r.history.at = reply
	var tasks []Task
	parts := r.res.Messages[reply].Parts
	place := -1
	for i, p := range parts {
		c, ok := p.(llm.ToolCall)
		if !ok {
			continue
		}
		place++
		if len(open) == 0 || open[0].ID != c.ID {
			continue // it has its result
		}
		open = open[1:]

		// A step of the model is announced with its request (emitRequest). The calls of an earlier
		// run have no request here.
		if tasks == nil {
			tasks = make([]Task, 0, len(parts)-i)
			if resp == nil {
				r.emit(Event{Kind: EventStepStarted})
			}
		}
		t := r.task(r.history.replies, place, c)
		t.Index, t.Refuse = len(tasks), r.refusal(resp, c, place)
		if r.reply.ahead != nil {
			t.earlyCall = r.reply.ahead.take(&t)
		}
		t.adopt(r.resumed.decisions, r.resumed.pending)

		// A redacted journal has a mask in the arguments, and the tool must not take the mask for a
		// value. In a reply of this run the mask is what the model meant.
		supplied := func(d llm.Decision) bool { return d.Key == t.Key && d.Result != nil }
		hidden := resp == nil && bytes.Contains(c.Args, []byte(secretMask))
		if t.Refuse == "" && hidden && !slices.ContainsFunc(t.Decisions, supplied) {
			t.Refuse = "Not run: its arguments hold a secret that was not stored with them. Send it again, with all of its arguments."
		}
		tasks = append(tasks, t)
	}

	// The remaining early calls are not in the complete reply, or must not run.
	if r.reply.ahead != nil {
		r.reply.ahead.drop()
		r.reply.ahead = nil
	}
	return tasks
}

// task returns the task of call c, at place among the calls of a reply.
func (r *run) task(reply, place int, c llm.ToolCall) Task {
	key := r.key + llm.Key("/"+strconv.Itoa(reply)+"/"+strconv.Itoa(place))
	return Task{Agent: r.name, Run: r.key, Step: reply, Key: key, Call: c, Values: r.res.Values,
		scope: &r.scope, messages: r.res.Messages}
}

// refusal returns, for the model, why the call c at place must not run. "" means that it may.
func (r *run) refusal(resp *llm.Response, c llm.ToolCall, place int) string {
	switch {
	case r.exhausted() && !r.answers(c):
		return fmt.Sprintf("Not run: the limit of %d %s was reached.", r.setup.rounds, text.Plural(r.setup.rounds, "round", "rounds"))
	case r.reply.final.limit != "" && !r.answers(c):
		return "Not run: " + r.reply.final.cause + "."
	case resp != nil && r.agent.Choice.Mode == llm.ToolNone && !r.answers(c):
		return "Not run: no tool may be called now. Answer with what you have."
	case resp != nil && resp.Finish.Cut():
		return fmt.Sprintf("Not run: your reply was cut (%s), so this call may not be what you meant. Send it again, shorter if need be.", resp.Finish)
	case r.agent.Limits.CallsPerStep > 0 && place >= r.agent.Limits.CallsPerStep:
		return fmt.Sprintf("Not run: at most %d calls of one reply are executed. Send it again if it is still needed.", r.agent.Limits.CallsPerStep)
	}
	return ""
}

// observe appends the results of completed calls to the conversation, in call order, and records
// the pending calls. If the run was given up (ErrCancelled), they get results too. Otherwise a call
// that ended with the context stays open, and pending if it was. observe reports whether ctx has
// ended.
func (r *run) observe(ctx context.Context, execs []Execution) (ended bool) {
	over := r.exhausted() || r.reply.final.limit != ""
	ended = ctx.Err() != nil
	givenUp := ended && context.Cause(ctx) == ErrCancelled
	r.res.Pending = nil
	results := make([]llm.Part, 0, len(execs))
	for i := range execs {
		x := &execs[i]

		// When its nested calls have answers, the tool runs again from its beginning and makes the
		// same calls. So nothing of this attempt counts.
		if x.waitsInside() && !givenUp {
			r.res.Pending = append(r.res.Pending, x.Pending...)
			continue
		}
		r.res.Values = merged(r.res.Values, x.Values)
		r.spend(Spent{Calls: newCalls(x, r.resumed.pending)})
		r.spend(x.Spent)

		// The budget has counted the calls of this process when they started.
		if !x.local {
			r.scope.budget.replayed(x)
		}
		switch {
		case !x.Outcome.Settled() && givenUp:
			x.giveUp()
		case !x.Outcome.Settled():
			r.res.Pending = append(r.res.Pending, x.Pending...)
			if x.Error != "" {
				r.resumed.refused = append(r.resumed.refused, x.Error)
			}
			continue
		// Such a call can be executed again, so that it stays open for Resume.
		case x.Outcome == OutcomeCancelled && ended && !givenUp:
			r.stillWaits(x.Key)
			continue
		}
		if r.stall.observe(x, r.history.replies) { // call_completed has the result of the tool
			r.emit(Event{Kind: EventNotice, Path: x.Key, Code: "stalling", Text: x.Result.Text()})
		}
		results = append(results, x.Result)
	}

	// A pending step is completed by a later run, which counts the round.
	if !over && len(results) == len(execs) {
		r.res.Spent.Rounds++
	}
	r.res.Messages = withResults(r.res.Messages, r.history.at, results)
	return ended
}

// ending returns the execution that ends the run, failures first. nil means none.
func ending(execs []Execution) *Execution {
	var end *Execution
	for i := range execs {
		if x := &execs[i]; x.Ends == StopFailed || x.Ends == StopFinished && end == nil {
			end = x
			if x.Ends == StopFailed {
				break
			}
		}
	}
	return end
}

// request returns the next request and an empty reply. A forced choice applies only to the first
// request, so that the run can end. The last request asks for an answer.
func (r *run) request() (*llm.Request, *llm.Response) {
	if i := lastOf(r.history.then, llm.RoleUser); i >= 0 {
		r.history.turn = len(r.res.Messages) + i
	}
	r.res.Messages = append(r.res.Messages, r.history.then...)
	r.history.then = nil
	a := r.agent
	both := &struct { // one allocation
		req   llm.Request
		reply llm.Response
	}{req: llm.Request{Key: r.requestKey(), Messages: r.view(), Tools: r.setup.specs, Output: a.Output,
		Settings: a.Settings, Whole: r.scope.whole, Turn: r.history.turn}}
	req := &both.req
	if l := r.setup.deferred; l != nil {
		req.Tools = specs(l.tools(r.res.Messages))
		req.Edited = l.edited
	}

	// The instructions stand before the conversation; see view.
	if r.setup.instructions != "" {
		req.Turn++
		req.Edited++
	}

	// A request without tools asks for an answer anyway.
	if len(req.Tools) > 0 {
		req.Choice = a.Choice
		if r.history.answered && req.Choice.Mode != llm.ToolNone {
			req.Choice = llm.ToolChoice{}
		}
		r.reply.final = r.whyLast()
		if r.reply.final.limit != "" {
			req.Choice = llm.ToolChoice{Mode: llm.ToolNone}
			if r.history.answered { // the model may not know it
				req.Messages = append(req.Messages, llm.User("No more calls are executed: "+r.reply.final.cause+
					". Answer now with what you have, and say what is missing."))
			}
		}
	}
	if o := r.output; o != nil && o.tool != nil {
		o.asked = req.Choice.Mode != llm.ToolNone
		if o.asked {
			req.Output = nil // the tool has the schema
		}
	}
	if r.out.sink != nil {
		r.emitRequest(req)
	}
	return req, &both.reply
}

// emitRequest emits that the model is asked.
func (r *run) emitRequest(req *llm.Request) {
	step := r.history.replies + 1
	r.emit(Event{Kind: EventStepStarted, Step: step})
	r.emit(Event{Kind: EventRequestStarted, Step: step, Path: req.Key, Model: req.Model,
		Messages: len(req.Messages), Tools: len(req.Tools), Choice: &req.Choice})
}

// read adds a fragment to the reply, or the error that ended it, and emits the fragment. It reports
// whether to read on. When ctx has ended it returns false, even if the model continues.
func (r *run) read(ctx context.Context, reply *llm.Response, d llm.Delta, err error) bool {
	if err == nil {
		err = reply.Add(d)
	}
	if err != nil {
		r.reply.err = err
		return false
	}
	r.emitDelta(reply, d)
	if r.setup.starter != nil && d.Done && d.Finish == "" {
		r.startSealed(ctx, r.setup.starter, reply)
	}
	return d.Finish != "" || ctx.Err() == nil
}

var roundsUsedUp = reached{"rounds", "the rounds are used up"}

// whyLast returns the limit for which the next request must ask for an answer.
func (r *run) whyLast() reached {
	switch {
	case r.agent.Limits.atLimit() == AtLimitReturn:
		return reached{}
	case r.exhausted():
		return roundsUsedUp
	}
	if why := r.scope.budget.callsRefused(); why.limit != "" {
		return why
	}
	return r.scope.budget.near(r.reply.used)
}

// addReply appends a complete reply to the conversation.
func (r *run) addReply(req *llm.Request, resp *llm.Response) {
	r.retract(resp)
	r.history.replies++
	r.history.answered = true
	r.reply.request = req
	resp.Message = resp.Message.WithLabel(r.label()) // a label that the model states does not count
	r.res.Messages = append(r.res.Messages, resp.Message)
	r.spend(Spent{Requests: 1 + resp.Requests, Usage: resp.Usage})

	rejected := resp.Finish == llm.FinishReasonError && resp.Message.HasCalls()

	// A limit of tokens or cost cannot be kept with a provider that reports no usage. A model that
	// sent no request has none to report, and neither has a rejected call.
	asked := resp.Requests >= 0
	hasUsage := resp.Usage.Total() != 0 || resp.Usage.Cost != 0
	blind := asked && !rejected && !hasUsage
	r.paid(*resp.Usage.Plus(r.reply.lost), blind)

	if rejected {
		r.res.Spent.Corrections++ // the results of its calls ask for a correction
	}
	if r.out.sink != nil {
		r.emit(Event{Kind: EventResponseReceived, Path: req.Key, Response: resp})
	}
}

// secretMask replaces a secret in stored arguments; see package redact.
const secretMask = "[redacted]"
