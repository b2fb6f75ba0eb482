package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl/store"
)

func journalParts() []part[store.Journal] {
	return []part[store.Journal]{
		{"life", journalLife},
		{"chain", journalChain},
		{"leases", journalLeases},
		{"outside", journalOutside},
		{"all or nothing", journalAtomic},
		{"lists", journalLists},
		{"due", journalDue},
		{"lapses", journalLapses},
		{"race", journalRace},
		{"seals", journalSeals},
		{"scopes", func(s *suite[store.Journal]) { s.scopes(journalItems(s.db)) }},
		{"property", func(s *suite[store.Journal]) { s.property(journalItems(s.db)) }},
		{"bad input", journalBad},
	}
}

// journalItems are runs with one record.
func journalItems(db store.Journal) items {
	return items{
		kind: "journal",
		put: func(ctx context.Context, sc store.Scope, name, words string) error {
			if err := db.DeleteJournal(ctx, sc, name); err != nil && !isAbsent(err) {
				return err
			}
			run := store.JournalRun{ID: name, Task: words, State: store.JournalOpen}
			_, err := db.BeginJournal(ctx, sc, run, "me", noon.Add(time.Hour), record(words, `1`))
			return err
		},
		remove: db.DeleteJournal,
		get: func(ctx context.Context, sc store.Scope, name string) (string, error) {
			run, err := db.JournalRun(ctx, sc, name)
			if err != nil {
				return "", err
			}
			records, err := db.JournalRecords(ctx, sc, name, 0)
			if err != nil || len(records) != 1 || records[0].Key != run.Task {
				return "", fmt.Errorf("the records of %q are %+v, %v", run.Task, records, err)
			}
			return run.Task, nil
		},
		list: func(ctx context.Context, sc store.Scope) ([]string, error) {
			return wordsOf(func(v store.JournalRun) string { return v.Task })(db.JournalRuns(ctx, sc, "",
				store.Page{}))
		},
	}
}

func record(key, body string) store.Record {
	return store.Record{Key: key, Kind: "test", At: noon, Elapsed: time.Second, Body: json.RawMessage(body)}
}

// begin creates a run of Alice with one record.
func begin(s *suite[store.Journal], id string) store.Lease {
	s.Helper()
	run := store.JournalRun{ID: id, Agent: "clerk", Task: "the task", State: store.JournalOpen}
	return must(s.db.BeginJournal(s.ctx, alice, run, "me", noon.Add(time.Minute), record("begin", `{"n":1}`)))
}

func journalLife(s *suite[store.Journal]) {
	l := begin(s, "r")
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
		s.Fatalf("the records are %s", got)
	}
	if string(all[1].Body) != large || string(all[2].Body) != `[1, 2]` || string(all[3].Body) != large {
		s.Errorf("a body is not what it was, byte for byte")
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

func journalChain(s *suite[store.Journal]) {
	l := begin(s, "r")
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

func journalLeases(s *suite[store.Journal]) {
	queued := must(s.db.BeginJournal(s.ctx, alice, store.JournalRun{ID: "q", State: store.JournalOpen}, "",
		time.Time{},
		record("begin", `1`)))
	if head := must(s.db.JournalRun(s.ctx, alice, "q")); queued.Fence != 0 || !head.Queued() || head.Owner != "" {
		s.Errorf("begun without an owner: %+v", head)
	}
	if err := must(s.db.JournalRun(s.ctx, alice, "q")).CheckSeal(); err != nil {
		s.Errorf("begun without an owner: %v", err)
	}
	if left := must(s.db.DueRuns(s.ctx, store.DueQuery{Now: noon})); len(left) != 1 || left[0].ID != "q" {
		s.Errorf("a run begun without an owner is not listed: %+v", left)
	}
	if l := must(s.db.ClaimJournal(s.ctx, alice, "q", "me", noon, noon.Add(time.Hour))); l.Fence != 1 {
		s.Errorf("the first claim has the fence %d", l.Fence)
	}
	first := begin(s, "r")
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

func journalOutside(s *suite[store.Journal]) {
	l := begin(s, "r")
	s.ok(s.db.AppendOutside(s.ctx, alice, "r", store.JournalOpen, record("said", `1`)))
	s.is(s.db.AppendOutside(s.ctx, alice, "r", store.JournalOpen, record("said", `2`)), store.ErrConflict,
		"the same key")
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
	s.is(s.db.AppendOutside(s.ctx, alice, "r", "", record("late", `1`)), store.ErrConflict,
		"a word to a run that is over")
	s.is(s.db.AppendOutside(s.ctx, alice, "none", "", record("late", `1`)), store.ErrNotFound,
		"a record for an unknown run")
	for _, r := range must(s.db.JournalRecords(s.ctx, alice, "r", 1)) {
		if r.Fence != 0 {
			s.Errorf("record %s from outside has fence %d", r.Key, r.Fence)
		}
	}
}

// journalAtomic tests that all of several records are stored or none.
func journalAtomic(s *suite[store.Journal]) {
	l := begin(s, "r")
	for _, batch := range [][]store.Record{{record("a", `1`), record("begin", `1`)}, {record("a", `1`),
		record("a", `1`)}} {
		_, err := s.db.AppendJournal(s.ctx, l, &store.JournalChange{State: store.JournalOver}, batch...)
		s.is(err, store.ErrConflict, "a key that is there")
	}
	head := must(s.db.JournalRun(s.ctx, alice, "r"))
	if head.Records != 1 || head.State != store.JournalOpen || len(must(s.db.JournalRecords(s.ctx, alice, "r",
		0))) != 1 {
		s.Errorf("records were stored: %+v", head)
	}
	_, err := s.db.BeginJournal(s.ctx, alice, store.JournalRun{ID: "twice", State: store.JournalOpen}, "me", noon,
		record("a", `1`), record("a", `1`))
	s.is(err, store.ErrConflict, "a run that begins with a key twice")
	_, err = s.db.JournalRun(s.ctx, alice, "twice")
	s.is(err, store.ErrNotFound, "that run")
}

// idsOf returns the IDs of runs.
func idsOf(runs []store.JournalRun) string {
	var out []string
	for _, r := range runs {
		out = append(out, r.ID)
	}
	return strings.Join(out, " ")
}

func journalLists(s *suite[store.Journal]) {
	for _, id := range []string{"c", "a", "b"} {
		l := begin(s, id)
		if id == "b" {
			must(s.db.AppendJournal(s.ctx, l, &store.JournalChange{State: store.JournalWaiting, Release: true}))
		}
	}
	must(s.db.BeginJournal(s.ctx, bob, store.JournalRun{ID: "d", State: store.JournalOpen}, "me", noon))
	for _, q := range []struct {
		state string
		page  store.Page
		want  string
	}{{"", store.Page{}, "a b c"}, {"", store.Page{Limit: 2}, "a b"}, {"", store.Page{After: "b"}, "c"},
		{store.JournalWaiting, store.Page{}, "b"}, {store.JournalOver, store.Page{}, ""}} {
		if got := idsOf(must(s.db.JournalRuns(s.ctx, alice, q.state, q.page))); got != q.want {
			s.Errorf("state %q, %+v: %q, want %q", q.state, q.page, got, q.want)
		}
	}
	l := must(s.db.ClaimJournal(s.ctx, alice, "c", "me", noon.Add(time.Hour), noon.Add(time.Hour)))
	must(s.db.AppendJournal(s.ctx, l, &store.JournalChange{State: store.JournalOver, Release: true}))
	var got []string
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

// journalDue tests which runs a process should execute, and in which order.
func journalDue(s *suite[store.Journal]) {
	enqueue := func(sc store.Scope, id, agent string) {
		run := store.JournalRun{ID: id, Agent: agent, State: store.JournalOpen}
		must(s.db.BeginJournal(s.ctx, sc, run, "", time.Time{}, record("begin", `1`)))
	}
	other := store.Scope{Tenant: alice.Tenant + "2", User: "carol"}
	for i := range 5 {
		enqueue(alice, fmt.Sprint("a", i), "clerk")
		enqueue(other, fmt.Sprint("b", i), "absent")
	}
	enqueue(other, "c0", "clerk@2")
	enqueue(other, "c1", "clerk/side")
	enqueue(other, "c2", "clerks")

	// A run that waits for its time, a run with a lease, and a run that is over are not due.
	l := must(s.db.ClaimJournal(s.ctx, alice, "a3", "me", noon, noon.Add(time.Minute)))
	must(s.db.AppendJournal(s.ctx, l,
		&store.JournalChange{State: store.JournalOpen, Next: noon.Add(10 * time.Minute), Release: true}, record("x", `1`)))
	must(s.db.ClaimJournal(s.ctx, alice, "a4", "me", noon, noon.Add(time.Minute)))
	l = must(s.db.ClaimJournal(s.ctx, alice, "a2", "me", noon, noon.Add(time.Minute)))
	must(s.db.AppendJournal(s.ctx, l, &store.JournalChange{State: store.JournalOver, Release: true}))
	if head := must(s.db.JournalRun(s.ctx, alice, "a3")); !head.DueFrom().Equal(noon.Add(10 * time.Minute)) {
		s.Errorf("the waiting run is due from %v", head.DueFrom())
	}

	clerk := []string{"clerk"}
	for _, row := range []struct {
		name   string
		now    time.Time
		agents []string
		limit  int
		want   string
	}{
		{"tenants take turns", noon, clerk, 0, "a0 c0 a1 c1"},
		{"the limit", noon, clerk, 2, "a0 c0"},
		{"another agent", noon, []string{"clerks"}, 0, "c2"},
		{"no agent", noon, []string{}, 0, ""},
		{"an agent without runs", noon, []string{"cl", "nobody"}, 0, ""},
		{"two agents", noon, []string{"absent", "clerks"}, 3, "b0 b1 b2"},
		{"every agent", noon, nil, 0, "a0 b0 a1 b1 b2 b3 b4 c0 c1 c2"},
		{"when the lease has expired", noon.Add(time.Minute), clerk, 0, "a0 c0 a1 c1 a4"},
		{"when its time has come", noon.Add(10 * time.Minute), clerk, 0, "a0 c0 a1 c1 a4 a3"},
	} {
		d := store.DueQuery{Now: row.now, Agents: row.agents, Limit: row.limit}
		if got := idsOf(must(s.db.DueRuns(s.ctx, d))); got != row.want {
			s.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}

	// A word from outside, such as a cancellation, wakes a run.
	s.ok(s.db.AppendOutside(s.ctx, alice, "a3", "", record("cancel", `1`)))
	head := must(s.db.JournalRun(s.ctx, alice, "a3"))
	if err := head.CheckSeal(); err != nil || !head.Next.IsZero() {
		s.Errorf("after a word from outside: next %v, %v", head.Next, err)
	}
}

// journalLapses tests that the leases are counted whose owners died without a record.
func journalLapses(s *suite[store.Journal]) {
	begin(s, "r")
	at := noon
	claim := func(want int64) store.Lease {
		s.Helper()
		at = at.Add(time.Hour)
		l := must(s.db.ClaimJournal(s.ctx, alice, "r", "me", at, at.Add(time.Minute)))
		head := must(s.db.JournalRun(s.ctx, alice, "r"))
		if err := head.CheckSeal(); l.Lapses != want || head.Lapses != want || err != nil {
			s.Errorf("the lease says %d lapses, and the head %d, want %d: %v", l.Lapses, head.Lapses, want, err)
		}
		return l
	}
	claim(1)
	l := claim(2)
	must(s.db.RenewJournal(s.ctx, l, at.Add(2*time.Minute))) // a sign of life, and no progress
	l = claim(3)
	must(s.db.RenewJournal(s.ctx, l, time.Time{}))
	l = claim(3) // the lease was released
	must(s.db.AppendJournal(s.ctx, l, nil, record("a", `1`)))
	claim(1)
}

// journalRace tests that one of many concurrent claims of a run succeeds, and that no concurrent
// append under one lease is lost.
func journalRace(s *suite[store.Journal]) {
	begin(s, "r")
	var wg sync.WaitGroup
	won := make([]store.Lease, 8)
	for i := range won {
		wg.Go(func() {
			l, err := s.db.ClaimJournal(s.ctx, alice, "r", fmt.Sprint("owner", i), noon.Add(time.Hour),
				noon.Add(2*time.Hour))
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
				s.Errorf("%v", err)
			}
			if err := s.db.AppendOutside(s.ctx, alice, "r", "", record(fmt.Sprint("o", i), `1`)); err != nil {
				s.Errorf("%v", err)
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

// journalSeals tests that each change of a head seals it as it was stored.
func journalSeals(s *suite[store.Journal]) {
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
	l := begin(s, "r")
	sealed("the beginning")
	must(s.db.AppendJournal(s.ctx, l, nil, record("a", `1`)))
	sealed("a record")
	must(s.db.RenewJournal(s.ctx, l, noon.Add(2*time.Minute)))
	sealed("a renewal")
	must(s.db.AppendJournal(s.ctx, l, &store.JournalChange{State: store.JournalWaiting,
		Summary: json.RawMessage(`{"stop": "pending"}`),
		Release: true}, record("b", `1`)))
	sealed("a stop")
	s.ok(s.db.AppendOutside(s.ctx, alice, "r", store.JournalOpen, record("c", `1`)))
	sealed("an answer")
	must(s.db.ClaimJournal(s.ctx, alice, "r", "other", noon, noon.Add(time.Hour)))
	sealed("a claim")
}

func journalBad(s *suite[store.Journal]) {
	l := begin(s, "r")
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
		s.Errorf("a run without an ID was created")
	}
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	if _, err := s.db.AppendJournal(ctx, l, nil, record("k", `1`)); err == nil {
		s.Errorf("a record was taken under a context that has ended")
	}
	if n := len(must(s.db.JournalRecords(s.ctx, alice, "r", 0))); n != 1 {
		s.Errorf("%d records are stored, want 1", n)
	}
}
