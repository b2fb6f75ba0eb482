package temporal

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/pawl-go/pawl/durable"
)

// CheckLiveness returns the open runs of the namespace that break R9: runs whose next step no
// worker has taken for the time of Heartbeat, runs whose next step fails each time, such as a run
// that does not fit the code of its workers, and runs that wait and have no open question, or whose
// questions no worker can show.
func (e *Engine) CheckLiveness(ctx context.Context) ([]durable.StuckRun, error) {
	runs, err := e.Runs(ctx, 0)
	if err != nil {
		return nil, err
	}
	out := []durable.StuckRun{}
	silent := map[string]bool{}
	for _, r := range runs {
		if r.State != "open" {
			continue
		}
		why, since, err := e.stuck(ctx, r, silent)
		var gone *serviceerror.NotFound
		if err != nil && !errors.As(err, &gone) {
			return nil, e.about(r.ID, err)
		}
		if why != "" {
			out = append(out, durable.StuckRun{Run: r.ID, State: r.State, Why: why, Since: since})
		}
	}
	return out, nil
}

// stuck returns why an open run breaks R9, and since when. Empty means that it does not. silent has
// the queues whose workers do not answer.
func (e *Engine) stuck(ctx context.Context, r Listed, silent map[string]bool) (why string, since time.Time, err error) {
	d, err := e.Client.DescribeWorkflowExecution(ctx, r.ID, "")
	if err != nil {
		return "", since, err
	}
	why, since = e.notTaken(d)
	if why != "" {
		return why, since, nil
	}

	// A run with a step under way does not wait.
	steps := len(d.GetPendingActivities()) + len(d.GetPendingChildren())
	if steps > 0 || d.GetPendingWorkflowTask() != nil {
		return "", since, nil
	}

	queue := queueOf(d)
	state := new(State)
	if !silent[queue] {
		ask, cancel := context.WithTimeout(ctx, answersWithin)
		defer cancel()
		err = e.query(ask, r.ID, queryState, state)
		silent[queue] = err != nil && !errors.Is(err, ErrUnknownRun)
	}
	switch {
	case silent[queue]:
		return "it waits, and no worker of " + queue + " shows for what", r.Began, nil
	case state.Waits && len(state.Pending) == 0:
		return "it waits for an answer, and no question is open", r.Began, nil
	}
	return "", since, nil
}

// notTaken returns why no worker executes the next step of a run, and since when. Empty means that
// one does, or that there is no step.
func (e *Engine) notTaken(d *workflowservice.DescribeWorkflowExecutionResponse) (why string, since time.Time) {
	late := func(scheduled time.Time) bool { return time.Since(scheduled) > e.heartbeat() }
	queue := queueOf(d)
	if t := d.GetPendingWorkflowTask(); t != nil {
		since = t.GetOriginalScheduledTime().AsTime()
		waits := t.GetState() == enumspb.PENDING_WORKFLOW_TASK_STATE_SCHEDULED
		switch {
		case t.GetAttempt() > 2:
			failed := t.GetAttempt() - 1
			what := fmt.Sprintf("its next step has failed %d times", failed)
			return what + ": see the log of the workers of " + queue, since
		case waits && late(since):
			return "no worker of " + queue + " takes its next step", since
		}
	}

	for _, a := range d.GetPendingActivities() {
		since = a.GetScheduledTime().AsTime()
		waits := a.GetState() == enumspb.PENDING_ACTIVITY_STATE_SCHEDULED
		if waits && late(since) {
			return "no worker of " + queue + " takes its next step", since
		}
	}
	return "", since
}

// queueOf returns the task queue of a run.
func queueOf(d *workflowservice.DescribeWorkflowExecutionResponse) string {
	return d.GetExecutionConfig().GetTaskQueue().GetName()
}

// answersWithin is the time in which a worker must report the state of a run.
const answersWithin = 3 * time.Second
