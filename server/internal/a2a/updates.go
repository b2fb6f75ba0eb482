package a2a

// updates.go: the stream of a task.

import (
	"iter"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/server/internal/conversation"
	"github.com/pawl-go/pawl/server/internal/runs"
)

// yields is the consumer of a stream. It returns false when the stream ends.
type yields func(a2a.Event, error) bool

// updates yields a task and its updates until it has ended or asks something. begin returns its
// run. sent means that the client has just sent a message: the first event shows the task at its
// start.
func (c call) updates(sent bool, begin func() (*runs.Live, error)) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		release, err := c.AcquireStream()
		if err != nil {
			yield(nil, c.toError(err))
			return
		}
		defer release()

		l, err := begin()
		var t *a2a.Task
		if err == nil {
			t, err = c.current(l.ID(), nil)
		}
		if err != nil {
			yield(nil, c.toError(err))
			return
		}
		if sent {
			t.Status = a2a.TaskStatus{State: a2a.TaskStateSubmitted}
			t.Artifacts = nil
			t.History = t.History[:min(1, len(t.History))]
		}
		if yield(t, nil) {
			c.follow(l, t, yield)
		}
	}
}

// follow yields the updates of a task.
func (c call) follow(l *runs.Live, t *a2a.Task, yield yields) {
	step := 0 // of the last text
	for e, err := range l.Events(c.Request.Context(), runs.Reading{Hold: c.Hold()}) {
		var out a2a.Event
		switch {
		case err != nil:
			yield(nil, c.toError(err))
			return
		case e.Run != "run":
			continue
		case e.Kind == pawl.EventRunEnded:
			c.last(l, yield)
			return
		case e.Kind == pawl.EventNotice && e.Code == runs.NoticeOutage:
			id := conversation.Hash(20, l.ID(), string(e.Data))
			said := message(t, a2a.MessageRoleAgent, id, a2a.NewTextPart(e.Text))
			t.Status.State = a2a.TaskStateWorking
			out = a2a.NewStatusUpdateEvent(t, a2a.TaskStateWorking, said)
		case e.Kind == pawl.EventStepStarted && t.Status.State != a2a.TaskStateWorking:
			t.Status.State = a2a.TaskStateWorking
			out = a2a.NewStatusUpdateEvent(t, a2a.TaskStateWorking, nil)
		case e.Kind == pawl.EventTextRetracted && step == e.Step:
			step = 0
			out = retracted(t)
		case e.Kind == pawl.EventText && !l.Structured():
			part := a2a.NewArtifactUpdateEvent(t, answerID, a2a.NewTextPart(e.Text))
			part.Append = e.Step == step // the text of a step replaces the text of the step before
			step = e.Step
			out = part
		default:
			continue
		}
		if !yield(out, nil) {
			return
		}
	}
}

// retracted returns the update that empties the artifact of a reply that broke off. If the reply is
// asked for again, its text follows.
func retracted(t *a2a.Task) a2a.Event {
	void := a2a.NewArtifactUpdateEvent(t, answerID, a2a.NewTextPart(""))
	void.Append = false
	void.Metadata = map[string]any{"text_retracted": true}
	return void
}

// last yields the last updates of a stream: the whole answer, and the state.
func (c call) last(l *runs.Live, yield yields) {
	err := l.Wait(c.Request.Context())
	var t *a2a.Task
	if err == nil {
		t, err = c.current(l.ID(), nil)
	}
	if err != nil {
		yield(nil, c.toError(err))
		return
	}
	for _, artifact := range t.Artifacts {
		last := &a2a.TaskArtifactUpdateEvent{
			TaskID:    t.ID,
			ContextID: t.ContextID,
			Artifact:  artifact,
			LastChunk: true,
		}
		if !yield(last, nil) {
			return
		}
	}
	yield(&a2a.TaskStatusUpdateEvent{TaskID: t.ID, ContextID: t.ContextID, Status: t.Status}, nil)
}
