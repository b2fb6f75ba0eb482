package a2a

import (
	"cmp"
	"encoding/json"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/server/uistream"
	"github.com/pawl-go/pawl/store"
)

// state returns the state of a run as a task.
func state(run api.Run) a2a.TaskState {
	over := run.State == store.JournalOver
	switch {
	case run.State == runs.Queued:
		return a2a.TaskStateSubmitted
	case run.State == store.JournalWaiting:
		return a2a.TaskStateInputRequired
	case over && (run.Stop == pawl.StopAnswer || run.Stop == pawl.StopFinished):
		return a2a.TaskStateCompleted
	case over && run.Stop == pawl.StopCancelled:
		return a2a.TaskStateCanceled
	case over || run.State == store.JournalFailed:
		return a2a.TaskStateFailed
	}
	return a2a.TaskStateWorking
}

// task returns a run as a task with at most history messages; nil means all.
func (c a2aCall) task(h store.JournalRun, history *int) (*a2a.Task, error) {
	x, d, err := c.StoredRun(h.ID)
	if err != nil {
		return nil, err
	}
	run := c.S.ToRun(h)
	t := &a2a.Task{ID: a2a.TaskID(h.ID), ContextID: h.ID,
		Status: a2a.TaskStatus{State: state(run), Timestamp: &h.Updated}}
	if d != nil {
		t.ContextID = d.Thread
	}
	say := func(role a2a.MessageRole, id string, parts ...*a2a.Part) *a2a.Message {
		return &a2a.Message{ID: id, Role: role, TaskID: t.ID, ContextID: t.ContextID, Parts: parts}
	}
	if n := len(x.Messages); d != nil && n > 0 {
		text := a2a.NewTextPart(c.S.O.Secrets.String(x.Messages[n-1].Text()))
		t.History = append(t.History, say(a2a.MessageRoleUser, d.Message, text))
	}
	switch t.Status.State {
	case a2a.TaskStateInputRequired:
		_, open, err := c.Waiting(h.ID)
		if err == nil {
			open, err = c.Shown(h.ID, open)
		}
		if err != nil {
			return nil, err
		}
		text := ""
		for _, p := range open {
			text += p.Call.Name + " " + string(p.Call.Args) + " waits for an approval or a result\n"
		}
		t.Status.Message = say(a2a.MessageRoleAgent, runs.Short(20, h.ID, h.Updated.String()), a2a.NewTextPart(text),
			a2a.NewDataPart(map[string]any{"pawl": open}))
	case a2a.TaskStateCompleted:
		part := a2a.NewTextPart(c.S.O.Secrets.String(runs.AnswerOf(x)))
		if x.End != nil && len(x.End.Output) > 0 {
			part = a2a.NewDataPart(json.RawMessage(c.S.O.Secrets.JSON(x.End.Output)))
		}
		t.Artifacts = []*a2a.Artifact{{ID: a2aAnswer, Parts: a2a.ContentParts{part}}}
		t.History = append(t.History, say(a2a.MessageRoleAgent, runs.Short(20, h.ID, "answer"), part))
	case a2a.TaskStateFailed, a2a.TaskStateCanceled:
		cause := a2a.NewTextPart(cmp.Or(run.Cause, string(run.Stop)))
		t.Status.Message = say(a2a.MessageRoleAgent, runs.Short(20, h.ID, "end"), cause)
	}
	if history != nil {
		t.History = t.History[len(t.History)-min(max(*history, 0), len(t.History)):]
	}
	return t, nil
}

// input converts the parts of a message, and the answers in them.
func (c a2aCall) input(m *a2a.Message) (msg llm.Message, answers []llm.Decision, err error) {
	msg.Role = llm.RoleUser
	for _, p := range m.Parts {
		switch v := p.Content.(type) {
		case a2a.Text:
			msg.Parts = append(msg.Parts, llm.Text{Text: string(v)})
		case a2a.Raw:
			msg.Parts = append(msg.Parts, llm.Media{MIME: p.MediaType, Data: v})
		case a2a.URL:
			media, err := uistream.Media(string(v), p.MediaType)
			if err != nil {
				return msg, nil, runs.BadRequest(err.Error(), "")
			}
			msg.Parts = append(msg.Parts, media)
		case a2a.Data:
			b, err := json.Marshal(v.Value)
			var in struct {
				Pawl []struct {
					api.Verdict
					Approve bool
					Text    *string // the result of a passive call
				}
			}
			if err != nil || json.Unmarshal(b, &in) != nil || in.Pawl == nil {
				msg.Parts = append(msg.Parts, llm.Text{Text: string(b)})
			}
			for _, a := range in.Pawl {
				d := llm.Decision{Key: a.Key, Digest: a.Digest, Approve: a.Approve, Reason: a.Reason, Args: a.Args}
				if a.Text != nil {
					res := llm.TextResult(*a.Text)
					d.Result = &res
				}
				answers = append(answers, d)
			}
		}
	}
	if len(msg.Parts) == 0 && len(answers) == 0 {
		err = runs.BadRequest("the message has no parts", "a text part is the usual one")
	}
	return msg, answers, err
}
