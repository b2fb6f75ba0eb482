package temporal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/llm"
)

// The run of a nested agent is a child workflow: an ordinary run with a history of its own, which
// continues in a new one when it is long. Its ID consists of the outermost run's ID and its place
// there. Its questions reach the outermost run as signals, and the answers return in the same way,
// so that callers address a single workflow.

// place is the position of a nested run. It is part of its input.
type place struct {
	Run    string      `json:"run"`    // the ID of the outermost run
	Parent string      `json:"parent"` // the workflow around it
	Path   string      `json:"path"`   // of the agent: see node
	Branch pawl.Branch `json:"branch"`
}

// ending is the outcome of a nested run with its steps, for the export of the outermost run.
type ending struct {
	Outcome
	Around json.RawMessage `json:"around,omitzero"` // Branch.Around at the end
	Was    *journal.Export `json:"was"`
}

// report is the state of a nested run, for the run around it.
type report struct {
	ID      string             `json:"id"`
	Waits   bool               `json:"waits,omitzero"`
	Pending []pawl.PendingCall `json:"pending,omitzero"`
}

// branch is a nested run, as the run around it sees it.
type branch struct {
	report
	child workflow.ChildWorkflowFuture
}

// startBranch starts a child workflow, and waits until it has ended.
func (f *flow) startBranch(ctx context.Context, a *pawl.Agent, b *pawl.Branch) (*pawl.Result, error) {
	n := f.tree.byAgent[a]
	if n == nil {
		return nil, noNode(a)
	}

	// The child gets a signal to end, and ends itself.
	wctx, _ := workflow.NewDisconnectedContext(within(ctx))
	id := f.run + "/" + string(b.Key)
	wctx = workflow.WithChildOptions(wctx,
		workflow.ChildWorkflowOptions{WorkflowID: id, StaticSummary: summary(f.defs[n.path].Name)})
	in := input{
		State:  f.in.State,
		Agent:  f.in.Agent,
		Agents: f.defs,
		Events: f.in.Events,
		Place:  &place{f.run, f.id, n.path, *b},
	}
	at := &branch{report{ID: id}, workflow.ExecuteChildWorkflow(wctx, branchName, in)}
	end, err := f.follow(ctx, wctx, at)
	if err != nil {
		return nil, worded(err)
	}

	f.record.Replies = append(f.record.Replies, end.Was.Replies...)
	f.record.Calls = append(f.record.Calls, end.Was.Calls...)
	b.Around = nil
	if len(end.Around) > 0 {
		if err := json.Unmarshal(end.Around, &b.Around); err != nil {
			return nil, fmt.Errorf("the limits around the run %s: %w", b.Key, err)
		}
	}
	if end.Error != "" {
		err = errors.New(end.Error)
	}
	return end.Result, err
}

// follow waits for the end of a nested run, which is one of f.branches until then. If ctx ends, it
// cancels the run.
func (f *flow) follow(ctx context.Context, wctx workflow.Context, at *branch) (end ending, err error) {
	f.branches = append(f.branches, at)
	_ = workflow.Await(wctx, func() bool { return at.child.IsReady() || ctx.Err() != nil })
	if !at.child.IsReady() {
		// It may have ended in the meantime.
		_ = at.child.SignalChildWorkflow(wctx, signalCancel, causeName(context.Cause(ctx))).Get(wctx, nil)
	}

	err = at.child.Get(wctx, &end)
	f.branches = slices.DeleteFunc(f.branches, func(o *branch) bool { return o == at })
	f.asked++
	return end, err
}

// The causes that end runs, by their names in signals.
const causeTime = "time"

func causeName(cause error) string {
	if cause == pawl.ErrTime {
		return causeTime
	}
	return ""
}

func causeOf(name string) error {
	if name == causeTime {
		return pawl.ErrTime
	}
	return pawl.ErrCancelled
}

// branch is the workflow of a nested run.
func (w *Worker) branch(wctx workflow.Context, in input) (*ending, error) {
	f, out, err := w.execute(wctx, in)
	if err != nil {
		return nil, err
	}
	ended := &ending{Was: f.export()}
	if around := f.in.Place.Branch.Around; len(around) > 0 {
		ended.Around, err = json.Marshal(around)
		if err != nil {
			return nil, err
		}
	}
	last := *out.Result
	// The answer; the ending has the other messages.
	last.Messages = last.Messages[max(0, len(last.Messages)-1):]
	ended.Outcome = Outcome{Result: &last, Error: out.Error}
	return ended, nil
}

// reportQuestions sends the questions of this run to the workflow around it, at each change.
func (f *flow) reportQuestions(g workflow.Context) {
	sent := 0
	waits := false
	for {
		if workflow.Await(g, func() bool { return f.asked != sent || f.waits() != waits }) != nil {
			return
		}
		sent = f.asked
		waits = f.waits()
		r := report{f.id, waits, f.pending()}
		// One after another: they must keep their order.
		_ = workflow.SignalExternalWorkflow(g, f.in.Place.Parent, "", signalReport, r).Get(g, nil)
	}
}

// listen receives the reports of nested runs.
func (f *flow) listen(g workflow.Context) {
	ch := workflow.GetSignalChannel(g, signalReport)
	for {
		var r report
		if !ch.Receive(g, &r) {
			return
		}
		for _, b := range f.branches {
			if b.ID == r.ID {
				b.report = r
				f.asked++
			}
		}
	}
}

// receiveAnswers receives answers that the run around this one has checked.
func (f *flow) receiveAnswers(g workflow.Context) {
	ch := workflow.GetSignalChannel(g, signalDecide)
	for {
		var ds []llm.Decision
		if !ch.Receive(g, &ds) {
			return
		}
		f.decide(g, ds)
	}
}

// waits reports whether the run only waits for answers.
func (f *flow) waits() bool {
	busy := f.busy
	switch {
	case f.in.State <= 3:
	case f.calls >= atOnce: // the other composing activities wait for room
		busy -= len(f.live)
	default: // an activity with calls in progress waits for them
		busy -= f.held
	}

	questions := len(f.open) + len(f.branches)
	if f.over != nil || busy > 0 || questions == 0 {
		return false
	}
	for _, b := range f.branches {
		if !b.Waits || slices.ContainsFunc(b.Pending, f.answered) {
			return false
		}
	}
	return true
}

// answered reports whether the answer to a question of a nested run is on its way. The nested run
// does not use an approval that has expired, and asks again.
func (f *flow) answered(w pawl.PendingCall) bool {
	d, ok := f.said[w.Key]
	return ok && d.Digest == w.Digest && !d.Expired(w.ValidFor, workflow.Now(f.root))
}

// pending returns the open questions in the order of their keys.
func (f *flow) pending() (all []pawl.PendingCall) {
	for _, q := range f.open {
		all = append(all, q.waiting)
	}
	for _, b := range f.branches {
		for _, w := range b.Pending {
			if !f.answered(w) {
				all = append(all, w)
			}
		}
	}
	slices.SortFunc(all, func(a, b pawl.PendingCall) int { return journal.CompareKeys(a.Key, b.Key) })
	return all
}

// exported is the result of the export query. Runs names the workflows whose part is missing in it.
type exported struct {
	*journal.Export
	Runs []string `json:"runs,omitzero"`
}

func (f *flow) exported() *exported {
	x := &exported{Export: f.export()}
	for _, b := range f.branches {
		x.Runs = append(x.Runs, b.ID)
	}
	return x
}
