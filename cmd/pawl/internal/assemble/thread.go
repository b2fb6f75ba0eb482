package assemble

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/thread"
)

// Thread is a conversation in the database.
type Thread struct{ *thread.Thread }

// The names with a special meaning in --thread.
const (
	lastThread = "last" // the conversation that was updated last
	NewThread  = "new"  // a new conversation
	NoThread   = "none" // no conversation
)

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
	case t == nil:
		return nil, nil, cli.Usage("--thread NAME starts one", "--thread last: there is no conversation yet")
	}
	return &Thread{t}, from, nil
}

// LoadThread returns a conversation and the result to resume from. A nil thread means that the last
// one was asked for, and there is none.
func LoadThread(ctx context.Context, db store.Threads, s store.Scope, name string) (*thread.Thread, *pawl.Result,
	error) {
	if name == lastThread {
		all, err := Threads(ctx, db, s)
		if err != nil || len(all) == 0 {
			return nil, new(pawl.Result), err
		}
		name = all[0].ID
	}
	return thread.Load(ctx, db, s, name)
}

// Save stores the result of a turn. It fails if another chat has added messages in the meantime.
func (t *Thread) Save(ctx context.Context, res *pawl.Result) error {
	err := t.Thread.Save(ctx, res)
	if errors.Is(err, store.ErrConflict) {
		return cli.Fail(cli.StatusFailed,
			fmt.Errorf("another program has continued the conversation %s, so this turn is not stored",
				t.ID), "/save FILE stores this turn in a file; pawl threads show "+t.ID+" shows the other turns")
	}
	return err
}

// ThreadID returns the ID of t.
func ThreadID(t store.Thread) string { return t.ID }

// Threads returns the conversations of a scope, the last one first.
func Threads(ctx context.Context, db store.Threads, s store.Scope) ([]store.Thread, error) {
	all, err := cli.Everything(func(p store.Page) ([]store.Thread, error) { return db.Threads(ctx, s, p) }, ThreadID)
	slices.SortStableFunc(all, func(a, b store.Thread) int { return b.Updated.Compare(a.Updated) })
	return all, err
}
