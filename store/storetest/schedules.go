package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/store"
)

func (s *suite) schedule(sc store.Scope, id string, next time.Time) store.Schedule {
	return must(s.db.PutSchedule(s.ctx, sc, store.Schedule{ID: id, Name: "n", When: "0 12 * * *", Zone: "Europe/Oslo",
		Task: []byte(`{"prompt":"p"}`), Enabled: true, Next: next}))
}

func (s *suite) schedules() {
	v := s.schedule(alice, "", noon)
	if v.ID == "" || v.Version != 1 {
		s.Errorf("stored as %+v", v)
	}
	s.same(v, must(s.db.Schedule(s.ctx, alice, v.ID)))
	change := v
	change.Enabled = false
	change.Next = time.Time{}
	changed := must(s.db.PutSchedule(s.ctx, alice, change))
	if changed.Version != 2 || !changed.Created.Equal(v.Created) {
		s.Errorf("changed it is %+v", changed)
	}
	_, err := s.db.PutSchedule(s.ctx, alice, change)
	s.is(err, store.ErrConflict, "a change to an old version")
	_, err = s.db.PutSchedule(s.ctx, alice, store.Schedule{ID: v.ID, When: "x"})
	s.is(err, store.ErrConflict, "a second one with that ID")

	s.schedule(alice, "late", noon.Add(time.Hour))
	s.schedule(bob, "early", noon.Add(-time.Hour))
	s.schedule(bob, "now", noon)
	var due []string
	for _, d := range must(s.db.DueSchedules(s.ctx, noon, 0)) {
		due = append(due, d.Scope.User+"/"+d.Schedule.ID)
	}
	s.same([]string{"bob/early", "bob/now"}, due)
	if list := must(s.db.Schedules(s.ctx, alice, store.Page{})); len(list) != 2 {
		s.Errorf("Alice has %+v", list)
	}
	s.is(s.db.DeleteSchedule(s.ctx, alice, "now"), store.ErrNotFound, "Alice deletes Bob's")
	s.ok(s.db.DeleteSchedule(s.ctx, bob, "now"))
}

func (s *suite) occurrences() {
	s.schedule(alice, "v", noon)
	next := noon.Add(24 * time.Hour)
	minute := time.Minute
	claim := func(owner string, now time.Time) (store.Claim, error) {
		return s.db.ClaimOccurrence(s.ctx, alice, "v", noon, owner, now, now.Add(minute))
	}
	first := must(claim("one", noon))
	_, err := claim("two", noon.Add(minute/2))
	s.is(err, store.ErrConflict, "a claim to what is claimed")
	// the first claim has expired, and the occurrence has not begun
	second := must(claim("two", noon.Add(minute)))
	if second.Fence <= first.Fence {
		s.Errorf("the fence went from %d to %d", first.Fence, second.Fence)
	}
	s.is(s.db.BeginOccurrence(s.ctx, first, noon), store.ErrConflict, "beginning with a claim that was lost")
	_, err = s.db.RenewClaim(s.ctx, first, noon.Add(time.Hour))
	s.is(err, store.ErrConflict, "renewing it")
	second = must(s.db.RenewClaim(s.ctx, second, noon.Add(2*minute)))
	s.ok(s.db.BeginOccurrence(s.ctx, second, noon))
	s.is(s.db.BeginOccurrence(s.ctx, second, noon), store.ErrConflict, "beginning twice")
	done := store.Occurrence{State: store.OccurrenceDone, Run: "r1", Text: "fine", Began: noon, Ended: noon.Add(minute)}
	s.is(s.db.FinishOccurrence(s.ctx, first, done, next, true), store.ErrConflict, "finishing with a claim that was lost")
	s.ok(s.db.FinishOccurrence(s.ctx, second, done, next, true))
	_, err = claim("three", noon.Add(time.Hour))
	s.is(err, store.ErrOver, "a claim to what is done")
	if v := must(s.db.Schedule(s.ctx, alice, "v")); !v.Next.Equal(next) || !v.Enabled {
		s.Errorf("the schedule went on to %+v", v)
	}

	// It has begun, and its runner is gone: it never begins again.
	gone := must(s.db.ClaimOccurrence(s.ctx, alice, "v", next, "one", next, next.Add(minute)))
	s.ok(s.db.BeginOccurrence(s.ctx, gone, next))
	for range 2 {
		_, err = s.db.ClaimOccurrence(s.ctx, alice, "v", next, "two", next.Add(2*minute), next.Add(3*minute))
		s.is(err, store.ErrOver, "a claim to an occurrence that has begun")
	}
	_, err = s.db.RenewClaim(s.ctx, gone, next.Add(time.Hour))
	s.is(err, store.ErrConflict, "renewing what is unknown")
	list := must(s.db.Occurrences(s.ctx, alice, "v", 0))
	if len(list) != 2 || list[0].State != store.OccurrenceUnknown || list[1].State != store.OccurrenceDone ||
		list[1].Run != "r1" || list[1].Owner != "two" {
		s.Errorf("the occurrences are %+v", list)
	}
	// its runner still exists after all
	s.ok(s.db.FinishOccurrence(s.ctx, gone, done, next.Add(time.Hour), true))
	if o := must(s.db.Occurrences(s.ctx, alice, "v", 1)); o[0].State != store.OccurrenceDone {
		s.Errorf("its runner reports that it is done, and it is %+v", o)
	}
	later := noon.Add(48 * time.Hour)
	s.ok(s.db.MoveSchedule(s.ctx, alice, "v", noon, later, true))
	if v := must(s.db.Schedule(s.ctx, alice, "v")); v.Next.Equal(later) {
		s.Error("a schedule was moved that is not due")
	}
	s.ok(s.db.MoveSchedule(s.ctx, alice, "v", next.Add(time.Hour), time.Time{}, false))
	if v := must(s.db.Schedule(s.ctx, alice, "v")); !v.Next.IsZero() || v.Enabled {
		s.Errorf("moved to never and off, it is %+v", v)
	}
	if err := s.db.FinishOccurrence(s.ctx, gone, store.Occurrence{State: "happy"}, next, true); err == nil {
		s.Error("an occurrence ended as happy")
	}
}

// race tests that one of many concurrent claims of an occurrence succeeds.
func (s *suite) race() {
	s.schedule(alice, "v", noon)
	var wg sync.WaitGroup
	got := make(chan string, 16)
	for i := range 16 {
		wg.Go(func() {
			owner := fmt.Sprint("owner ", i)
			_, err := s.db.ClaimOccurrence(s.ctx, alice, "v", noon, owner, noon, noon.Add(time.Minute))
			switch {
			case err == nil:
				got <- owner
			case !errors.Is(err, store.ErrConflict):
				s.Error(err)
			}
		})
	}
	wg.Wait()
	close(got)
	if len(got) != 1 {
		s.Errorf("%d got it", len(got))
	}
}

func (s *suite) traces() {
	for i, id := range []string{"r1", "r2", "r3"} {
		s.ok(s.db.PutRun(s.ctx, alice, store.Run{ID: id, Agent: "a", Started: noon.Add(time.Duration(i/2) * time.Minute)}))
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
	if a, b := asJSON(s, events), asJSON(s, got); a != b {
		s.Errorf("the events came back as %s", b)
	}
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

// ended tests that a context that has ended changes nothing.
func (s *suite) ended() {
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	if _, err := s.db.PutDocument(ctx, alice, store.Document{ID: "d"}, []store.Chunk{{Text: "x"}}); !errors.Is(err,
		context.Canceled) {
		s.Errorf("put: %v", err)
	}
	if _, err := s.db.SearchChunks(ctx, alice, store.Query{Text: "x"}); !errors.Is(err, context.Canceled) {
		s.Errorf("search: %v", err)
	}
	_, err := s.db.Document(s.ctx, alice, "d")
	s.is(err, store.ErrNotFound, "an item that was not stored")
}

// bad tests that bad input is refused with a text that says what is wrong.
func (s *suite) bad() {
	long := string(make([]byte, 257))
	for what, err := range map[string]error{
		"no id":         only(s.db.PutDocument(s.ctx, alice, store.Document{}, nil)),
		"a NUL":         only(s.db.PutDocument(s.ctx, alice, store.Document{ID: "a\x00b"}, nil)),
		"a long tenant": only(s.db.Documents(s.ctx, store.Scope{Tenant: long}, store.Page{})),
		"no UTF-8":      only(s.db.Documents(s.ctx, store.Scope{User: "\xff"}, store.Page{})),
		"meta no JSON":  only(s.db.PutDocument(s.ctx, alice, store.Document{ID: "d", Meta: []byte("{")}, nil)),
		"no model": only(s.db.PutDocument(s.ctx, alice, store.Document{ID: "d"},
			[]store.Chunk{{Vector: store.Vector{Values: []float32{1}}}})),
		"no direction": only(s.db.SearchChunks(s.ctx, alice,
			store.Query{Vector: store.Vector{Model: "m", Values: []float32{0, 0}}})),
		"no values":        only(s.db.SearchChunks(s.ctx, alice, store.Query{Vector: store.Vector{Model: "m"}})),
		"an empty memory":  second(s.db.AddMemory(s.ctx, alice, store.Memory{Text: " "})),
		"an empty skill":   only(s.db.PutSkill(s.ctx, alice, store.Skill{Name: "k"})),
		"a page of no one": only(s.db.Memories(s.ctx, alice, store.Page{After: "x"})),
		"a scoped thread":  only(s.db.PutThread(s.ctx, store.Scope{Thread: "t"}, store.Thread{ID: "t"})),
		"task no JSON":     only(s.db.PutSchedule(s.ctx, alice, store.Schedule{When: "x", Task: []byte("x")})),
		"no owner":         only(s.db.ClaimOccurrence(s.ctx, alice, "v", noon, "", noon, noon)),
	} {
		if err == nil {
			s.Errorf("%s was taken", what)
		}
	}
}

func only[T any](_ T, err error) error           { return err }
func second[T, U any](_ T, _ U, err error) error { return err }
