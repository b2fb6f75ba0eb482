package server_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/store"
)

// counted is a journal that counts what is read from it: heads and runs.
type counted struct {
	store.MemoryJournal
	read atomic.Int64
}

func (c *counted) JournalRun(ctx context.Context, s store.Scope, id string) (store.JournalRun, error) {
	c.read.Add(1)
	return c.MemoryJournal.JournalRun(ctx, s, id)
}

func (c *counted) JournalRuns(
	ctx context.Context, s store.Scope, state string, p store.Page,
) ([]store.JournalRun, error) {
	heads, err := c.MemoryJournal.JournalRuns(ctx, s, state, p)
	c.read.Add(int64(len(heads)))
	return heads, err
}

func (c *counted) JournalRecords(ctx context.Context, s store.Scope, id string, after int64) ([]store.Record, error) {
	c.read.Add(1)
	return c.MemoryJournal.JournalRecords(ctx, s, id, after)
}

// What a message of a long chat costs does not grow if the page sends nothing but that message. The
// page's history of the chat grows, which is the control.
func TestMessagesOfALongChatCostTheSame(t *testing.T) {
	soak.Sequential(t)
	journal := new(counted)
	v := serve(t, func(o *options) {
		o.Journal = journal
		o.Agents = []*pawl.Agent{{Name: "clerk", Model: script.New(script.Loop(script.Say("Yes.")))}}
		o.Access.Tokens = []api.Token{{Name: "all", Token: uiAdmin, Scopes: []api.Scope{api.ScopeAll}}}
	})
	v.token = uiAdmin
	cost := func(do func()) int64 {
		before := journal.read.Load()
		do()
		return journal.read.Load() - before
	}
	sent := 0
	say := func() {
		sent++
		v.chat(uiAdmin, fmt.Sprintf(`{"id":"c","messages":[{"id":"u%d","role":"user","parts":[{"type":"text","text":"%d?"}]}]}`, sent, sent))
	}
	// The most of some messages, because a run may also read its own journal while it waits.
	most := func() (n int64) {
		for range 5 {
			n = max(n, cost(say))
		}
		return n
	}
	history := func() { v.do("GET", "/v1/ui/clerk/c", "", 200, nil) }

	for sent < 60 {
		say()
	}
	early, earlyHistory := most(), cost(history)
	for sent < 180 {
		say()
	}
	late, lateHistory := most(), cost(history)
	if late > early+10 {
		t.Errorf("a message reads %d heads and runs after 60 messages, and %d after 180", early, late)
	}
	if lateHistory < 2*earlyHistory {
		t.Errorf("the control reads %d and then %d: the counter is blind", earlyHistory, lateHistory)
	}
}
