package store

import (
	"context"
	"encoding/json"
	"time"
)

// Schedule is something to be done at times. What When and Task mean is its runner's to say.
type Schedule struct {
	ID          string          `json:"id"` // made by the store when ""
	Name        string          `json:"name,omitzero"`
	Description string          `json:"description,omitzero"`
	When        string          `json:"when"`
	Zone        string          `json:"zone,omitzero"` // an IANA zone; "": UTC
	Task        json.RawMessage `json:"task,omitzero"`
	Misfire     string          `json:"misfire,omitzero"` // what is done for times that were missed
	Enabled     bool            `json:"enabled"`
	Next        time.Time       `json:"next,omitzero"` // zero: never
	Version     int64           `json:"version"`       // counts the changes; set by the store
	Created     time.Time       `json:"created,omitzero"`
	Updated     time.Time       `json:"updated,omitzero"`
}

// Due is a schedule whose time has come, and whose it is.
type Due struct {
	Scope    Scope
	Schedule Schedule
}

// Claim is the right to do one occurrence of a schedule. Fence grows with each claim to it: whoever has an older one has lost it.
type Claim struct {
	Scope    Scope
	Schedule string
	Due      time.Time
	Owner    string
	Fence    int64
	Until    time.Time // then others may claim it, unless it was begun
}

// Occurrence is one time of a schedule, and what came of it.
type Occurrence struct {
	Schedule string    `json:"schedule"`
	Due      time.Time `json:"due"`
	Owner    string    `json:"owner"`
	State    string    `json:"state"`         // one of the Occurrence constants
	Run      string    `json:"run,omitzero"`  // the run that did it
	Text     string    `json:"text,omitzero"` // what came of it, or went wrong
	Began    time.Time `json:"began,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
}

// The states of an occurrence.
const (
	OccurrenceClaimed = "claimed" // by somebody who has not begun
	OccurrenceBegun   = "begun"   // whether it will end is not known
	OccurrenceDone    = "done"
	OccurrenceFailed  = "failed"
	OccurrenceSkipped = "skipped" // its time was missed
	OccurrenceUnknown = "unknown" // it was begun by somebody who is gone: it may have happened
)

// Schedules keeps schedules, and sees to it that no occurrence is done twice: it is claimed, then begun, then finished, and each step is
// refused to whoever lost the claim. A claim that was not begun can be taken over when its time is up; what was begun is never begun
// again, by nobody. Methods may be called concurrently, by several processes.
type Schedules interface {
	// PutSchedule keeps a new schedule (Version 0), or a change to that Version; else ErrConflict.
	PutSchedule(ctx context.Context, s Scope, v Schedule) (Schedule, error)
	// Schedule returns one.
	Schedule(ctx context.Context, s Scope, id string) (Schedule, error)
	// Schedules lists them by ID.
	Schedules(ctx context.Context, s Scope, p Page) ([]Schedule, error)
	// DeleteSchedule removes one with its occurrences.
	DeleteSchedule(ctx context.Context, s Scope, id string) error
	// Occurrences lists what was done, the newest first.
	Occurrences(ctx context.Context, s Scope, id string, limit int) ([]Occurrence, error)

	// DueSchedules lists enabled schedules of all scopes whose Next is not after now, the oldest first. It is for the runner, which acts for all.
	DueSchedules(ctx context.Context, now time.Time, limit int) ([]Due, error)
	// ClaimOccurrence claims an occurrence for owner until then; now is the owner's clock. ErrConflict when somebody else has it, ErrOver when it has
	// ended. What was begun under a claim whose time is up has ended too, as OccurrenceUnknown.
	ClaimOccurrence(ctx context.Context, s Scope, id string, due time.Time, owner string, now, until time.Time) (Claim, error)
	// BeginOccurrence says that the work starts now. ErrConflict: the claim was lost, do nothing.
	BeginOccurrence(ctx context.Context, c Claim, now time.Time) error
	// RenewClaim moves the end of a claim. ErrConflict: it was lost.
	RenewClaim(ctx context.Context, c Claim, until time.Time) (Claim, error)
	// FinishOccurrence keeps what came of it (State, Run, Text, Ended), of what is OccurrenceUnknown too: whoever began it may still say. It moves the
	// schedule as MoveSchedule does. ErrConflict: the claim was lost.
	FinishOccurrence(ctx context.Context, c Claim, o Occurrence, next time.Time, enabled bool) error
	// MoveSchedule sets the Next of a schedule that is due at the time due or before; enabled false turns it off. One that was changed since is left alone.
	MoveSchedule(ctx context.Context, s Scope, id string, due, next time.Time, enabled bool) error
}
