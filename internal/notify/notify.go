// Package notify notifies people of what happens to runs: a call waits for an answer, a run has
// failed, a run has ended. The addresses come from the files of agents alone, never from a model.
//
//	journal ──▶ Watcher ──▶ Channel: webhook, Slack, e-mail, desktop ──▶ a person
//	                                     Slack's buttons ──▶ Callback ──▶ the decision
//
// The Watcher scans the journal, so that a question of a process that was killed is not lost. What
// was sent is recorded in the journal before and after it is sent: see marks.go.
package notify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"

	"github.com/pawl-go/pawl/llm"
)

// Kind is what has happened to a run.
type Kind string

// The kinds of events.
const (
	Waits  Kind = "waits"  // a call waits for an answer
	Failed Kind = "failed" // the run has failed, and can be resumed
	Ended  Kind = "ended"  // the run is over
)

// Event is what people read about a run.
type Event struct {
	ID     string `json:"id"`   // the same for each attempt to send the event
	Kind   Kind   `json:"kind"` // waits, failed or ended
	Agent  string `json:"agent"`
	Run    string `json:"run"`
	Tenant string `json:"tenant,omitzero"`
	User   string `json:"user,omitzero"`
	Task   string `json:"task,omitzero"` // the beginning of the user's request
	Text   string `json:"text,omitzero"` // the answer, or the cause of a failure
	Link   string `json:"link,omitzero"` // the page of the run, at its question
	// Answer is the approval link of the question. "" means none. It answers the question without a
	// login, once.
	Answer string `json:"answer,omitzero"`

	// Question is the call that waits. Nil means that the event is no question.
	Question *Question `json:"question,omitzero"`
}

// Question is a call that waits for an answer.
type Question struct {
	Key    llm.Key         `json:"key"`
	Digest string          `json:"digest"` // binds the answer to the question
	Tool   string          `json:"tool"`
	Args   json.RawMessage `json:"args"` // without secrets
	Why    string          `json:"why,omitzero"`
}

// Title returns the event in one line.
func (e *Event) Title() string {
	switch e.Kind {
	case Waits:
		return e.Agent + " asks: may " + e.Question.Tool + " run?"
	case Failed:
		return e.Agent + ": a run has failed"
	}
	return e.Agent + ": a run has ended"
}

// Body returns the event in a few lines of plain text.
func (e *Event) Body() string {
	lines := []string{"Run: " + e.Run}
	if e.Task != "" {
		lines = append(lines, "Task: "+e.Task)
	}
	if q := e.Question; q != nil {
		lines = append(lines, "Call: "+q.Tool+" "+shortened(string(q.Args)))
		if q.Why != "" {
			lines = append(lines, "Why: "+q.Why)
		}
	}
	if e.Text != "" {
		lines = append(lines, "", shortened(e.Text))
	}
	if e.Link != "" {
		lines = append(lines, "", e.Link)
	}
	if e.Answer != "" {
		lines = append(lines, "", "Approve or deny: "+e.Answer)
	}
	return strings.Join(lines, "\n")
}

// shownBytes limits the texts of a run in a message.
const shownBytes = 1500

// shortened returns the beginning of a text.
func shortened(text string) string {
	if len(text) <= shownBytes {
		return text
	}
	return strings.ToValidUTF8(text[:shownBytes], "") + " …"
}

// identify sets the ID of the event: the digest of what it is about.
func (e *Event) identify() {
	parts := []string{e.Tenant, e.User, e.Run, string(e.Kind)}
	if e.Question != nil {
		parts = append(parts, string(e.Question.Key), e.Question.Digest)
	} else {
		parts = append(parts, e.Text)
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	e.ID = hex.EncodeToString(sum[:12])
}

// Channel sends events to people.
type Channel struct {
	Name  string // unique among the channels of an agent, such as "0 slack"
	Kinds []Kind // the events that are sent

	// Idempotent means that the receiver recognises an event that is sent again, by its ID.
	Idempotent bool

	// Send sends an event. An error that wraps ErrUnknown means that the event may have arrived;
	// after any other error it has not.
	Send func(context.Context, *Event) error
}

// ErrUnknown means that an event may have arrived.
var ErrUnknown = errors.New("it is unknown whether the message has arrived")
