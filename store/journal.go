package store

// journal.go: Journal, the store of durable runs, in the SQL table journals. The table runs holds
// traces; see traces.go.

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/pawl-go/pawl/internal/agentname"
)

// Journal stores durable runs. Each run is a chain of immutable records; only the owner of its
// lease may append. Records passed to Begin, Append and AppendOutside are on disk when these
// methods return. Package durable defines the meaning of the records. MemoryJournal is an
// implementation for tests; packages store/sqlite and store/postgres persist runs. Methods must be
// safe for concurrent use, also by several processes.
//
// A lease is fenced: its Fence grows with each claim. A holder with an older Fence is refused with
// ErrConflict, independent of its clock.
//
// The head of a run is sealed at each change. A change of a run whose head differs from its seal is
// refused with ErrCorrupt.
type Journal interface {
	// BeginJournal creates a run with its first records and a lease for owner until the time until.
	// An empty owner means no lease: the run has the Fence 0 until the first claim. It returns
	// ErrConflict if the ID exists.
	BeginJournal(ctx context.Context, s Scope, r JournalRun, owner string, until time.Time, first ...Record) (Lease,
		error)
	// JournalRun returns the head of a run.
	JournalRun(ctx context.Context, s Scope, id string) (JournalRun, error)
	// JournalRuns lists heads by ID. A state restricts the list to runs in that state.
	JournalRuns(ctx context.Context, s Scope, state string, p Page) ([]JournalRun, error)
	// DueRuns lists the runs of all scopes that a process should execute now: runs that are
	// JournalOpen, without a valid lease, and whose Next is not in the future. Tenants take turns;
	// of a tenant, the run that has been due longest is first. Runs of agents that are not wanted
	// cost nothing.
	DueRuns(ctx context.Context, d DueQuery) ([]JournalRun, error)
	// UnendedRuns yields the heads of the runs of all scopes that are not JournalOver, in any
	// order. An error ends it.
	UnendedRuns(ctx context.Context) iter.Seq2[JournalRun, error]
	// ClaimJournal acquires the lease of a run for owner until the time until. now is the owner's
	// clock. It returns ErrConflict while the lease of another owner is valid. JournalRun.Next does
	// not matter: a person may resume a run early.
	ClaimJournal(ctx context.Context, s Scope, id, owner string, now, until time.Time) (Lease, error)
	// RenewJournal changes the end of a lease and returns the head. A zero until releases the
	// lease. ErrConflict means that the lease was lost.
	RenewJournal(ctx context.Context, l Lease, until time.Time) (JournalRun, error)
	// AppendJournal appends records in one transaction and changes the head if c is not nil. It
	// returns the sequence number of the last record. ErrConflict means that the lease was lost or
	// a Key exists already; nothing was stored then.
	AppendJournal(ctx context.Context, l Lease, c *JournalChange, records ...Record) (int64, error)
	// AppendOutside appends records of a writer without a lease: a decision, or a message. A
	// JournalWaiting run changes to state unless state is empty. ErrConflict means that a Key
	// exists already, or that the run is JournalOver.
	AppendOutside(ctx context.Context, s Scope, id, state string, records ...Record) error
	// JournalRecords returns the records of a run with a Seq greater than after, in order.
	JournalRecords(ctx context.Context, s Scope, id string, after int64) ([]Record, error)
	// DeleteJournal deletes a run with its records, its artifacts and its trace.
	DeleteJournal(ctx context.Context, s Scope, id string) error
}

// JournalRun is the head of a durable run.
type JournalRun struct {
	Scope   Scope           `json:"scope,omitzero"`   // the owner of the run
	ID      string          `json:"id"`               // unique in the scope
	Agent   string          `json:"agent,omitzero"`   // the name of the agent; "" means no name
	Task    string          `json:"task,omitzero"`    // the beginning of the user's request
	State   string          `json:"state"`            // one of the Journal constants
	Summary json.RawMessage `json:"summary,omitzero"` // of the last stop; nil means none
	Owner   string          `json:"owner,omitzero"`   // owner of the lease; empty means no owner
	Fence   int64           `json:"fence"`            // number of claims
	Until   time.Time       `json:"until,omitzero"`   // end of the lease
	Records int64           `json:"records"`          // number of records
	Head    string          `json:"head"`             // Hash of the last record
	Created time.Time       `json:"created,omitzero"` // set by the journal
	Updated time.Time       `json:"updated,omitzero"` // at the last change, by the journal
	// Next is the time from which an open run is due: see Journal.DueRuns. Zero means at once. A
	// change of the state sets it, and a record from outside makes the run due at once.
	Next time.Time `json:"next,omitzero"`
	// Lapses is the number of leases in a row that expired, and were not released, before their
	// owner appended a record: its process died, or could not write. The journal counts them.
	Lapses int64 `json:"lapses,omitzero"`
	// Seal has digests of all other columns, and a signature if there is a key: see Ledger. The
	// journal sets it. Empty means that the head was last written before there were seals.
	Seal string `json:"-"`
}

// Queued reports whether the run has not been executed yet.
func (r JournalRun) Queued() bool { return r.State == JournalOpen && r.Fence == 0 }

// DueQuery is a question for the runs that a process should execute: see Journal.DueRuns.
type DueQuery struct {
	// Now is the clock of the caller. A database with a clock of its own uses that one.
	Now time.Time
	// Agents are the agents whose runs are wanted. NAME also means the runs of NAME@VERSION and of
	// the agents whose names begin with NAME/. Nil means all runs.
	Agents []string
	// Limit is the largest number of runs. 0 means 100.
	Limit int
}

// Wants reports whether the runs of an agent are wanted.
func (d *DueQuery) Wants(agent string) bool {
	if d.Agents == nil {
		return true
	}
	wanted := func(name string) bool { return agentname.Belongs(agent, name) }
	return slices.ContainsFunc(d.Agents, wanted)
}

// DueFrom returns the time from which an open run is due: when its lease has expired, and Next has
// come. The zero time means at once.
func (r JournalRun) DueFrom() time.Time {
	if r.Next.After(r.Until) {
		return r.Next
	}
	return r.Until
}

// The states of a durable run.
const (
	JournalOpen    = "open"    // it is executing, was interrupted, or waits for Next: see DueRuns
	JournalWaiting = "waiting" // pending: it waits for an answer from outside
	JournalFailed  = "failed"  // stopped by an error that may be temporary: it can be resumed
	JournalOver    = "over"    // ended: nothing more will happen
)

// JournalChange is a change to the head of a run.
type JournalChange struct {
	State string // the new state, one of the Journal constants
	// Seen is the Seq of the last record that the writer knows. If the run has later records, the
	// State JournalWaiting becomes JournalOpen, because one of them may be the answer. 0 means no
	// check.
	Seen    int64
	Summary json.RawMessage // nil means unchanged
	Next    time.Time       // the new JournalRun.Next; zero means that the run is due at once
	Release bool            // release the lease
}

// StateAfter returns the state to store for a run that has this number of records before the
// change.
func (c *JournalChange) StateAfter(records int64) string {
	if c.State == JournalWaiting && c.Seen > 0 && records > c.Seen {
		return JournalOpen
	}
	return c.State
}

// Lease is the right to append to a run.
type Lease struct {
	Scope Scope     // of the run
	Run   string    // the ID of the run
	Owner string    // identifies the holder; each claim has its own
	Fence int64     // of the claim, from 1; 0 means no lease
	Until time.Time // its end, unless it is renewed
	// Lapses is JournalRun.Lapses at the claim, with the lease that this one follows.
	Lapses int64
}

// Record is an entry of a journal.
type Record struct {
	Seq  int64  `json:"seq"`  // from 1; set by the journal
	Key  string `json:"key"`  // subject of the record; unique in a run
	Kind string `json:"kind"` // what the record is; package durable defines the kinds
	// Fence of the lease under which it was written; 0 means without lease; set by the journal
	Fence   int64           `json:"fence"`
	At      time.Time       `json:"at"`               // by the clock of the writer
	Elapsed time.Duration   `json:"elapsed,omitzero"` // time since the writer acquired the lease
	Body    json.RawMessage `json:"body"`             // a JSON value, whose form depends on Kind
	// Hash is the hash of this record and all before it: see Chain. The journal sets it.
	Hash string `json:"hash"`
	// Signature is the signature of a record without a lease: see Ledger. The journal sets it.
	Signature string `json:"signature,omitzero"`
}

// Chain returns the Hash of r in the run with that ID. prev is the Hash of the record before, or
// empty for the first.
func (r Record) Chain(run, prev string) string {
	b := make([]byte, 0, 512)
	for _, part := range [...]string{prev, run, r.Key, r.Kind} {
		b = appendPart(b, part)
	}
	body := sha256.Sum256(r.Body)
	b = fmt.Appendf(b, "%d %d %d %d %x", r.Seq, r.Fence, r.At.UnixNano(), r.Elapsed, body)
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// CheckRecords returns an error for a record that journals do not accept.
func CheckRecords(records []Record) error {
	for i, r := range records {
		switch {
		case r.Key == "" || len(r.Key) > 1024:
			return fmt.Errorf("record %d has a key of %d bytes; want 1 to 1024", i, len(r.Key))
		case r.Kind == "":
			return fmt.Errorf("record %s has no kind", r.Key)
		case !json.Valid(r.Body):
			return fmt.Errorf("the body of record %s is not JSON", r.Key)
		}
	}
	return nil
}
