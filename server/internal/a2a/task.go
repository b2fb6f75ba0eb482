package a2a

// task.go: runs as tasks of the protocol.

import (
	"cmp"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/internal/foreign"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/conversation"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/store"
)

// stateOf returns the state of a run as a task.
func stateOf(run api.Run) a2a.TaskState {
	switch run.State {
	case runs.StateQueued:
		return a2a.TaskStateSubmitted
	case store.JournalWaiting:
		return a2a.TaskStateInputRequired
	case store.JournalFailed:
		return a2a.TaskStateFailed
	case store.JournalOver:
		return endOf(run.Stop)
	}
	return a2a.TaskStateWorking
}

// endOf returns the state of a task that has stopped for a reason.
func endOf(stop pawl.StopReason) a2a.TaskState {
	switch stop.Class() {
	case pawl.ClassAnswered:
		return a2a.TaskStateCompleted
	case pawl.ClassCancelled:
		return a2a.TaskStateCanceled
	}
	return a2a.TaskStateFailed
}

// current returns the task of a run with its present state.
func (c call) current(id string, history *int) (*a2a.Task, error) {
	h, err := c.head(a2a.TaskID(id))
	if err != nil {
		return nil, err
	}
	return c.task(h, history)
}

// task returns a run as a task with at most history messages; nil means all.
func (c call) task(h store.JournalRun, history *int) (*a2a.Task, error) {
	x, extras, err := c.Runs.Stored(c.Context(), c.Caller(), h.ID)
	if err != nil {
		return nil, err
	}
	run := c.Runs.Describe(h)
	t := &a2a.Task{
		ID:        a2a.TaskID(h.ID),
		ContextID: h.ID,
		Status:    a2a.TaskStatus{State: stateOf(run), Timestamp: &h.Updated},
	}
	if extras != nil {
		t.ContextID = extras.Thread
	}
	if n := len(x.Messages); extras != nil && n > 0 {
		text := a2a.NewTextPart(c.Secrets.String(x.Messages[n-1].Text()))
		t.History = append(t.History, message(t, a2a.MessageRoleUser, extras.Message, text))
	}

	switch t.Status.State {
	case a2a.TaskStateInputRequired:
		parts, err := c.questions(h.ID)
		if err != nil {
			return nil, err
		}
		id := conversation.Hash(20, h.ID, h.Updated.String())
		t.Status.Message = message(t, a2a.MessageRoleAgent, id, parts...)

	case a2a.TaskStateWorking:
		if run.Outage != nil {
			id := conversation.Hash(20, h.ID, run.Outage.Since.String(), strconv.Itoa(run.Outage.Tries))
			t.Status.Message = message(t, a2a.MessageRoleAgent, id, a2a.NewTextPart(run.Cause))
		}

	case a2a.TaskStateCompleted:
		c.addAnswer(t, runs.AnswerOf(x), runs.OutputOf(x))

	case a2a.TaskStateFailed, a2a.TaskStateCanceled:
		// A limit can leave an answer, or the calls that the caller may execute.
		if x.End != nil && (x.End.Answer != nil || x.End.Stop.Class() == pawl.ClassLimited) {
			c.addAnswer(t, runs.AnswerOf(x), runs.OutputOf(x))
		}
		parts := []*a2a.Part{a2a.NewTextPart(cmp.Or(run.Cause, string(run.Stop)))}
		whole, err := c.Runs.State(c.Context(), c.Caller(), h.ID)
		if err != nil {
			return nil, err
		}
		if len(whole.Calls) > 0 {
			parts = append(parts, a2a.NewDataPart(map[string]any{"calls": whole.Calls}))
		}
		t.Status.Message = message(t, a2a.MessageRoleAgent, conversation.Hash(20, h.ID, "end"), parts...)
		c.addUnfit(t.Status.Message, x)
	}

	if history != nil {
		most := min(max(*history, 0), len(t.History))
		t.History = t.History[len(t.History)-most:]
	}
	return t, nil
}

// addAnswer adds the answer of a run to its task, as artifact and as message. A nil output means
// that the answer is text.
func (c call) addAnswer(t *a2a.Task, text string, output json.RawMessage) {
	part := a2a.NewTextPart(c.Secrets.String(text))
	if output != nil {
		part = a2a.NewDataPart(json.RawMessage(c.Secrets.JSON(output)))
	}
	t.Artifacts = []*a2a.Artifact{{ID: answerID, Parts: a2a.ContentParts{part}}}
	id := conversation.Hash(20, string(t.ID), "answer")
	t.History = append(t.History, message(t, a2a.MessageRoleAgent, id, part))
}

// addUnfit adds why the last answer of a run does not fit its schema, for clients in Go.
func (c call) addUnfit(m *a2a.Message, x *journal.Export) {
	if x.End == nil || len(x.End.Unfit) == 0 {
		return
	}
	res := pawl.Result{Stop: x.End.Stop, Unfit: x.End.Unfit}
	for _, r := range x.Replies {
		if runs.IsOwn(r.Key) {
			res.Messages = append(res.Messages, r.Response.Message)
		}
	}
	unfit, ok := errors.AsType[*pawl.OutputError](res.Err())
	if !ok {
		return
	}

	u := foreign.Unfit{Answer: c.Secrets.String(unfit.Text)}
	for _, fault := range unfit.Faults {
		u.Faults = append(u.Faults, c.Secrets.String(fault))
	}
	m.SetMeta(foreign.UnfitKey, u)
}

// message returns a message of a task.
func message(t *a2a.Task, role a2a.MessageRole, id string, parts ...*a2a.Part) *a2a.Message {
	return &a2a.Message{
		ID:        id,
		Role:      role,
		TaskID:    t.ID,
		ContextID: t.ContextID,
		Parts:     parts,
	}
}

// questions returns the pending calls of a run as text and as data.
func (c call) questions(id string) ([]*a2a.Part, error) {
	_, open, err := c.Runs.Pending(c.Context(), c.Caller(), id)
	if err == nil {
		open, err = c.Runs.Show(c.Context(), c.Caller(), id, open)
	}
	if err != nil {
		return nil, err
	}
	text := ""
	for _, p := range open {
		text += p.Call.Name + " " + string(p.Call.Args) + " waits for an approval or a result\n"
	}
	return []*a2a.Part{a2a.NewTextPart(text), a2a.NewDataPart(map[string]any{"pawl": open})}, nil
}
