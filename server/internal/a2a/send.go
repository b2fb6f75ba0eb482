package a2a

// send.go: messages that start a task or answer its questions.

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/conversation"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/server/uistream"
	"github.com/pawl-go/pawl/store"
)

// send starts a task or answers its questions.
func (c call) send(r *a2a.SendMessageRequest) (*runs.Live, error) {
	if err := c.check(api.ScopeRun, api.ScopeDecide); err != nil {
		return nil, err
	}
	m := r.Message
	switch {
	case m == nil || m.ID == "":
		return nil, runs.BadRequest("message or messageId is missing", "each message has an id of its own")
	case len(m.ID) > mostIDSize || len(m.ContextID) > mostIDSize:
		return nil, runs.BadRequest("messageId or contextId is too long",
			fmt.Sprintf("at most %d bytes are allowed", mostIDSize))
	case r.Config != nil && r.Config.PushConfig != nil:
		return nil, a2a.ErrPushNotificationNotSupported
	}
	msg, answers, err := c.input(m)
	if err != nil {
		return nil, err
	}

	if m.TaskID != "" {
		return c.answerTask(m.TaskID, msg, answers)
	}
	if len(msg.Parts) == 0 {
		return nil, runs.BadRequest("the message answers a question, and names no task",
			"taskId is the task that asked")
	}
	return c.startTask(m, msg)
}

// startTask starts the task of a message. It follows the newest task of the context that has ended.
func (c call) startTask(m *a2a.Message, msg llm.Message) (*runs.Live, error) {
	in := &conversation.Request{Key: m.ID}
	in.Messages = []llm.Message{msg}
	in.Extras.Message = m.ID
	in.Extras.Thread = cmp.Or(m.ContextID, "ctx_"+conversation.Hash(20, m.ID))
	said, _ := json.Marshal(msg) // it was decoded from JSON
	sum := sha256.Sum256(said)
	in.Extras.Print = sum[:]

	var err error
	in.Agent, in.Prefix, err = c.Identify("a2a", "", in.Extras.Thread)
	if err != nil {
		return nil, err
	}
	before, err := c.Newest(in.Prefix, store.JournalOver)
	if err != nil {
		return nil, err
	}
	if before != nil {
		in.Extras.Before = before.ID
	}
	return c.Start(in)
}

// answerTask passes the answers of a message to the questions of a task. Text alone is no approval:
// it denies, and is the reason. It is the result of a call if the task waits for this call alone.
func (c call) answerTask(id a2a.TaskID, msg llm.Message, answers []llm.Decision) (*runs.Live, error) {
	ended := a2a.NewError(a2a.ErrUnsupportedOperation, "the task has ended; leave taskId out and keep contextId")
	h, err := c.unended(id, ended)
	if err != nil {
		return nil, err
	}
	_, open, err := c.Runs.Pending(c.Context(), c.Caller(), h.ID)
	if err != nil {
		return nil, err
	}
	if len(answers) == 0 && len(open) == 0 {
		return nil, a2a.NewError(a2a.ErrUnsupportedOperation,
			"the task asks nothing at present; wait for its end, or cancel it")
	}
	if len(answers) == 0 {
		answers = answersOf(msg.Text(), open)
	}
	return c.Continue(&conversation.Request{Prefix: idPrefix, Run: h.ID, Answers: answers})
}

// answersOf returns the answers to pending calls that a text is.
func answersOf(text string, open []pawl.PendingCall) (answers []llm.Decision) {
	for _, p := range open {
		switch {
		case !p.Passive:
			answers = append(answers, llm.Decision{Key: p.Key, Digest: p.Digest, Reason: text})
		case len(open) == 1:
			result := llm.TextResult(text)
			answers = append(answers, llm.Decision{Key: p.Key, Result: &result})
		}
	}
	return answers
}

// answer is a decision in a data part of a message: the list pawl.
type answer struct {
	api.Verdict
	Approve bool
	Text    *string // the result of a passive call
}

// decision converts the answer.
func (a *answer) decision() llm.Decision {
	d := llm.Decision{
		Key:     a.Key,
		Digest:  a.Digest,
		Approve: a.Approve,
		Reason:  a.Reason,
		Args:    a.Args,
	}
	if a.Text != nil {
		result := llm.TextResult(*a.Text)
		d.Result = &result
	}
	return d
}

// input converts the parts of a message, and the answers in them.
func (c call) input(m *a2a.Message) (msg llm.Message, answers []llm.Decision, err error) {
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

		case a2a.Data: // answers to questions, or any JSON, which the model reads
			text, ds := answersIn(v)
			if ds == nil {
				msg.Parts = append(msg.Parts, llm.Text{Text: text})
			}
			answers = append(answers, ds...)
		}
	}
	if len(msg.Parts) == 0 && len(answers) == 0 {
		err = runs.BadRequest("the message has no parts", "a text part is the usual one")
	}
	return msg, answers, err
}

// answersIn returns the answers in a data part. Nil means that it is no list of answers, but text.
func answersIn(v a2a.Data) (text string, answers []llm.Decision) {
	b, err := json.Marshal(v.Value)
	var in struct{ Pawl []answer }
	if err != nil || json.Unmarshal(b, &in) != nil || in.Pawl == nil {
		return string(b), nil
	}
	answers = []llm.Decision{}
	for _, a := range in.Pawl {
		answers = append(answers, a.decision())
	}
	return "", answers
}
