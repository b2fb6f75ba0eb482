// Package thread continues conversations that a store holds: each run begins with the messages of
// its conversation and appends its own. A chat with memory is three lines:
//
//	chat := &thread.Runner{Runner: agent, DB: db, Scope: store.Scope{User: user}, ID: id}
//	err := uistream.Write(w, chat.Stream(r.Context(), llm.User(text)), uistream.Options{})
//
// A Runner serves one message, by an agent, a team, a durable or a remote run. Load, Claim and Save
// are its parts, for programs with a loop of their own. Claim makes a decision count once: of two
// requests with the same answer, one executes the call.
package thread

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// Thread is a conversation as a run found it. Its messages are complete: a reply with pending calls
// is in Meta until the calls are settled.
type Thread struct {
	DB    store.Threads // has the conversation
	Scope store.Scope   // the tenant and the user of the conversation
	store.Thread

	run string // that holds the open calls of the conversation itself; "" means none
}

// unsettled is the content of Meta: the end of the last run, with the messages that are not
// complete.
type unsettled struct {
	// the number of messages of the thread at that time; with another number Last is out of date
	At   int          `json:"at"`
	Last *pawl.Result `json:"last"`

	// a run that may be active has claimed the open calls of Last; random, so that the thread has
	// another version
	Claim string `json:"claim,omitzero"`

	// the ID of the run that has the open calls of Last, if it holds them itself; "" means none
	Run string `json:"run,omitzero"`
}

// Load returns the conversation with the ID, and the result to resume from. A conversation that
// does not exist is returned with a zero Created, and the first Save creates it.
//
// After a Claim without a Save, because its run is active or its process ended, the open calls of
// the result may have been executed: they ask whether they took effect (pawl.OutcomeUnknown), and a
// decision about their first question does not count any more.
func Load(ctx context.Context, db store.Threads, s store.Scope, id string) (*Thread, *pawl.Result, error) {
	switch {
	case ctx == nil:
		return nil, nil, errors.New("the context is nil; use context.Background() or the context of the request")
	case db == nil:
		return nil, nil, errors.New("a conversation needs a store (DB), such as one of store/sqlite")
	}

	t := &Thread{DB: db, Scope: s, Thread: store.Thread{ID: id}}
	from := new(pawl.Result)
	stored, err := db.Thread(ctx, s, id)
	if errors.Is(err, store.ErrNotFound) {
		return t, from, store.CheckID(id)
	} else if err != nil {
		return nil, nil, err
	}
	// Only the messages that the thread had when it was read: a run may end in between, and its
	// messages do not fit the stored end of the run before it.
	var said []store.Message
	if stored.Messages > 0 {
		said, err = db.Messages(ctx, s, id, 0, stored.Messages)
		if err != nil {
			return nil, nil, err
		}
	}
	var u unsettled
	// another program may have written Meta
	if err := json.Unmarshal(stored.Meta, &u); err == nil && u.Last != nil && u.At == len(said) {
		from = u.Last
		t.run = u.Run
	}
	msgs := make([]llm.Message, 0, len(said)+len(from.Messages))
	for _, m := range said {
		msgs = append(msgs, m.Message)
	}
	from.Messages = append(msgs, from.Messages...)
	t.Thread = stored
	t.Messages = len(said)
	return t, from, nil
}

// Claim says, before a run that resumes from, that it executes the open calls of from. Of several
// runs that loaded the same result one succeeds, and the others get store.ErrConflict. Save, or a
// Save of from if the run did not start, ends the claim. Without open calls Claim does nothing.
func (t *Thread) Claim(ctx context.Context, from *pawl.Result) error {
	if len(from.Calls()) == 0 {
		return nil
	}
	meta, err := json.Marshal(unsettled{At: t.Messages, Last: t.interrupted(from), Claim: rand.Text()})
	if err != nil {
		return err
	}
	return t.put(ctx, meta, t.Version)
}

// interrupted returns the result that a run leaves if it resumes from and does not end: each open
// call may have been executed.
func (t *Thread) interrupted(from *pawl.Result) *pawl.Result {
	replies := 0
	var reply llm.Message
	for _, m := range from.Messages {
		if m.Role == llm.RoleAssistant {
			replies++
			reply = m
		}
	}

	last := *from
	last.Steps = nil
	last.Messages = from.Messages[t.Messages:]
	last.Pending = nil
	open := from.Calls()
	for place, c := range reply.Calls() {
		if !slices.ContainsFunc(open, func(o llm.ToolCall) bool { return o.ID == c.ID }) {
			continue
		}
		key := llm.Key(fmt.Sprintf("run/%d/%d", replies, place))
		w := pawl.PendingCall{Key: key, Call: c}
		if i := slices.IndexFunc(from.Pending, func(w pawl.PendingCall) bool { return w.Key == key }); i >= 0 {
			w = from.Pending[i]
		}
		// The run executes no passive call, so its question stays as it was.
		if !w.Passive {
			w.Outcome = pawl.OutcomeUnknown
			w.Attempt++
			w.Why = "Another run has begun to execute it, and has not ended. What it does may have happened."
		}
		last.Pending = append(last.Pending, w)
	}
	return &last
}

// put stores meta in that version of the thread; "" means any version.
func (t *Thread) put(ctx context.Context, meta json.RawMessage, version string) error {
	stored, err := t.DB.PutThread(ctx, t.Scope, store.Thread{ID: t.ID, Title: t.Title, Meta: meta, Version: version})
	if err != nil {
		return err
	}
	t.Version = stored.Version
	return nil
}

// Save stores the result of a run that resumed from the conversation. The title of a new one is the
// beginning of the user's first message. Save returns store.ErrConflict if another run has appended
// messages since Load; the result is not stored then.
func (t *Thread) Save(ctx context.Context, res *pawl.Result) error {
	switch {
	case t.DB == nil:
		return errors.New("a conversation that Load did not return cannot be saved")
	case res == nil:
		return fmt.Errorf("conversation %s: there is no Result: the run did not start", t.ID)
	}
	whole := len(res.Messages)
	if whole < t.Messages {
		return fmt.Errorf("conversation %s has %d messages, and the result only %d: its run did not begin with them",
			t.ID, t.Messages, whole)
	}

	// A reply with open calls is stored with the state of the run, because the results that will
	// follow it belong to it.
	if len(res.Calls()) > 0 {
		for whole--; whole > 0 && res.Messages[whole].Role != llm.RoleAssistant; whole-- {
		}
	}
	whole = max(whole, t.Messages)

	if t.Created.IsZero() {
		made, err := t.DB.PutThread(ctx, t.Scope, store.Thread{ID: t.ID, Title: title(res.Messages)})
		if err != nil {
			return err
		}
		t.Title = made.Title
		t.Created = made.Created
		t.Version = made.Version
	}
	if err := t.DB.AppendMessages(ctx, t.Scope, t.ID, t.Messages, res.Messages[t.Messages:whole]...); err != nil {
		return err
	}
	t.Messages = whole

	last := *res
	last.Messages = res.Messages[whole:]
	last.Steps = nil
	meta, err := json.Marshal(unsettled{At: whole, Last: &last, Run: t.run})
	if err != nil {
		return err
	}
	return t.put(ctx, meta, "")
}

// title returns the beginning of the first message of the user.
func title(msgs []llm.Message) string {
	for _, m := range msgs {
		first, _, _ := strings.Cut(strings.TrimSpace(m.Text()), "\n")
		if m.Role == llm.RoleUser && first != "" {
			return text.Clip(first, 80)
		}
	}
	return ""
}
