package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// Journal keeps durable runs: for each a chain of records to which only the owner of its lease may append, and which nobody changes. What Begin, Append
// and AppendOutside have taken is on disk when they return. Package durable says what the records mean. MemoryJournal is one for tests; store/sqlite
// keeps it in a file. Methods may be called concurrently, by several processes.
//
// A lease is fenced: its Fence grows with each claim, and whoever has an older one is refused, with ErrConflict, whatever his clock says.
type Journal interface {
	// BeginJournal begins a run with its first records, claimed for owner until then. ErrConflict when there is one of that ID.
	BeginJournal(ctx context.Context, s Scope, r JournalRun, owner string, until time.Time, first ...Record) (Lease, error)
	// JournalRun returns the head of a run.
	JournalRun(ctx context.Context, s Scope, id string) (JournalRun, error)
	// JournalRuns lists heads by ID; with a state, those in it alone.
	JournalRuns(ctx context.Context, s Scope, state string, p Page) ([]JournalRun, error)
	// AbandonedRuns lists the runs of all scopes that are JournalOpen and whose lease is over, the oldest first. It is for whoever takes over the runs of
	// the dead, and acts for all.
	AbandonedRuns(ctx context.Context, now time.Time, limit int) ([]JournalRun, error)
	// ClaimJournal takes the lease of a run for owner until then; now is the owner's clock. ErrConflict while somebody else's lease lasts.
	ClaimJournal(ctx context.Context, s Scope, id, owner string, now, until time.Time) (Lease, error)
	// RenewJournal moves the end of a lease, and returns the head: a zero until gives the lease up. ErrConflict: it was lost.
	RenewJournal(ctx context.Context, l Lease, until time.Time) (JournalRun, error)
	// AppendJournal appends records in one transaction, and, when c is not nil, changes the head. It returns the sequence number of the last. ErrConflict: the
	// lease was lost, or a Key is there already; nothing was kept.
	AppendJournal(ctx context.Context, l Lease, c *JournalChange, records ...Record) (int64, error)
	// AppendOutside appends records of somebody who does not have the lease: a decision, a message. With a state, the run is in it then if it was
	// JournalWaiting. ErrConflict: a Key is there already, or the run is JournalOver.
	AppendOutside(ctx context.Context, s Scope, id, state string, records ...Record) error
	// JournalRecords returns the records of a run with a Seq over after, in order.
	JournalRecords(ctx context.Context, s Scope, id string, after int64) ([]Record, error)
	// DeleteJournal removes a run with its records.
	DeleteJournal(ctx context.Context, s Scope, id string) error
}

// JournalRun is the head of a durable run.
type JournalRun struct {
	Scope   Scope           `json:"scope,omitzero"`
	ID      string          `json:"id"`
	Agent   string          `json:"agent,omitzero"`
	Task    string          `json:"task,omitzero"` // the beginning of what was asked
	State   string          `json:"state"`         // one of the Journal constants
	Summary json.RawMessage `json:"summary,omitzero"`
	Owner   string          `json:"owner,omitzero"` // of the lease; "": nobody
	Fence   int64           `json:"fence"`          // how often the run was claimed
	Until   time.Time       `json:"until,omitzero"` // when the lease ends
	Records int64           `json:"records"`        // how many there are
	Head    string          `json:"head"`           // the Hash of the last one
	Created time.Time       `json:"created,omitzero"`
	Updated time.Time       `json:"updated,omitzero"`
}

// The states of a durable run.
const (
	JournalOpen    = "open"    // it runs, or was left in the middle: see AbandonedRuns
	JournalWaiting = "waiting" // for an answer from outside
	JournalFailed  = "failed"  // by a fault that may pass: it can be resumed
	JournalOver    = "over"    // nothing more will happen
)

// JournalChange is a change to the head of a run.
type JournalChange struct {
	State   string
	Summary json.RawMessage // nil: as it was
	Release bool            // the lease is given up
}

// Lease is the right to append to a run.
type Lease struct {
	Scope Scope
	Run   string
	Owner string
	Fence int64
	Until time.Time
}

// Record is an entry of a journal.
type Record struct {
	Seq     int64           `json:"seq"` // from 1; set by the journal
	Key     string          `json:"key"` // what it is about; each is there once in a run
	Kind    string          `json:"kind"`
	Fence   int64           `json:"fence"`            // of the lease under which it was written; 0: from outside; set by the journal
	At      time.Time       `json:"at"`               // by the clock of who wrote it
	Elapsed time.Duration   `json:"elapsed,omitzero"` // since who wrote it took the lease
	Body    json.RawMessage `json:"body"`
	Hash    string          `json:"hash"` // of this record and all before it: see Chain; set by the journal
}

// Chain returns the Hash of r in the run of that ID when prev is the one of the record before; "" for the first.
func (r Record) Chain(run, prev string) string {
	body := sha256.Sum256(r.Body)
	h := sha256.New()
	for _, part := range [...]string{prev, run, r.Key, r.Kind} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	fmt.Fprintf(h, "%d %d %d %d %x", r.Seq, r.Fence, r.At.UnixNano(), r.Elapsed, body)
	return hex.EncodeToString(h.Sum(nil))
}

// CheckRecords reports a record that no journal takes.
func CheckRecords(records []Record) error {
	for i, r := range records {
		switch {
		case r.Key == "" || len(r.Key) > 1024:
			return fmt.Errorf("record %d has a key of %d bytes; 1 to 1024 are right", i, len(r.Key))
		case r.Kind == "":
			return fmt.Errorf("record %s has no kind", r.Key)
		case !json.Valid(r.Body):
			return fmt.Errorf("the body of record %s is no JSON", r.Key)
		}
	}
	return nil
}
