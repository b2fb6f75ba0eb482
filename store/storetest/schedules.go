package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pawl-go/pawl/store"
)

func scheduleParts() []part[store.Schedules] {
	return []part[store.Schedules]{
		{"life", scheduleLife},
		{"occurrences", scheduleOccurrences},
		{"race", scheduleRace},
		{"due", scheduleDue},
		{"scopes", func(s *suite[store.Schedules]) { s.scopes(scheduleItems(s.db)) }},
		{"property", func(s *suite[store.Schedules]) { s.property(scheduleItems(s.db)) }},
		{"bad input", scheduleBad},
	}
}

func scheduleItems(db store.Schedules) items {
	return items{
		kind: "schedule",
		put: func(ctx context.Context, sc store.Scope, name, words string) error {
			old, err := db.Schedule(ctx, sc, name)
			if err != nil && !isAbsent(err) {
				return err
			}
			return only(db.PutSchedule(ctx, sc, store.Schedule{ID: name, When: "daily", Name: words,
				Version: old.Version}))
		},
		remove: db.DeleteSchedule,
		get: func(ctx context.Context, sc store.Scope, name string) (string, error) {
			v, err := db.Schedule(ctx, sc, name)
			return v.Name, err
		},
		list: func(ctx context.Context, sc store.Scope) ([]string, error) {
			return wordsOf(func(v store.Schedule) string { return v.Name })(db.Schedules(ctx, sc, store.Page{}))
		},
	}
}

// putSchedule stores a schedule that is due at next.
func putSchedule(s *suite[store.Schedules], sc store.Scope, id string, next time.Time) store.Schedule {
	return must(s.db.PutSchedule(s.ctx, sc, store.Schedule{
		ID:      id,
		Name:    "n",
		When:    "0 12 * * *",
		Zone:    "Europe/Oslo",
		Task:    []byte(`{"prompt":"p"}`),
		Enabled: true,
		Next:    next,
	}))
}

func scheduleLife(s *suite[store.Schedules]) {
	v := putSchedule(s, alice, "", noon)
	if v.ID == "" || v.Version != 1 || v.Created.IsZero() || v.Updated.IsZero() {
		s.Errorf("stored as %+v", v)
	}
	if v.Zone != "Europe/Oslo" || v.When != "0 12 * * *" || string(v.Task) != `{"prompt":"p"}` {
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

	putSchedule(s, alice, "late", noon.Add(time.Hour))
	putSchedule(s, bob, "early", noon.Add(-time.Hour))
	putSchedule(s, bob, "now", noon)
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

func scheduleOccurrences(s *suite[store.Schedules]) {
	putSchedule(s, alice, "v", noon)
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
	second = must(s.db.RenewClaim(s.ctx, second, noon.Add(4*minute)))
	_, err = claim("three", noon.Add(3*minute))
	s.is(err, store.ErrConflict, "a claim to what was renewed")
	s.ok(s.db.BeginOccurrence(s.ctx, second, noon))
	s.is(s.db.BeginOccurrence(s.ctx, second, noon), store.ErrConflict, "beginning twice")
	done := store.Occurrence{State: store.OccurrenceDone, Run: "r1", Text: "fine", Began: noon,
		Ended: noon.Add(minute)}
	s.is(s.db.FinishOccurrence(s.ctx, first, done, next, true), store.ErrConflict,
		"finishing with a claim that was lost")
	s.refused(s.db.FinishOccurrence(s.ctx, second, store.Occurrence{State: "happy"}, next, true), "an unknown state")
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
		s.Errorf("a schedule was moved that is not due")
	}
	s.ok(s.db.MoveSchedule(s.ctx, alice, "v", next.Add(time.Hour), time.Time{}, false))
	if v := must(s.db.Schedule(s.ctx, alice, "v")); !v.Next.IsZero() || v.Enabled {
		s.Errorf("moved to never and off, it is %+v", v)
	}
}

// scheduleRace tests that one of many concurrent claims of an occurrence succeeds.
func scheduleRace(s *suite[store.Schedules]) {
	putSchedule(s, alice, "v", noon)
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
				s.Errorf("%v", err)
			}
		})
	}
	wg.Wait()
	close(got)
	if len(got) != 1 {
		s.Errorf("%d got it", len(got))
	}
}

// scheduleDue tests that the schedules of all scopes are due, and none that is turned off.
func scheduleDue(s *suite[store.Schedules]) {
	all := similarScopes()
	for _, sc := range all {
		putSchedule(s, sc, "v", noon)
	}
	off := must(s.db.Schedule(s.ctx, all[0], "v"))
	off.Enabled = false
	must(s.db.PutSchedule(s.ctx, all[0], off))
	never := must(s.db.Schedule(s.ctx, all[1], "v"))
	never.Next = time.Time{}
	must(s.db.PutSchedule(s.ctx, all[1], never))

	if due := must(s.db.DueSchedules(s.ctx, noon, 0)); len(due) != len(all)-2 {
		s.Errorf("%d schedules are due, want %d", len(due), len(all)-2)
	}
	if due := must(s.db.DueSchedules(s.ctx, noon, 1)); len(due) != 1 {
		s.Errorf("%d schedules are due, want one", len(due))
	}
	if due := must(s.db.DueSchedules(s.ctx, noon.Add(-time.Second), 0)); len(due) > 0 {
		s.Errorf("%d schedules are due before their time", len(due))
	}
}

func scheduleBad(s *suite[store.Schedules]) {
	s.refused(only(s.db.PutSchedule(s.ctx, alice, store.Schedule{When: "x", Task: []byte("x")})),
		"a task that is not JSON")
	putSchedule(s, alice, "v", noon)
	s.refused(only(s.db.ClaimOccurrence(s.ctx, alice, "v", noon, "", noon, noon)), "a claim without an owner")
	s.refused(only(s.db.Schedules(s.ctx, store.Scope{User: "\xff"}, store.Page{})), "a user that is no UTF-8")
	if _, err := s.db.PutSchedule(s.ended(), alice, store.Schedule{When: "x"}); err == nil {
		s.Errorf("a schedule was taken under a context that has ended")
	}
}
