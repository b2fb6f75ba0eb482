package record

// history.go: History, what the records of a run add up to.

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// History is the records of a run, by subject.
type History struct {
	// The chain.
	Records []store.Record
	Head    string // the hash of the last record

	// The run.
	Begin      *Begin
	Programs   map[string]Program // by the key of the run, which may be nested
	End        *End               // the last stop; nil means that it has not stopped
	FailedEnds int                // the number of ends as pawl.StopFailed
	Cancelled  bool
	RestoredAt int64  // the Seq of the last restore from a backup; 0 means none
	Trace      string // of the last attempt that has one

	// Its requests, by Request.Key.
	Replies    map[llm.Key]*Reply
	RepliedAt  map[llm.Key]time.Time
	Background map[llm.Key]*Background // the last reply that the provider computes
	Failed     map[llm.Key]Failure     // of all attempts
	Steered    map[llm.Key]*Messages   // the messages that the request received

	// Its calls, by their keys.
	Outcomes  map[llm.Key]*Outcome
	Attempts  map[llm.Key][]Attempt
	Questions map[llm.Key][]Question

	// From outside.
	Incoming []Incoming
	Received map[string]bool // Incoming.Key of messages that a request received

	leases []span // of the processes that have worked on the run, one after the other
}

// span is how long the process with a lease worked on the run.
type span struct {
	fence   int64
	elapsed int64 // in ns, until its last record
}

// Load reads the records of a run from j. Approvals that have expired at the time now do not count.
func Load(ctx context.Context, j store.Journal, s store.Scope, id string, now time.Time) (*History, error) {
	records, err := j.JournalRecords(ctx, s, id, 0)
	if err != nil {
		return nil, err
	}
	h, err := Read(id, records)
	if err != nil {
		return nil, err
	}
	h.Expire(now)
	return h, nil
}

// Read builds the history of a run, and checks its chain.
func Read(run string, records []store.Record) (*History, error) {
	h := &History{
		Programs:   map[string]Program{},
		Replies:    map[llm.Key]*Reply{},
		RepliedAt:  map[llm.Key]time.Time{},
		Background: map[llm.Key]*Background{},
		Outcomes:   map[llm.Key]*Outcome{},
		Attempts:   map[llm.Key][]Attempt{},
		Questions:  map[llm.Key][]Question{},
		Steered:    map[llm.Key]*Messages{},
		Failed:     map[llm.Key]Failure{},
		Received:   map[string]bool{},
	}
	for _, r := range records {
		if err := h.add(run, r); err != nil {
			return nil, err
		}
	}
	if h.Begin == nil {
		return nil, fmt.Errorf("run %s: %w: it has no beginning", run, store.ErrCorrupt)
	}
	return h, nil
}

// Begun returns the history of a run that was begun now with its first record, under a lease with
// that fence.
func Begun(run string, first store.Record, fence int64) (*History, error) {
	first.Seq = 1
	first.Fence = fence
	first.Hash = first.Chain(run, "")
	return Read(run, []store.Record{first})
}

// add adds one record, which must be the next one of the chain.
func (h *History) add(run string, r store.Record) error {
	bad := func(err error) error {
		return fmt.Errorf("run %s: %w: record %d (%s): %v", run, store.ErrCorrupt, r.Seq, r.Key, err)
	}
	switch {
	case r.Seq != int64(len(h.Records))+1:
		return bad(fmt.Errorf("%d was next", len(h.Records)+1))
	case r.Hash != r.Chain(run, h.Head):
		return bad(fmt.Errorf("it is not what was written, or one before it is not"))
	}
	if err := h.Apply(r); err != nil {
		return bad(err)
	}

	h.Records = append(h.Records, r)
	h.Head = r.Hash
	if r.Fence > 0 {
		h.extendLease(r.Fence, int64(r.Elapsed))
	}
	return nil
}

// Extend reads the records of a run that h does not have yet, from j.
func (h *History) Extend(ctx context.Context, j store.Journal, s store.Scope, run string) error {
	records, err := j.JournalRecords(ctx, s, run, int64(len(h.Records)))
	if err != nil {
		return err
	}
	for _, r := range records {
		if err := h.add(run, r); err != nil {
			return err
		}
	}
	return nil
}

// Copy returns a history for a replay, which may change what it has received and its end.
func (h *History) Copy() *History {
	c := *h
	c.Received = maps.Clone(h.Received)
	return &c
}

// extendLease records that the process with the lease fence wrote a record after the time elapsed.
func (h *History) extendLease(fence, elapsed int64) {
	n := len(h.leases)
	if n == 0 || h.leases[n-1].fence != fence {
		h.leases = append(h.leases, span{fence: fence, elapsed: elapsed})
		return
	}
	h.leases[n-1].elapsed = max(h.leases[n-1].elapsed, elapsed)
}

// Apply adds what r says, and does not check its place in the chain.
func (h *History) Apply(r store.Record) error {
	switch r.Kind {
	// the run
	case KindBegin:
		return h.applyBegin(r)
	case KindTools:
		return h.applyTools(r)
	case KindAccept:
		var b Acceptance
		err := json.Unmarshal(r.Body, &b)
		h.Accept(b)
		return err
	case KindTrace:
		var b Trace
		err := json.Unmarshal(r.Body, &b)
		h.Trace = b.Traceparent
		return err
	case KindReopened:
		return nil // it changes the state alone
	case KindEnd:
		return h.applyEnd(r)

	// requests
	case KindReply:
		h.RepliedAt[subject(r)] = r.At
		return decode(r, h.Replies)
	case KindBackground:
		return decode(r, h.Background)

	// calls
	case KindOutcome:
		return decode(r, h.Outcomes)
	case KindIntent:
		a := Attempt{Seq: r.Seq}
		err := json.Unmarshal(r.Body, &a.Intent)
		h.Attempts[subject(r)] = append(h.Attempts[subject(r)], a)
		return err
	case KindQuestion:
		q := Question{Seq: r.Seq, Key: r.Key}
		err := json.Unmarshal(r.Body, &q.Waiting)
		h.Questions[subject(r)] = append(h.Questions[subject(r)], q)
		return err
	case KindDecision:
		return h.decided(r)

	}
	return h.applyOutside(r)
}

// applyOutside is Apply for records from outside, and for what a request received of them.
func (h *History) applyOutside(r store.Record) error {
	switch r.Kind {
	case KindSteer:
		return h.applySteer(r)
	case KindMessage:
		m := Incoming{Key: r.Key}
		err := json.Unmarshal(r.Body, &m.Body)
		h.Incoming = append(h.Incoming, m)
		return err
	case KindCancel:
		h.Cancelled = true
		return nil
	case KindRestored:
		h.RestoredAt = r.Seq
		return nil
	}
	return fmt.Errorf("its kind %q is not known", r.Kind)
}

// subject returns the key of the call or request that r is about: the key of r, for a numbered kind
// without the kind and the number at its end. The keys of other kinds have no such end, and may
// have the name of their kind in the middle: a subagent may be called "reply".
func subject(r store.Record) llm.Key {
	switch r.Kind {
	case KindBackground, KindIntent, KindQuestion:
		if i := strings.LastIndex(r.Key, "/"+r.Kind+"/"); i >= 0 {
			return llm.Key(r.Key[:i])
		}
	}
	return llm.Key(r.Key)
}

// decode sets the entry of m that r is about.
func decode[T any](r store.Record, m map[llm.Key]*T) error {
	body := new(T)
	m[subject(r)] = body
	return json.Unmarshal(r.Body, body)
}

// applyBegin sets the start of the run.
func (h *History) applyBegin(r store.Record) error {
	h.Begin = new(Begin)
	if err := json.Unmarshal(r.Body, h.Begin); err != nil {
		return err
	}
	if h.Begin.State != FormVersion {
		return fmt.Errorf("the journal has the form %d, this program knows %d", h.Begin.State, FormVersion)
	}
	return nil
}

// applyTools sets the program of a run, or adds the tools of a later request.
func (h *History) applyTools(r store.Record) error {
	var p Program
	err := json.Unmarshal(r.Body, &p)

	run, first := strings.CutSuffix(r.Key, "/tools")
	if !first {
		run = strings.TrimSuffix(r.Key[:strings.LastIndex(r.Key, "/")], "/tools")
		p = h.Programs[run].with(p)
	}
	h.Programs[run] = p
	return err
}

// applySteer records the messages that a request received, and which of them came from outside.
func (h *History) applySteer(r store.Record) error {
	b := new(Messages)
	err := json.Unmarshal(r.Body, b)
	h.Steered[llm.Key(strings.TrimSuffix(r.Key, "/steer"))] = b
	for _, key := range b.From {
		h.Received[key] = true
	}
	return err
}

// applyEnd sets the last stop of the run, and counts what it says of failed requests.
func (h *History) applyEnd(r store.Record) error {
	h.End = new(End)
	err := json.Unmarshal(r.Body, h.End)
	if h.End.Stop == pawl.StopFailed {
		h.FailedEnds++
	}
	for key, f := range h.End.Failed {
		h.Failed[key] = h.Failed[key].With(f)
	}
	return err
}

// Steps returns the number of replies of the run, without nested runs, and the number of the first
// reply. first is not 0 if the run started with replies.
func (h *History) Steps() (first, n int) {
	first = -1
	for key := range h.Replies {
		if at, ok := StepOf(string(key)); ok && strings.Count(string(key), "/") == 2 {
			n++
			if first < 0 || at < first {
				first = at
			}
		}
	}
	return max(first, 0), n
}

// AtLimit reports whether the run has ended at a limit.
func (h *History) AtLimit() bool { return h.End != nil && h.End.Limit != "" }

// Leases returns the number of processes that have worked on the run, one after the other.
func (h *History) Leases() int { return len(h.leases) }

// Active returns the time for which processes have worked on the run so far.
func (h *History) Active() (d time.Duration) {
	for _, s := range h.leases {
		d += time.Duration(max(s.elapsed, 0))
	}
	return d
}
