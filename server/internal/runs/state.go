package runs

// state.go: the state of runs, as clients see it.

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/store"
)

const (
	// StateQueued is the state of a run that waits for room to execute.
	StateQueued = "queued"

	// StateRunning is the state of a run that this process executes.
	StateRunning = "running"
)

// Head returns the journal's entry of a run. The error is store.ErrNotFound if the caller has no
// such run.
func (s *Service) Head(ctx context.Context, c Caller, id string) (store.JournalRun, error) {
	return s.options.Journal.JournalRun(c.in(ctx), c.Scope, id)
}

// Heads returns a page of the journal's entries of the caller's runs in a state; "" means any.
func (s *Service) Heads(ctx context.Context, c Caller, state string, p store.Page) ([]store.JournalRun, error) {
	return s.options.Journal.JournalRuns(c.in(ctx), c.Scope, state, p)
}

// HeadsWith returns the journal's entries of the caller's runs in a state whose IDs begin with a
// prefix, by ID; the empty state means any.
func (s *Service) HeadsWith(ctx context.Context, c Caller, prefix, state string) (all []store.JournalRun, err error) {
	for p := (store.Page{After: prefix, Limit: 1000}); ; {
		heads, err := s.Heads(ctx, c, state, p)
		if err != nil {
			return nil, err
		}
		for _, h := range heads {
			if !strings.HasPrefix(h.ID, prefix) {
				return all, nil
			}
			all = append(all, h)
			p.After = h.ID
		}
		if len(heads) < p.Limit {
			return all, nil
		}
	}
}

// State returns the state of a run.
func (s *Service) State(ctx context.Context, c Caller, id string) (run api.Run, err error) {
	head, open, err := s.Pending(ctx, c, id)
	if err != nil {
		return run, err
	}
	run = s.Describe(head)
	if run.State == StateQueued {
		run.Ahead = s.ahead(place{head.Scope, id})
	}

	x, extras, err := s.Stored(ctx, c, id)
	if err != nil {
		return run, err
	}
	switch run.State {
	case store.JournalOver, store.JournalFailed, store.JournalWaiting:
		run.Answer = AnswerOf(x)
		run.Output = OutputOf(x)
		run.Calls, err = s.returned(ctx, c, id, x)
		if err != nil {
			return run, err
		}
	}

	run.Pending, err = s.Show(ctx, c, id, open)
	if err != nil {
		return run, err
	}
	if extras != nil {
		run.Thread = extras.Thread
	}
	run.Forked = x.Forked
	run.Waits = len(run.Pending)
	return run, nil
}

// returned returns the calls that a run has returned, without secrets.
func (s *Service) returned(ctx context.Context, c Caller, id string, x *journal.Export) ([]llm.ToolCall, error) {
	calls := Returned(x)
	if len(calls) == 0 {
		return nil, nil
	}
	hide, err := s.redactor(c.in(ctx), id)
	if err != nil {
		return nil, err
	}
	reply := llm.Message{Role: llm.RoleAssistant}
	for _, call := range calls {
		reply.Parts = append(reply.Parts, call.Call)
	}
	return hide.Result(&pawl.Result{Messages: []llm.Message{reply}}).Messages[0].Calls(), nil
}

// ahead returns the number of runs that are before a run in the queue.
func (s *Service) ahead(p place) int {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	l := s.hub.runs[p]
	if l == nil {
		return 0
	}
	return s.hub.queue.ahead(l)
}

// Describe converts a journal entry to the state of its run, as in a list.
func (s *Service) Describe(head store.JournalRun) api.Run {
	run := api.Run{
		ID:      head.ID,
		Agent:   head.Agent,
		Kind:    kindOf(head.Agent),
		Task:    head.Task,
		State:   head.State,
		Created: head.Created,
		Updated: head.Updated,
	}
	if sum, ok := summaryOf(head); ok {
		run.Stop = sum.Stop
		run.Code = sum.Code
		run.Cause = s.options.Secrets.String(sum.Cause)
		run.Spent = &sum.Spent
		run.Waits = sum.Pending
		if w := outageIn(head); w != nil {
			run.Cause = w.String()
			run.Outage = &api.Outage{Provider: w.Provider, Since: w.Since, Next: w.Next, Tries: w.Tries}
		}
	}

	l := s.hub.find(place{head.Scope, head.ID})
	switch {
	case !l.works(), l.isSuspended():
		if head.Queued() {
			run.State = StateQueued
		}
	case l.queued.Load() && head.State == store.JournalOpen:
		run.State = StateQueued
	case !isOver(head):
		run.State = StateRunning
		run.Stop = "" // the summary is of the end before
		run.Code = ""
		run.Cause = ""
		run.Outage = nil
		if spent := l.spent.Load(); spent != nil {
			run.Spent = spent
		}
	}
	return run
}

// AnswerOf returns the final answer of a run.
func AnswerOf(x *journal.Export) string {
	if x.End != nil && x.End.Answer != nil {
		return x.End.Answer.Text
	}

	// The run did not answer, or ended before version 0.1.
	if x.End != nil && x.End.Stop == pawl.StopFinished {
		for _, call := range slices.Backward(x.Calls) {
			if call.Execution.Ends == pawl.StopFinished && IsOwn(call.Key) {
				return call.Execution.Result.Text()
			}
		}
	}
	for _, r := range slices.Backward(x.Replies) {
		if IsOwn(r.Key) {
			return r.Response.Message.Text()
		}
	}
	return ""
}

// OutputOf returns the answer of a run as JSON. Nil means that it has none.
func OutputOf(x *journal.Export) json.RawMessage {
	if x.End == nil || len(x.End.Output) == 0 {
		return nil
	}
	return x.End.Output
}

// Returned returns the calls of the last reply that a run has returned to its caller at a limit,
// and not executed. The caller may execute them.
func Returned(x *journal.Export) (calls []pawl.PendingCall) {
	if x.End == nil || x.End.Stop.Class() != pawl.ClassLimited {
		return nil
	}
	known := map[llm.Key]bool{}
	for i := range x.Calls {
		known[x.Calls[i].Key] = true
	}
	for i := range x.Pending {
		known[x.Pending[i].Key] = true
	}

	for _, r := range slices.Backward(x.Replies) {
		if !IsOwn(r.Key) {
			continue
		}
		for i, call := range r.Response.Message.Calls() {
			if key := CallKey(r.Key, i); !known[key] {
				calls = append(calls, pawl.PendingCall{Key: key, Call: call, Passive: true})
			}
		}
		break
	}
	return calls
}

// CallKey returns the key of call i of the reply to a request: run/1/0 for the first call of
// run/0/model.
func CallKey(request llm.Key, i int) llm.Key {
	run, n, _ := strings.Cut(strings.TrimSuffix(string(request), "/model"), "/")
	step, _ := strconv.Atoi(n) // a key of the run itself; otherwise no call is found
	return llm.Key(run + "/" + strconv.Itoa(step+1) + "/" + strconv.Itoa(i))
}

// IsOwn reports whether a key is of the run itself, such as run/3/model, and not of a nested run.
func IsOwn(key llm.Key) bool { return strings.Count(string(key), "/") == 2 }

// mostWaiting is the number of runs that WaitingUsers reads.
const mostWaiting = 20_000

// WaitingUsers returns the users of a tenant who have runs with pending calls.
func (s *Service) WaitingUsers(ctx context.Context, tenant string) ([]string, error) {
	users := map[string]bool{}
	n := 0
	for head, err := range s.options.Journal.UnendedRuns(ctx) {
		if err != nil {
			return nil, err
		}
		if head.State == store.JournalWaiting && head.Scope.Tenant == tenant {
			users[head.Scope.User] = true
		}
		n++
		if n == mostWaiting {
			break
		}
	}
	return slices.Sorted(maps.Keys(users)), nil
}
