package storetest

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/store"
)

func traceParts() []part[store.Traces] {
	return []part[store.Traces]{
		{"life", traceLife},
		{"scopes", func(s *suite[store.Traces]) { s.scopes(traceItems(s.db)) }},
		{"property", func(s *suite[store.Traces]) { s.property(traceItems(s.db)) }},
		{"bad input", traceBad},
	}
}

// traceItems are runs with one event.
func traceItems(db store.Traces) items {
	return items{
		kind: "run",
		put: func(ctx context.Context, sc store.Scope, name, words string) error {
			if err := db.DeleteRun(ctx, sc, name); err != nil && !isAbsent(err) {
				return err
			}
			if err := db.PutRun(ctx, sc, store.Run{ID: name, Task: words}); err != nil {
				return err
			}
			return db.AppendEvents(ctx, sc, name, pawl.Event{Kind: pawl.EventText, Seq: 1, Text: words})
		},
		remove: db.DeleteRun,
		get: func(ctx context.Context, sc store.Scope, name string) (string, error) {
			r, err := db.Run(ctx, sc, name)
			if err != nil {
				return "", err
			}
			events, err := db.Events(ctx, sc, name, 0, 0)
			if err != nil || len(events) != 1 || events[0].Text != r.Task {
				return "", fmt.Errorf("the events of %q are %+v, %v", r.Task, events, err)
			}
			return r.Task, nil
		},
		list: func(ctx context.Context, sc store.Scope) ([]string, error) {
			return wordsOf(func(r store.Run) string { return r.Task })(db.Runs(ctx, sc, store.Page{}))
		},
	}
}

func traceLife(s *suite[store.Traces]) {
	for i, id := range []string{"r1", "r2", "r3"} {
		s.ok(s.db.PutRun(s.ctx, alice, store.Run{ID: id, Agent: "a",
			Started: noon.Add(time.Duration(i/2) * time.Minute)}))
	}
	s.ok(s.db.PutRun(s.ctx, alice, store.Run{ID: "r1", Agent: "a", Started: noon, Ended: noon.Add(time.Second),
		Stop: pawl.StopAnswer, Spent: pawl.Spent{Calls: 2}}))
	if r := must(s.db.Run(s.ctx, alice, "r1")); r.Stop != pawl.StopAnswer || r.Spent.Calls != 2 {
		s.Errorf("the run is %+v", r)
	}
	var order []string
	for after := ""; ; {
		list := must(s.db.Runs(s.ctx, alice, store.Page{After: after, Limit: 1}))
		if len(list) == 0 {
			break
		}
		after = list[0].ID
		order = append(order, after)
	}
	s.same([]string{"r3", "r1", "r2"}, order)
	events := []pawl.Event{{Kind: pawl.EventRunStarted, Seq: 1, Agent: "a"},
		{Kind: pawl.EventText, Seq: 2, Text: "héllo"}, {Kind: pawl.EventText, Seq: 3, Text: "<b>"}}
	s.ok(s.db.AppendEvents(s.ctx, alice, "r1", events[:2]...))
	s.ok(s.db.AppendEvents(s.ctx, alice, "r1", events...))
	got := must(s.db.Events(s.ctx, alice, "r1", 0, 0))
	s.same(events, got)
	got = must(s.db.Events(s.ctx, alice, "r1", 1, 1))
	if len(got) != 1 || got[0].Seq != 2 {
		s.Errorf("the event after 1 is %+v", got)
	}
	s.is(s.db.AppendEvents(s.ctx, bob, "r1", events...), store.ErrNotFound, "Bob adds to Alice's run")
	_, err := s.db.Events(s.ctx, bob, "r1", 0, 0)
	s.is(err, store.ErrNotFound, "Bob reads it")
	s.ok(s.db.DeleteRun(s.ctx, alice, "r1"))
	_, err = s.db.Events(s.ctx, alice, "r1", 0, 0)
	s.is(err, store.ErrNotFound, "the events of a deleted run")
}

func traceBad(s *suite[store.Traces]) {
	s.refused(s.db.PutRun(s.ctx, alice, store.Run{}), "a run without an ID")
	s.refused(s.db.AppendEvents(s.ctx, alice, "none", pawl.Event{Kind: pawl.EventText, Seq: 1}), "an event of no run")
	s.refused(only(s.db.Runs(s.ctx, store.Scope{User: "\xff"}, store.Page{})), "a user that is no UTF-8")
	if err := s.db.PutRun(s.ended(), alice, store.Run{ID: "r"}); err == nil {
		s.Errorf("a run was taken under a context that has ended")
	}
}
