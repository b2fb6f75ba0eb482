package record

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// History is the records of a run, by subject.
type History struct {
	Records   []store.Record
	Begin     *Begin
	Programs  map[string]Program // by the key of the run
	Replies   map[llm.Key]*Reply
	RepliedAt map[llm.Key]time.Time
	// the last reply that the provider computes, by the key of the request
	Background map[llm.Key]*Background
	Outcomes   map[llm.Key]*Outcome
	Attempts   map[llm.Key][]Attempt
	Questions  map[llm.Key][]Question
	Steered    map[llm.Key]*Messages
	Failed     map[llm.Key]Failure // of all attempts
	Messages   []Message
	Received   map[string]bool // keys of Messages
	End        *End
	Cancelled  bool
	RestoredAt int64  // the Seq of the last restore from a backup; 0 means none
	Trace      string // of the last attempt that has one
	Head       string
	leases     []span
}

type span struct{ fence, elapsed int64 }

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
	h := &History{Programs: map[string]Program{}, Replies: map[llm.Key]*Reply{},
		RepliedAt: map[llm.Key]time.Time{}, Outcomes: map[llm.Key]*Outcome{},
		Background: map[llm.Key]*Background{}, Failed: map[llm.Key]Failure{}, Attempts: map[llm.Key][]Attempt{},
		Questions: map[llm.Key][]Question{}, Steered: map[llm.Key]*Messages{}, Received: map[string]bool{}}
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

// add adds one record.
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
	h.Records, h.Head = append(h.Records, r), r.Hash
	if r.Fence > 0 {
		if n := len(h.leases); n > 0 && h.leases[n-1].fence == r.Fence {
			h.leases[n-1].elapsed = max(h.leases[n-1].elapsed, int64(r.Elapsed))
		} else {
			h.leases = append(h.leases, span{r.Fence, int64(r.Elapsed)})
		}
	}
	return nil
}

// Apply adds what r says, and does not check its place in the chain.
func (h *History) Apply(r store.Record) (err error) {
	call := llm.Key(r.Key)
	if i := strings.LastIndex(r.Key, "/"+r.Kind+"/"); i >= 0 {
		call = llm.Key(r.Key[:i])
	}
	switch r.Kind {
	case KindBegin:
		h.Begin = new(Begin)
		if err = json.Unmarshal(r.Body, h.Begin); err == nil && h.Begin.State != FormVersion {
			err = fmt.Errorf("the journal has the form %d, this program knows %d", h.Begin.State, FormVersion)
		}
	case KindTools:
		var b Program
		err = json.Unmarshal(r.Body, &b)
		run, first := strings.CutSuffix(r.Key, "/tools")
		if !first {
			run = strings.TrimSuffix(r.Key[:strings.LastIndex(r.Key, "/")], "/tools")
			b = h.Programs[run].with(b)
		}
		h.Programs[run] = b
	case KindReply:
		h.Replies[call] = new(Reply)
		h.RepliedAt[call] = r.At
		err = json.Unmarshal(r.Body, h.Replies[call])
	case KindBackground:
		h.Background[call] = new(Background)
		err = json.Unmarshal(r.Body, h.Background[call])
	case KindOutcome:
		h.Outcomes[call] = new(Outcome)
		err = json.Unmarshal(r.Body, h.Outcomes[call])
	case KindIntent:
		n := Attempt{Seq: r.Seq}
		err = json.Unmarshal(r.Body, &n.Intent)
		h.Attempts[call] = append(h.Attempts[call], n)
	case KindQuestion:
		q := Question{Seq: r.Seq, Key: r.Key}
		err = json.Unmarshal(r.Body, &q.Waiting)
		h.Questions[call] = append(h.Questions[call], q)
	case KindDecision:
		err = h.decided(r)
	case KindSteer:
		b := new(Messages)
		err = json.Unmarshal(r.Body, b)
		h.Steered[llm.Key(strings.TrimSuffix(r.Key, "/steer"))] = b
		for _, k := range b.From {
			h.Received[k] = true
		}
	case KindMessage:
		m := Message{Key: r.Key}
		err = json.Unmarshal(r.Body, &m.Body)
		h.Messages = append(h.Messages, m)
	case KindAccept:
		var b Acceptance
		err = json.Unmarshal(r.Body, &b)
		h.Accept(b)
	case KindCancel:
		h.Cancelled = true
	case KindRestored:
		h.RestoredAt = r.Seq
	case KindTrace:
		var b Trace
		err = json.Unmarshal(r.Body, &b)
		h.Trace = b.Traceparent
	case KindEnd:
		h.End = new(End)
		err = json.Unmarshal(r.Body, h.End)
		for key, f := range h.End.Failed {
			h.Failed[key] = h.Failed[key].With(f)
		}
	default:
		err = fmt.Errorf("its kind %q is not known", r.Kind)
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

// Leases returns the number of processes that have worked on the run, one after the other.
func (h *History) Leases() int { return len(h.leases) }

// Active returns the time for which processes have worked on the run so far.
func (h *History) Active() (d time.Duration) {
	for _, s := range h.leases {
		d += time.Duration(max(s.elapsed, 0))
	}
	return d
}
