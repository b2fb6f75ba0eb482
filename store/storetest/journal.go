package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl/store"
)

// RunJournal runs the suite of journals. open returns a new, empty journal each time and cleans it
// up itself.
func RunJournal(t *testing.T, open func(t *testing.T) store.Journal) {
	for _, part := range []struct {
		name string
		test func(*journalSuite)
	}{
		{"a run from beginning to end", (*journalSuite).life}, {"chain", (*journalSuite).chain}, {"leases", (*journalSuite).leases}, {"outside", (*journalSuite).outside},
		{"all or nothing", (*journalSuite).atomic}, {"lists", (*journalSuite).lists}, {"race for a lease", (*journalSuite).race},
		{"seals", (*journalSuite).seals}, {"bad input", (*journalSuite).bad},
	} {
		t.Run(part.name, func(t *testing.T) {
			s := &journalSuite{suite{T: t, ctx: t.Context()}, open(t)}
			defer s.caught()
			part.test(s)
		})
	}
}

type journalSuite struct {
	suite
	db store.Journal
}

func record(key, body string) store.Record {
	return store.Record{Key: key, Kind: "test", At: noon, Elapsed: time.Second, Body: json.RawMessage(body)}
}

func (s *journalSuite) begin(id string) store.Lease {
	s.Helper()
	return must(s.db.BeginJournal(s.ctx, alice,
		store.JournalRun{ID: id, Agent: "clerk", Task: "the task", State: store.JournalOpen}, "me", noon.Add(time.Minute), record("begin", `{"n":1}`)))
}

func (s *journalSuite) life() {
	l := s.begin("r")
	large := `"` + strings.Repeat("x", 40<<10) + `"`
	last := must(s.db.AppendJournal(s.ctx, l, nil, record("a", large), record("b", `[1, 2]`), record("c", large)))
	if last != 4 {
		s.Errorf("the last record is %d, want 4", last)
	}
	must(s.db.AppendJournal(s.ctx, l, &store.JournalChange{State: store.JournalOver,
		Summary: json.RawMessage(`{"stop":"answer"}`), Release: true}))
	head := must(s.db.JournalRun(s.ctx, alice, "r"))
	if head.State != store.JournalOver || string(head.Summary) != `{"stop":"answer"}` || head.Owner != "" ||
		head.Records != 4 || head.Agent != "clerk" || head.Task != "the task" || head.Scope != alice {
		s.Errorf("the head is %+v", head)
	}
	all := must(s.db.JournalRecords(s.ctx, alice, "r", 0))
	var keys []string
	for i, r := range all {
		keys = append(keys, r.Key)
		if r.Seq != int64(i+1) || r.Fence != 1 || r.Kind != "test" || !r.At.Equal(noon) || r.Elapsed != time.Second {
			s.Errorf("record %d is %+v", i, r)
		}
	}
	if got := strings.Join(keys, " "); got != "begin a b c" {
		s.Errorf("the records are %s", got)
	}
	if string(all[1].Body) != large || string(all[2].Body) != `[1, 2]` || string(all[3].Body) != large {
		s.Error("a body is not what it was, byte for byte")
	}
	if rest := must(s.db.JournalRecords(s.ctx, alice, "r", 3)); len(rest) != 1 || rest[0].Key != "c" {
		s.Errorf("after 3 come %v", rest)
	}
	s.ok(s.db.DeleteJournal(s.ctx, alice, "r"))
	_, err := s.db.JournalRun(s.ctx, alice, "r")
	s.is(err, store.ErrNotFound, "a deleted run")
	_, err = s.db.JournalRecords(s.ctx, alice, "r", 0)
	s.is(err, store.ErrNotFound, "its records")
	s.is(s.db.DeleteJournal(s.ctx, alice, "r"), store.ErrNotFound, "deleting it again")
}

func (s *journalSuite) chain() {
	l := s.begin("r")
	must(s.db.AppendJournal(s.ctx, l, nil, record("a", `1`), record("b", `2`)))
	s.ok(s.db.AppendOutside(s.ctx, alice, "r", "", record("c", `3`)))
	prev := ""
	all := must(s.db.JournalRecords(s.ctx, alice, "r", 0))
	for _, r := range all {
		if want := r.Chain("r", prev); r.Hash != want {
			s.Errorf("record %d has the hash %s, want %s", r.Seq, r.Hash, want)
		}
		prev = r.Hash
	}
	if head := must(s.db.JournalRun(s.ctx, alice, "r")); head.Head != prev || head.Records != int64(len(all)) {
		s.Errorf("the head says %d, %s; the last record %d, %s", head.Records, head.Head, len(all), prev)
	}
}

func (s *journalSuite) leases() {
	queued := must(s.db.BeginJournal(s.ctx, alice, store.JournalRun{ID: "q", State: store.JournalOpen}, "", time.Time{},
		record("begin", `1`)))
	if head := must(s.db.JournalRun(s.ctx, alice, "q")); queued.Fence != 0 || !head.Queued() || head.Owner != "" {
		s.Errorf("begun without an owner: %+v", head)
	}
	if err := must(s.db.JournalRun(s.ctx, alice, "q")).CheckSeal(); err != nil {
		s.Errorf("begun without an owner: %v", err)
	}
	if left := must(s.db.AbandonedRuns(s.ctx, noon, 0)); len(left) != 1 || left[0].ID != "q" {
		s.Errorf("a run begun without an owner is not listed: %+v", left)
	}
	if l := must(s.db.ClaimJournal(s.ctx, alice, "q", "me", noon, noon.Add(time.Hour))); l.Fence != 1 {
		s.Errorf("the first claim has the fence %d", l.Fence)
	}
	first := s.begin("r")
	_, err := s.db.BeginJournal(s.ctx, alice, store.JournalRun{ID: "r", State: store.JournalOpen}, "other", noon)
	s.is(err, store.ErrConflict, "beginning it again")
	_, err = s.db.ClaimJournal(s.ctx, alice, "r", "other", noon, noon.Add(time.Hour))
	s.is(err, store.ErrConflict, "a claim while the lease lasts")
	must(s.db.RenewJournal(s.ctx, first, noon.Add(2*time.Minute)))
	_, err = s.db.ClaimJournal(s.ctx, alice, "r", "other", noon.Add(90*time.Second), noon.Add(time.Hour))
	s.is(err, store.ErrConflict, "a claim after it was renewed")
	second := must(s.db.ClaimJournal(s.ctx, alice, "r", "other", noon.Add(2*time.Minute), noon.Add(time.Hour)))
	if second.Fence <= first.Fence {
		s.Errorf("the fence went from %d to %d", first.Fence, second.Fence)
	}
	_, err = s.db.AppendJournal(s.ctx, first, nil, record("late", `1`))
	s.is(err, store.ErrConflict, "a record under the lost lease")
	_, err = s.db.AppendJournal(s.ctx, first, &store.JournalChange{State: store.JournalOver})
	s.is(err, store.ErrConflict, "a change under the lost lease")
	_, err = s.db.RenewJournal(s.ctx, first, noon.Add(3*time.Hour))
	s.is(err, store.ErrConflict, "renewing the lost lease")
	must(s.db.AppendJournal(s.ctx, second, nil, record("a", `1`)))
	must(s.db.RenewJournal(s.ctx, second, time.Time{}))
	_, err = s.db.AppendJournal(s.ctx, second, nil, record("b", `1`))
	s.is(err, store.ErrConflict, "a record under a lease that was given up")
	third := must(s.db.ClaimJournal(s.ctx, alice, "r", "other", noon, noon.Add(time.Hour)))
	if third.Fence != 3 {
		s.Errorf("the third lease has fence %d", third.Fence)
	}
	_, err = s.db.ClaimJournal(s.ctx, alice, "none", "other", noon, noon.Add(time.Hour))
	s.is(err, store.ErrNotFound, "a claim to nothing")
}

func (s *journalSuite) outside() {
	l := s.begin("r")
	s.ok(s.db.AppendOutside(s.ctx, alice, "r", store.JournalOpen, record("said", `1`)))
	s.is(s.db.AppendOutside(s.ctx, alice, "r", store.JournalOpen, record("said", `2`)), store.ErrConflict, "the same key")
	must(s.db.AppendJournal(s.ctx, l, &store.JournalChange{State: store.JournalWaiting, Release: true}))
	s.ok(s.db.AppendOutside(s.ctx, alice, "r", "", record("more", `1`)))
	if got := must(s.db.JournalRun(s.ctx, alice, "r")).State; got != store.JournalWaiting {
		s.Errorf("the state is %s", got)
	}
	s.ok(s.db.AppendOutside(s.ctx, alice, "r", store.JournalOpen, record("answer", `1`)))
	if got := must(s.db.JournalRun(s.ctx, alice, "r")).State; got != store.JournalOpen {
		s.Errorf("the state after an answer is %s", got)
	}
	for _, row := range []struct {
		seen int64
		want string
	}{{4, store.JournalWaiting}, {3, store.JournalOpen}, {0, store.JournalWaiting}} {
		l = must(s.db.ClaimJournal(s.ctx, alice, "r", "me", noon, noon.Add(time.Hour)))
		must(s.db.AppendJournal(s.ctx, l,
			&store.JournalChange{State: store.JournalWaiting, Seen: row.seen, Release: true}))
		if got := must(s.db.JournalRun(s.ctx, alice, "r")).State; got != row.want {
			s.Errorf("%d of 4 records seen: the state is %s, want %s", row.seen, got, row.want)
		}
	}
	l = must(s.db.ClaimJournal(s.ctx, alice, "r", "me", noon, noon.Add(time.Hour)))
	must(s.db.AppendJournal(s.ctx, l, &store.JournalChange{State: store.JournalOver, Release: true}))
	s.is(s.db.AppendOutside(s.ctx, alice, "r", "", record("late", `1`)), store.ErrConflict, "a word to a run that is over")
	s.is(s.db.AppendOutside(s.ctx, alice, "none", "", record("late", `1`)), store.ErrNotFound, "a record for an unknown run")
	for _, r := range must(s.db.JournalRecords(s.ctx, alice, "r", 1)) {
		if r.Fence != 0 {
			s.Errorf("record %s from outside has fence %d", r.Key, r.Fence)
		}
	}
}

// atomic tests that all of several records are stored or none.
func (s *journalSuite) atomic() {
	l := s.begin("r")
	for _, batch := range [][]store.Record{{record("a", `1`), record("begin", `1`)}, {record("a", `1`), record("a", `1`)}} {
		_, err := s.db.AppendJournal(s.ctx, l, &store.JournalChange{State: store.JournalOver}, batch...)
		s.is(err, store.ErrConflict, "a key that is there")
	}
	head := must(s.db.JournalRun(s.ctx, alice, "r"))
	if head.Records != 1 || head.State != store.JournalOpen || len(must(s.db.JournalRecords(s.ctx, alice, "r", 0))) != 1 {
		s.Errorf("records were stored: %+v", head)
	}
	_, err := s.db.BeginJournal(s.ctx, alice, store.JournalRun{ID: "twice", State: store.JournalOpen}, "me", noon,
		record("a", `1`), record("a", `1`))
	s.is(err, store.ErrConflict, "a run that begins with a key twice")
	_, err = s.db.JournalRun(s.ctx, alice, "twice")
	s.is(err, store.ErrNotFound, "that run")
}

func (s *journalSuite) lists() {
	for _, id := range []string{"c", "a", "b"} {
		l := s.begin(id)
		if id == "b" {
			must(s.db.AppendJournal(s.ctx, l, &store.JournalChange{State: store.JournalWaiting, Release: true}))
		}
	}
	must(s.db.BeginJournal(s.ctx, bob, store.JournalRun{ID: "d", State: store.JournalOpen}, "me", noon))
	ids := func(runs []store.JournalRun) string {
		var out []string
		for _, r := range runs {
			out = append(out, r.ID)
		}
		return strings.Join(out, " ")
	}
	for _, q := range []struct {
		state string
		page  store.Page
		want  string
	}{{"", store.Page{}, "a b c"}, {"", store.Page{Limit: 2}, "a b"}, {"", store.Page{After: "b"}, "c"},
		{store.JournalWaiting, store.Page{}, "b"}, {store.JournalOver, store.Page{}, ""}} {
		if got := ids(must(s.db.JournalRuns(s.ctx, alice, q.state, q.page))); got != q.want {
			s.Errorf("state %q, %+v: %q, want %q", q.state, q.page, got, q.want)
		}
	}
	if got := ids(must(s.db.AbandonedRuns(s.ctx, noon, 0))); got != "d" {
		s.Errorf("abandoned at noon: %q", got)
	}
	got := strings.Fields(ids(must(s.db.AbandonedRuns(s.ctx, noon.Add(time.Hour), 0))))
	slices.Sort(got)
	if strings.Join(got, " ") != "a c d" {
		s.Errorf("abandoned an hour later: %q", got)
	}
	if got := must(s.db.AbandonedRuns(s.ctx, noon.Add(time.Hour), 1)); len(got) != 1 {
		s.Errorf("%d runs, want 1", len(got))
	}
	l := must(s.db.ClaimJournal(s.ctx, alice, "c", "me", noon.Add(time.Hour), noon.Add(time.Hour)))
	must(s.db.AppendJournal(s.ctx, l, &store.JournalChange{State: store.JournalOver, Release: true}))
	got = nil
	for r, err := range s.db.UnendedRuns(s.ctx) {
		s.ok(err)
		got = append(got, r.Scope.User+":"+r.ID+":"+r.State)
	}
	slices.Sort(got)
	if got := strings.Join(got, " "); got != alice.User+":a:open "+alice.User+":b:waiting "+bob.User+":d:open" {
		s.Errorf("not over: %q", got)
	}
	_, err := s.db.JournalRun(s.ctx, bob, "a")
	s.is(err, store.ErrNotFound, "another's run")
	_, err = s.db.JournalRecords(s.ctx, bob, "a", 0)
	s.is(err, store.ErrNotFound, "its records")
	s.is(s.db.AppendOutside(s.ctx, bob, "a", "", record("x", `1`)), store.ErrNotFound, "a word to it")
	s.is(s.db.DeleteJournal(s.ctx, bob, "a"), store.ErrNotFound, "deleting it")
}

// race tests that one of many concurrent claims of a run succeeds, and that no concurrent append
// under one lease is lost.
func (s *journalSuite) race() {
	s.begin("r")
	var wg sync.WaitGroup
	won := make([]store.Lease, 8)
	for i := range won {
		wg.Go(func() {
			l, err := s.db.ClaimJournal(s.ctx, alice, "r", fmt.Sprint("owner", i), noon.Add(time.Hour), noon.Add(2*time.Hour))
			if err == nil {
				won[i] = l
			}
		})
	}
	wg.Wait()
	won = slices.DeleteFunc(won, func(l store.Lease) bool { return l.Fence == 0 })
	if len(won) != 1 {
		s.Fatalf("%d got the lease", len(won))
	}
	for i := range 8 {
		wg.Go(func() {
			if _, err := s.db.AppendJournal(s.ctx, won[0], nil, record(fmt.Sprint("k", i), `1`)); err != nil {
				s.Error(err)
			}
			if err := s.db.AppendOutside(s.ctx, alice, "r", "", record(fmt.Sprint("o", i), `1`)); err != nil {
				s.Error(err)
			}
		})
	}
	wg.Wait()
	all := must(s.db.JournalRecords(s.ctx, alice, "r", 0))
	prev := ""
	if len(all) != 17 {
		s.Errorf("%d records, want 17", len(all))
	}
	for _, r := range all {
		if r.Hash != r.Chain("r", prev) {
			s.Errorf("the chain breaks at %d", r.Seq)
		}
		prev = r.Hash
	}
}

// seals tests that each change of a head seals it as it was stored.
func (s *journalSuite) seals() {
	last := ""
	sealed := func(what string) {
		s.Helper()
		r := must(s.db.JournalRun(s.ctx, alice, "r"))
		if err := r.CheckSeal(); err != nil || r.Seal == "" || r.Seal == last {
			s.Errorf("after %s: %v, seal %q, before %q", what, err, r.Seal, last)
		}
		last, r.Task = r.Seal, r.Task+"!"
		if err := r.CheckSeal(); !errors.Is(err, store.ErrCorrupt) || !strings.HasSuffix(err.Error(), ": task") {
			s.Errorf("after %s, the task was changed: %v", what, err)
		}
	}
	l := s.begin("r")
	sealed("the beginning")
	must(s.db.AppendJournal(s.ctx, l, nil, record("a", `1`)))
	sealed("a record")
	must(s.db.RenewJournal(s.ctx, l, noon.Add(2*time.Minute)))
	sealed("a renewal")
	must(s.db.AppendJournal(s.ctx, l, &store.JournalChange{State: store.JournalWaiting, Summary: json.RawMessage(`{"stop": "pending"}`),
		Release: true}, record("b", `1`)))
	sealed("a stop")
	s.ok(s.db.AppendOutside(s.ctx, alice, "r", store.JournalOpen, record("c", `1`)))
	sealed("an answer")
	must(s.db.ClaimJournal(s.ctx, alice, "r", "other", noon, noon.Add(time.Hour)))
	sealed("a claim")
}

func (s *journalSuite) bad() {
	l := s.begin("r")
	for _, r := range []store.Record{record("", `1`), record(strings.Repeat("k", 1025), `1`), record("k", `{`),
		{Key: "k", Body: json.RawMessage(`1`)}} {
		if _, err := s.db.AppendJournal(s.ctx, l, nil, r); err == nil {
			s.Errorf("%+v was taken", r)
		}
		if err := s.db.AppendOutside(s.ctx, alice, "r", "", r); err == nil {
			s.Errorf("%+v was taken from outside", r)
		}
	}
	if _, err := s.db.BeginJournal(s.ctx, alice, store.JournalRun{State: store.JournalOpen}, "me", noon); err == nil {
		s.Error("a run without an ID was created")
	}
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	if _, err := s.db.AppendJournal(ctx, l, nil, record("k", `1`)); err == nil {
		s.Error("a record was taken under a context that has ended")
	}
	if n := len(must(s.db.JournalRecords(s.ctx, alice, "r", 0))); n != 1 {
		s.Errorf("%d records are stored, want 1", n)
	}
}
