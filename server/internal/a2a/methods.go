package a2a

// methods.go: the methods of the protocol.

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/store"
)

// tasks handles the methods of the protocol. The context of a request has its call. The SDK's own
// handler, without an agent, refuses the methods for push notifications and the extended card.
type tasks struct{ a2asrv.RequestHandler }

// SendMessage starts or continues a task and waits for its end or its question.
func (tasks) SendMessage(ctx context.Context, r *a2a.SendMessageRequest) (a2a.SendMessageResult, error) {
	c := callOf(ctx)
	o := cmp.Or(r.Config, &a2a.SendMessageConfig{})
	l, err := c.send(r)
	if err == nil && !o.ReturnImmediately {
		err = l.Await(c.Request.Context(), c.Hold())
		if runs.IsOutage(err) {
			err = nil // the task is working, and its message says for what it waits
		}
	}
	if err != nil {
		return nil, c.toError(err)
	}
	t, err := c.current(l.ID(), o.HistoryLength)
	return t, c.toError(err)
}

// SendStreamingMessage starts or continues a task and yields its updates.
func (tasks) SendStreamingMessage(ctx context.Context, r *a2a.SendMessageRequest) iter.Seq2[a2a.Event, error] {
	c := callOf(ctx)
	return c.updates(true, func() (*runs.Live, error) { return c.send(r) })
}

// SubscribeToTask yields the updates of a task that has not ended.
func (tasks) SubscribeToTask(ctx context.Context, r *a2a.SubscribeToTaskRequest) iter.Seq2[a2a.Event, error] {
	c := callOf(ctx)
	return c.updates(false, func() (*runs.Live, error) {
		if err := c.check(api.ScopeRead); err != nil {
			return nil, err
		}
		ended := a2a.NewError(a2a.ErrUnsupportedOperation, "the task has ended; get it instead")
		h, err := c.unended(r.ID, ended)
		if err != nil {
			return nil, err
		}
		return c.Runs.Attach(c.Context(), c.Caller(), h.ID)
	})
}

// GetTask returns a task.
func (tasks) GetTask(ctx context.Context, r *a2a.GetTaskRequest) (*a2a.Task, error) {
	c := callOf(ctx)
	if err := c.check(api.ScopeRead); err != nil {
		return nil, err
	}
	t, err := c.current(string(r.ID), r.HistoryLength)
	return t, c.toError(err)
}

// ListTasks returns the tasks of the agent that the client may see, the last change first.
func (tasks) ListTasks(ctx context.Context, r *a2a.ListTasksRequest) (*a2a.ListTasksResponse, error) {
	c := callOf(ctx)
	if err := c.check(api.ScopeRead); err != nil {
		return nil, err
	}
	all, err := c.list(r)
	if err != nil {
		return nil, c.toError(err)
	}

	out := &a2a.ListTasksResponse{
		Tasks:     []*a2a.Task{},
		TotalSize: len(all),
		PageSize:  min(cmp.Or(max(r.PageSize, 0), mostPage/2), mostPage),
	}
	all = slices.DeleteFunc(all, func(h store.JournalRun) bool { return pageToken(h) <= r.PageToken })
	if n := out.PageSize; len(all) > n {
		all = all[:n]
		out.NextPageToken = pageToken(all[n-1])
	}
	for _, h := range all {
		t, err := c.task(h, cmp.Or(r.HistoryLength, new(int)))
		if err != nil {
			return nil, c.toError(err)
		}
		if !r.IncludeArtifacts {
			t.Artifacts = nil
		}
		out.Tasks = append(out.Tasks, t)
	}
	return out, nil
}

// list returns the runs of the tasks that a request asks for, the last change first.
func (c call) list(r *a2a.ListTasksRequest) ([]store.JournalRun, error) {
	prefix := idPrefix
	if r.ContextID != "" {
		var err error
		_, prefix, err = c.Identify("a2a", "", r.ContextID)
		if err != nil {
			return nil, err
		}
	}
	all, err := c.Runs.HeadsWith(c.Context(), c.Caller(), prefix, "")
	if err != nil {
		return nil, err
	}

	all = slices.DeleteFunc(all, func(h store.JournalRun) bool {
		switch {
		case !c.isOurs(h):
			return true
		case r.Status != "" && r.Status != stateOf(c.Runs.Describe(h)):
			return true
		}
		return r.StatusTimestampAfter != nil && !h.Updated.After(*r.StatusTimestampAfter)
	})
	slices.SortFunc(all, func(a, b store.JournalRun) int { return cmp.Compare(pageToken(a), pageToken(b)) })
	return all, nil
}

// pageToken returns the place of a run in a list, as a text that sorts: the last change comes
// first.
func pageToken(h store.JournalRun) string {
	return fmt.Sprintf("%020d.%s", math.MaxInt64-h.Updated.UnixNano(), h.ID)
}

// CancelTask cancels a task that has not ended.
func (tasks) CancelTask(ctx context.Context, r *a2a.CancelTaskRequest) (*a2a.Task, error) {
	c := callOf(ctx)
	if err := c.check(api.ScopeRun); err != nil {
		return nil, err
	}
	h, err := c.unended(r.ID, a2a.NewError(a2a.ErrTaskNotCancelable, "the task has ended"))
	if err != nil {
		return nil, c.toError(err)
	}
	l, err := c.Runs.Cancel(c.Context(), c.Caller(), h.ID)
	if err != nil {
		return nil, c.toError(err)
	}
	runs.Settle(c.Request.Context(), l)
	t, err := c.current(h.ID, nil)
	return t, c.toError(err)
}
