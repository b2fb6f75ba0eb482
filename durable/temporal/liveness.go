package temporal

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"github.com/pawl-go/pawl/durable"
)

// CheckLiveness returns the open runs of the namespace that break R9, as the cluster sees them:
// runs whose next step no worker has taken for the time of Heartbeat, and runs whose next step
// fails each time, such as a run that does not fit the code of its workers. It needs no worker.
// Whether a waiting run has an open question is known to a worker only: see State.
func (e *Engine) CheckLiveness(ctx context.Context) ([]durable.StuckRun, error) {
	runs, err := e.Runs(ctx, 0)
	if err != nil {
		return nil, err
	}
	out := []durable.StuckRun{}
	for _, r := range runs {
		if r.State != "open" {
			continue
		}
		why, since, err := e.stuck(ctx, r.ID)
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

// stuck returns why an open run breaks R9, and since when. Empty means that it does not.
func (e *Engine) stuck(ctx context.Context, id string) (why string, since time.Time, err error) {
	d, err := e.Client.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return "", since, err
	}
	queue := d.GetExecutionConfig().GetTaskQueue().GetName()
	if t := d.GetPendingWorkflowTask(); t != nil {
		since = t.GetOriginalScheduledTime().AsTime()
		switch {
		case t.GetAttempt() > 2:
			return fmt.Sprintf("its next step has failed %d times: see the log of the workers of %s", t.GetAttempt()-1, queue), since, nil
		case t.GetState() == enumspb.PENDING_WORKFLOW_TASK_STATE_SCHEDULED && time.Since(since) > e.heartbeat():
			return "no worker of " + queue + " takes its next step", since, nil
		}
	}
	for _, a := range d.GetPendingActivities() {
		since = a.GetScheduledTime().AsTime()
		if a.GetState() == enumspb.PENDING_ACTIVITY_STATE_SCHEDULED && time.Since(since) > e.heartbeat() {
			return "no worker of " + queue + " takes its next step", since, nil
		}
	}
	return "", since, nil
}
