package assemble

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// Thread is a conversation in the database. Its messages are complete: a reply with pending calls
// is stored in Meta until the calls are settled.
type Thread struct {
	DB    store.Threads
	Scope store.Scope
	store.Thread
}

// The names with a special meaning in --thread.
const (
	lastThread = "last" // the conversation that was updated last
	NewThread  = "new"  // a new conversation
	NoThread   = "none" // no conversation
)

// unsettled is the content of Meta: the end of the last turn, with the messages that are not
// complete.
type unsettled struct {
	// the number of messages of the thread at that time; with another number Last is out of date
	At   int          `json:"at"`
	Last *pawl.Result `json:"last"`
}

// OpenThread finds or starts the conversation called name, and returns the result to resume from.
func OpenThread(ctx context.Context, db store.Threads, s store.Scope, name string, now time.Time) (*Thread,
	*pawl.Result, error) {
	if name == "" || name == NewThread {
		name = now.Format("2006-01-02-") + strings.ToLower(rand.Text()[:6])
	} else if err := store.CheckID(name); err != nil {
		return nil, nil, cli.Usage("a name such as taxes, or last for the last conversation", "--thread: %v", err)
	}
	t, from, err := LoadThread(ctx, db, s, name)
	switch {
	case err != nil:
		return nil, nil, err
	case t == nil && name == lastThread:
		return nil, nil, cli.Usage("--thread NAME starts one", "--thread last: there is no conversation yet")
	case t == nil:
		t = &store.Thread{ID: name}
	}
	return &Thread{db, s, *t}, from, nil
}

// LoadThread returns a conversation and the result to resume from. A nil thread means that there is
// none of that name.
func LoadThread(ctx context.Context, db store.Threads, s store.Scope, name string) (*store.Thread, *pawl.Result,
	error) {
	from := new(pawl.Result)
	if name == lastThread {
		all, err := Threads(ctx, db, s)
		if err != nil || len(all) == 0 {
			return nil, from, err
		}
		name = all[0].ID
	}
	t, err := db.Thread(ctx, s, name)
	if errors.Is(err, store.ErrNotFound) {
		return nil, from, nil
	}
	if err != nil {
		return nil, nil, err
	}
	stored, err := db.Messages(ctx, s, t.ID, 0, 0)
	if err != nil {
		return nil, nil, err
	}
	var u unsettled
	// another program may have written Meta
	if err := json.Unmarshal(t.Meta, &u); err == nil && u.Last != nil && u.At == len(stored) {
		from = u.Last
	}
	msgs := make([]llm.Message, 0, len(stored)+len(from.Messages))
	for _, m := range stored {
		msgs = append(msgs, m.Message)
	}
	from.Messages = append(msgs, from.Messages...)
	t.Messages = len(stored)
	return &t, from, nil
}

// Save stores the result of a turn. It fails if another chat has added messages in the meantime.
func (t *Thread) Save(ctx context.Context, res *pawl.Result) error {
	whole := len(res.Messages)
	if len(res.Calls()) > 0 {
		for whole--; whole > 0 && res.Messages[whole].Role != llm.RoleAssistant; whole-- {
		}
	}
	if t.Created.IsZero() {
		made, err := t.DB.PutThread(ctx, t.Scope, store.Thread{ID: t.ID, Title: title(res.Messages)})
		if err != nil {
			return err
		}
		t.Title, t.Created = made.Title, made.Created
	}
	whole = max(whole, t.Messages)
	if err := t.DB.AppendMessages(ctx, t.Scope, t.ID, t.Messages, res.Messages[t.Messages:whole]...); errors.Is(err,
		store.ErrConflict) {
		return cli.Fail(cli.StatusFailed,
			fmt.Errorf("another program has continued the conversation %s, so this turn is not stored",
				t.ID), "/save FILE stores this turn in a file; pawl threads show "+t.ID+" shows the other turns")
	} else if err != nil {
		return err
	}
	t.Messages = whole
	last := *res
	last.Messages, last.Steps = res.Messages[whole:], nil
	meta, err := json.Marshal(unsettled{whole, &last})
	if err != nil {
		return err
	}
	_, err = t.DB.PutThread(ctx, t.Scope, store.Thread{ID: t.ID, Title: t.Title, Meta: meta})
	return err
}

// title returns the start of the first message of the user.
func title(msgs []llm.Message) string {
	for _, m := range msgs {
		if text := cli.Beginning(m.Text(), 80); m.Role == llm.RoleUser && text != "" {
			return text
		}
	}
	return ""
}

// ThreadID returns the ID of t.
func ThreadID(t store.Thread) string { return t.ID }

// Threads returns the conversations of a scope, the last one first.
func Threads(ctx context.Context, db store.Threads, s store.Scope) ([]store.Thread, error) {
	all, err := cli.Everything(func(p store.Page) ([]store.Thread, error) { return db.Threads(ctx, s, p) }, ThreadID)
	slices.SortStableFunc(all, func(a, b store.Thread) int { return b.Updated.Compare(a.Updated) })
	return all, err
}
