package temporal

// outside.go: what any process may ask of a run and send to it.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/temporal"

	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/llm"
)

// State returns the state of a run. It needs a worker, also for a run that has ended.
func (e *Engine) State(ctx context.Context, id string) (*State, error) {
	s := new(State)
	if err := e.query(ctx, id, queryState, s); err != nil {
		return nil, err
	}
	return s, nil
}

// query asks a worker about a run, again if all of them are busy or being replaced.
func (e *Engine) query(ctx context.Context, id, kind string, into any) error {
	for n := 1; ; n++ {
		v, err := e.Client.QueryWorkflow(ctx, id, "", kind)
		var late *serviceerror.DeadlineExceeded
		switch {
		case err == nil:
			return v.Get(into)
		case n == 3 || ctx.Err() != nil || !errors.As(err, &late):
			return e.about(id, err)
		}
	}
}

// Export returns a run in the same form as over a journal. It needs a worker.
func (e *Engine) Export(ctx context.Context, id string) (*journal.Export, error) {
	x := new(exported)
	if err := e.query(ctx, id, queryExport, x); err != nil {
		return nil, err
	}
	for _, run := range x.Runs { // active nested runs
		in, err := e.Export(ctx, run)
		if errors.Is(err, ErrUnknownRun) {
			continue // it has not started
		} else if err != nil {
			return nil, err
		}
		x.Replies = append(x.Replies, in.Replies...)
		x.Calls = append(x.Calls, in.Calls...)
	}
	x.Sort()
	return x.Export, nil
}

// decideTries is the number of attempts with an answer that the workflow does not expect yet: the
// answer may arrive before the event that causes the question.
const decideTries = 6

// Decide answers open calls, from any process. An equal answer may be given twice. The error is
// a *journal.AnswerError if the run does not take an answer. Except for journal.AnswerMisfit,
// ErrNotAsked is in its tree.
func (e *Engine) Decide(ctx context.Context, id string, ds ...llm.Decision) error {
	err := e.update(ctx, id, updateDecide, ds)
	if !errors.Is(err, ErrUnknownRun) || len(ds) == 0 {
		return err
	}

	// The server has no updates of a run that has ended.
	_, unknown := e.Client.DescribeWorkflowExecution(ctx, id, "")
	if unknown != nil {
		return err
	}
	bad := &journal.AnswerError{
		Key:  ds[0].Key,
		Code: journal.AnswerNotOpen,
		Text: "the call does not wait for an answer; the run has ended",
	}
	return fmt.Errorf("run %s: %w", id, notAsked{bad})
}

// Steer sends messages of the user to an active run, as pawl.Steering does.
func (e *Engine) Steer(ctx context.Context, id string, msgs ...llm.Message) error {
	return e.update(ctx, id, updateSteer, msgs)
}

// updatesAtOnce is the number of answers and messages of a process that are in flight. The server
// accepts 10 updates of a run, of which a composing tool has atOnce; with more, it may not process
// any of them for a minute.
const updatesAtOnce = 4

// update waits until the run has accepted v.
func (e *Engine) update(ctx context.Context, id, name string, v any) error {
	e.once.Do(func() { e.updates = make(chan struct{}, updatesAtOnce) })
	o := client.UpdateWorkflowOptions{
		WorkflowID:   id,
		UpdateName:   name,
		Args:         []any{v},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	}

	var err error
	for try := range decideTries {
		err = e.about(id, e.updateOnce(ctx, o))
		if name != updateDecide || !mayBeAsked(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond << try):
		}
	}
	return err
}

// mayBeAsked reports whether the error of an answer is that its question is not open, and the
// question may open soon.
func mayBeAsked(err error) bool {
	var bad *journal.AnswerError
	taken := errors.As(err, &bad) && bad.Code == journal.AnswerTaken
	return errors.Is(err, ErrNotAsked) && !taken
}

func (e *Engine) updateOnce(ctx context.Context, o client.UpdateWorkflowOptions) error {
	select {
	case e.updates <- struct{}{}:
		defer func() { <-e.updates }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	h, err := e.Client.UpdateWorkflow(ctx, o)
	if err == nil {
		err = h.Get(ctx, nil)
	}
	return err
}

// Answer sets the result of a passive call by signal. It does not report whether the call was
// pending; Decide does.
func (e *Engine) Answer(ctx context.Context, id string, key llm.Key, by string, res llm.ToolResult) error {
	return e.about(id, e.Client.SignalWorkflow(ctx, id, "", signalResult, llm.Decision{Key: key, By: by, Result: &res}))
}

// Cancel cancels a run: its open calls get results that say so, and its conversation can be
// continued.
func (e *Engine) Cancel(ctx context.Context, id string) error {
	return e.about(id, e.Client.SignalWorkflow(ctx, id, "", signalCancel, nil))
}

// about adds the run to err.
func (e *Engine) about(id string, err error) error {
	var missing *serviceerror.NotFound
	var app *sdk.ApplicationError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &missing):
		return fmt.Errorf("run %s: %w", id, ErrUnknownRun)
	case errors.As(err, &app) && app.Type() == answerRefused:
		bad := new(journal.AnswerError)
		if err := app.Details(bad); err != nil {
			return fmt.Errorf("run %s: %s: %w", id, app.Message(), err)
		}
		return fmt.Errorf("run %s: %w", id, notAsked{bad})
	case errors.As(err, &app):
		return fmt.Errorf("run %s: %s", id, app.Message())
	}
	return fmt.Errorf("run %s: %w", id, err)
}

// notAsked is a *journal.AnswerError with ErrNotAsked in its tree.
type notAsked struct{ *journal.AnswerError }

func (e notAsked) Unwrap() error { return e.AnswerError }

func (e notAsked) Is(target error) bool {
	return target == ErrNotAsked && e.Code != journal.AnswerMisfit
}
