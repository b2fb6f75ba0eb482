package store

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
)

// MemoryJournal is a Journal in memory, for tests and for trying out durable runs. The zero value
// is ready to use. It is safe for concurrent use and must not be copied.
type MemoryJournal struct {
	Ledger *Ledger // signs and anchors the runs; nil means neither

	mu   sync.Mutex
	runs map[journalID]*memoryRun
}

type journalID struct {
	scope Scope
	id    string
}

type memoryRun struct {
	head    JournalRun
	records []Record
	keys    map[string]bool
}

var _ Journal = (*MemoryJournal)(nil)

// BeginJournal creates a run.
func (m *MemoryJournal) BeginJournal(ctx context.Context, s Scope, r JournalRun, owner string, until time.Time,
	first ...Record) (Lease, error) {
	l := Lease{Scope: s, Run: r.ID, Owner: owner, Until: until}
	if owner != "" {
		l.Fence = 1
	}
	if err := checkJournal(ctx, s, r.ID, first); err != nil {
		return l, err
	}

	m.mu.Lock()
	defer m.mu.Unlock()
	id := journalID{s, r.ID}
	if m.runs[id] != nil {
		return l, fmt.Errorf("run %s exists: %w", r.ID, ErrConflict)
	}

	// The journal, not the caller, decides who owns a new run and what it contains.
	now := time.Now()
	r.Scope = s
	r.Owner = owner
	r.Fence = l.Fence
	r.Until = until
	r.Created = now
	r.Updated = now
	r.Records = 0
	r.Head = ""
	r.Lapses = 0

	run := &memoryRun{head: r, keys: map[string]bool{}}
	if err := run.add(m.Ledger, l.Fence, first); err != nil {
		return l, err
	}
	if m.runs == nil {
		m.runs = map[journalID]*memoryRun{}
	}
	m.runs[id] = run
	return l, m.seal(ctx, run, true)
}

// seal seals the head of a run, and anchors it. The caller holds the lock.
func (m *MemoryJournal) seal(ctx context.Context, r *memoryRun, anchor bool) (err error) {
	r.head.Seal, err = m.Ledger.Seal(r.head)
	if err == nil && anchor {
		err = m.Ledger.Store(ctx, r.head, false)
	}
	return err
}

// add appends all records or none.
func (r *memoryRun) add(l *Ledger, fence int64, records []Record) (err error) {
	for i, rec := range records {
		sameKey := func(o Record) bool { return o.Key == rec.Key }
		if r.keys[rec.Key] || slices.ContainsFunc(records[:i], sameKey) {
			return fmt.Errorf("run %s: record %s exists: %w", r.head.ID, rec.Key, ErrConflict)
		}
	}
	for _, rec := range records {
		rec.Seq = r.head.Records + 1
		rec.Fence = fence
		rec.Body = slices.Clone(rec.Body)
		rec.Hash = rec.Chain(r.head.ID, r.head.Head)
		rec.Signature, err = l.SignRecord(rec)
		if err != nil {
			return err
		}
		r.head.Records = rec.Seq
		r.head.Head = rec.Hash
		r.records = append(r.records, rec)
		r.keys[rec.Key] = true
	}
	r.head.Updated = time.Now()
	return nil
}

func checkJournal(ctx context.Context, s Scope, id string, records []Record) error {
	return cmp.Or(ctx.Err(), s.Check(), CheckID(id), CheckRecords(records))
}

// with checks its arguments and calls fn with the run, under the lock.
func (m *MemoryJournal) with(ctx context.Context, s Scope, id string, records []Record,
	fn func(*memoryRun) error) error {
	if err := checkJournal(ctx, s, id, records); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.runs[journalID{s, id}]
	if r == nil {
		return fmt.Errorf("run %s: %w", id, ErrNotFound)
	}
	return fn(r)
}

// JournalRun returns the head of a run.
func (m *MemoryJournal) JournalRun(ctx context.Context, s Scope, id string) (JournalRun, error) {
	var head JournalRun
	err := m.with(ctx, s, id, nil, func(r *memoryRun) error { head = r.head; return nil })
	return head, err
}

// JournalRuns lists heads by ID.
func (m *MemoryJournal) JournalRuns(ctx context.Context, s Scope, state string, p Page) ([]JournalRun, error) {
	if err := checkJournal(ctx, s, "-", nil); err != nil {
		return nil, err
	}
	return m.list(p.Size(), func(r JournalRun) bool {
		if r.Scope != s || r.ID <= p.After {
			return false
		}
		return state == "" || r.State == state
	}, func(a, b JournalRun) int { return strings.Compare(a.ID, b.ID) }), nil
}

// DueRuns lists the runs that a process should execute now.
func (m *MemoryJournal) DueRuns(ctx context.Context, d DueQuery) ([]JournalRun, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	all := m.list(math.MaxInt, func(r JournalRun) bool {
		return r.State == JournalOpen && !r.DueFrom().After(d.Now) && d.Wants(r.Agent)
	}, func(a, b JournalRun) int {
		return cmp.Or(a.DueFrom().Compare(b.DueFrom()), a.Created.Compare(b.Created))
	})

	// The runs of a tenant take its turns in order.
	turns := map[string]int{}
	turnOf := make(map[journalID]int, len(all))
	for _, r := range all {
		turnOf[journalID{r.Scope, r.ID}] = turns[r.Scope.Tenant]
		turns[r.Scope.Tenant]++
	}
	slices.SortStableFunc(all, func(a, b JournalRun) int {
		return cmp.Compare(turnOf[journalID{a.Scope, a.ID}], turnOf[journalID{b.Scope, b.ID}])
	})
	return all[:min(Page{Limit: d.Limit}.Size(), len(all))], nil
}

// UnendedRuns yields the runs of all scopes that are not over.
func (m *MemoryJournal) UnendedRuns(ctx context.Context) iter.Seq2[JournalRun, error] {
	return func(yield func(JournalRun, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(JournalRun{}, err)
			return
		}
		all := m.list(math.MaxInt, func(r JournalRun) bool { return r.State != JournalOver },
			func(a, b JournalRun) int { return a.Created.Compare(b.Created) })
		for _, r := range all {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (m *MemoryJournal) list(limit int, which func(JournalRun) bool, order func(a, b JournalRun) int) []JournalRun {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := []JournalRun{}
	for _, r := range m.runs {
		if which(r.head) {
			out = append(out, r.head)
		}
	}
	slices.SortFunc(out, order)
	return out[:min(limit, len(out))]
}

// ClaimJournal acquires the lease of a run.
func (m *MemoryJournal) ClaimJournal(ctx context.Context, s Scope, id, owner string, now, until time.Time) (Lease,
	error) {
	l := Lease{Scope: s, Run: id, Owner: owner, Until: until}
	err := m.with(ctx, s, id, nil, func(r *memoryRun) error {
		if r.head.Owner != "" && r.head.Until.After(now) {
			return fmt.Errorf("run %s is %s's until %s: %w", id, r.head.Owner,
				r.head.Until.UTC().Format(time.RFC3339), ErrConflict)
		}
		if r.head.Owner != "" { // its lease was not released
			r.head.Lapses++
		}
		r.head.Fence++
		r.head.Owner = owner
		r.head.Until = until
		l.Fence = r.head.Fence
		l.Lapses = r.head.Lapses
		return m.seal(ctx, r, true)
	})
	return l, err
}

// leased calls fn with the run of a valid lease, under the lock.
func (m *MemoryJournal) leased(ctx context.Context, l Lease, records []Record, fn func(*memoryRun) error) error {
	return m.with(ctx, l.Scope, l.Run, records, func(r *memoryRun) error {
		if r.head.Fence != l.Fence || r.head.Owner != l.Owner {
			return fmt.Errorf("the lease of run %s was lost: %w", l.Run, ErrConflict)
		}
		return fn(r)
	})
}

// RenewJournal changes the end of a lease, or releases the lease.
func (m *MemoryJournal) RenewJournal(ctx context.Context, l Lease, until time.Time) (head JournalRun, err error) {
	err = m.leased(ctx, l, nil, func(r *memoryRun) (err error) {
		r.head.Until = until
		if until.IsZero() {
			r.head.Owner = ""
		}
		err = m.seal(ctx, r, false)
		head = r.head
		return err
	})
	return head, err
}

// AppendJournal appends records under a lease.
func (m *MemoryJournal) AppendJournal(ctx context.Context, l Lease, c *JournalChange, records ...Record) (int64,
	error) {
	var last int64
	err := m.leased(ctx, l, records, func(r *memoryRun) error {
		before := r.head.Records
		if err := r.add(m.Ledger, l.Fence, records); err != nil {
			return err
		}
		if len(records) > 0 {
			r.head.Lapses = 0
		}
		if c != nil {
			r.head.State = c.StateAfter(before)
			r.head.Next = c.Next
			if c.Summary != nil {
				r.head.Summary = slices.Clone(c.Summary)
			}
			if c.Release {
				r.head.Owner = ""
				r.head.Until = time.Time{}
			}
		}
		last = r.head.Records
		return m.seal(ctx, r, true)
	})
	return last, err
}

// AppendOutside appends records without a lease.
func (m *MemoryJournal) AppendOutside(ctx context.Context, s Scope, id, state string, records ...Record) error {
	return m.with(ctx, s, id, records, func(r *memoryRun) error {
		if r.head.State == JournalOver {
			return fmt.Errorf("run %s is over: %w", id, ErrConflict)
		}
		if err := r.add(m.Ledger, 0, records); err != nil {
			return err
		}
		if state != "" && r.head.State == JournalWaiting {
			r.head.State = state
		}
		r.head.Next = time.Time{}
		return m.seal(ctx, r, true)
	})
}

// JournalRecords returns the records of a run.
func (m *MemoryJournal) JournalRecords(ctx context.Context, s Scope, id string, after int64) ([]Record, error) {
	var rest []Record
	err := m.with(ctx, s, id, nil, func(r *memoryRun) error {
		rest = slices.Clone(r.records[min(max(after, 0), int64(len(r.records))):])
		return nil
	})
	return rest, err
}

// DeleteJournal deletes a run with its records.
func (m *MemoryJournal) DeleteJournal(ctx context.Context, s Scope, id string) error {
	return m.with(ctx, s, id, nil, func(r *memoryRun) error {
		delete(m.runs, journalID{s, id})
		return m.Ledger.Store(ctx, r.head, true)
	})
}
