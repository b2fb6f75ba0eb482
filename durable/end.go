package durable

// end.go: how a session ends, and what lists show of the run then.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/internal/record"
	"github.com/pawl-go/pawl/store"
)

// storeEnd stores the reason of the stop, and releases the lease with it. text is Event.Error of
// the end.
func (s *session) storeEnd(res *pawl.Result, text string) error {
	if s.readOnly {
		return nil
	}
	if err := s.failed(); err != nil {
		return err
	}

	end := s.endOf(res, text)
	s.mu.Lock()
	waiting := s.outage.waiting(res, s.history.End, s.engine.clock(), s.engine.outage())
	s.mu.Unlock()
	if waiting != nil {
		end.Waiting = &record.Waiting{Since: waiting.Since, Tries: waiting.Tries}
	}
	if err := s.add(record.KindEnd, s.endKey(), end); err != nil {
		return err
	}
	s.stopHeartbeat() // which would renew a lease that the next write releases

	summary, err := json.Marshal(Summary{
		Stop:    res.Stop,
		Cause:   res.Cause,
		Spent:   res.Spent,
		Pending: len(res.Pending),
		Unknown: unknownOf(res.Pending),
		Waiting: waiting,
	})
	if err != nil {
		return err
	}
	change := &store.JournalChange{State: stateOf(res, text), Summary: summary, Release: true}
	if waiting != nil {
		change.State = store.JournalOpen
		change.Next = waiting.Next
	}
	err = s.flush(change)
	s.ended = err == nil
	return err
}

// endKey returns the key of the end of this session. A run has an end for each session that
// stopped it.
func (s *session) endKey() string { return fmt.Sprintf("%s/%d", record.KindEnd, s.lease.Fence) }

// endOf returns the record of a stop.
func (s *session) endOf(res *pawl.Result, text string) record.End {
	s.mu.Lock()
	defer s.mu.Unlock()
	return record.End{
		Stop:        res.Stop,
		Limit:       res.Limit,
		Cause:       res.Cause,
		Interrupted: res.Interrupted,
		Unfit:       res.Unfit,
		Error:       text,
		Spent:       res.Spent,
		Pending:     res.Pending,
		Values:      res.Values,
		Output:      res.Output,
		Answer:      res.Answer,
		Failed:      maps.Clone(s.failures),
	}
}

// close ends the session. Other processes resume the run unless storeEnd was called.
func (s *session) close() {
	defer s.cancel(nil)
	if s.readOnly {
		return
	}
	s.stopTimer()
	if s.ended {
		return
	}

	s.stopHeartbeat()
	_ = s.flush(nil) // a record that cannot be stored is made again
	s.endChanged(s.failed())

	// endChanged has stored an end, and released the lease with it.
	if s.ended {
		return
	}

	ctx, cancel := context.WithTimeout(context.Background(), s.engine.lease())
	defer cancel()
	_, _ = s.engine.Journal.RenewJournal(ctx, s.lease, time.Time{}) // otherwise the lease expires
}

// stopTimer prevents a commit that commitSoon has started.
func (s *session) stopTimer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
	}
}

// Summary is the progress of a run when it last stopped: JournalRun.Summary.
type Summary struct {
	// Stop is Result.Stop.
	Stop pawl.StopReason `json:"stop"`
	// Code is "changed" for a run that failed with ErrChanged, and "crashed" for a run that failed
	// with ErrCrashed. "" means any other stop.
	Code string `json:"code,omitzero"`
	// Cause is Result.Cause. "" means none.
	Cause string `json:"cause,omitzero"`
	// Spent is Result.Spent.
	Spent pawl.Spent `json:"spent"`
	// Pending is the number of pending calls.
	Pending int `json:"pending,omitzero"`
	// Unknown is the number of pending calls whose outcome is unknown.
	Unknown int `json:"unknown,omitzero"`
	// Waiting is set while the run waits for the provider of a model. Nil means that it does not.
	Waiting *Waiting `json:"waiting,omitzero"`
}

// Values of Summary.Code.
const (
	CodeChanged = "changed" // the run failed with ErrChanged
	CodeCrashed = "crashed" // the run failed with ErrCrashed
)

// unknownOf returns the number of calls whose outcome is unknown.
func unknownOf(all []pawl.PendingCall) (n int) {
	for i := range all {
		if all[i].Outcome == pawl.OutcomeUnknown {
			n++
		}
	}
	return n
}

// stateOf returns the state of a run after a stop. text is Event.Error of its end.
func stateOf(res *pawl.Result, text string) string {
	switch res.Stop.Class() {
	case pawl.ClassWaiting:
		return store.JournalWaiting
	case pawl.ClassCancelled:
		if text != "" {
			return store.JournalOpen // the process ends, not the run
		}
	case pawl.ClassFailed:
		if res.Stop != pawl.StopStalled { // a resumed run would repeat itself again
			return store.JournalFailed
		}
	}
	return store.JournalOver
}

// failedEnd returns the end of a run that is not continued, and its summary. What it has used is
// what it had used when it stopped before. code is Summary.Code.
func failedEnd(h *record.History, code, cause string) (end record.End, summary json.RawMessage, err error) {
	end = record.End{Stop: pawl.StopFailed, Cause: cause, Error: cause}
	if h.End != nil {
		end.Spent = h.End.Spent
		end.Values = h.End.Values
	}
	summary, err = json.Marshal(Summary{
		Stop:    end.Stop,
		Code:    code,
		Cause:   cause,
		Spent:   end.Spent,
		Pending: len(h.OpenQuestions()),
	})
	return end, summary, err
}

// defaultCrashes is what Engine.Crashes of 0 means.
const defaultCrashes = 5

// parkCrashed ends a run as failed if too many processes have died while they executed it. It
// returns ErrCrashed then, and has released the lease.
func (e *Engine) parkCrashed(ctx context.Context, l store.Lease, h *record.History) error {
	limit := cmp.Or(e.Crashes, defaultCrashes)
	if limit < 0 || l.Lapses < limit {
		return nil
	}

	last := h.Records[len(h.Records)-1]
	cause := fmt.Sprintf("%d processes died in a row while they executed the run, after its record %s; "+
		"the output of the last one may say why", l.Lapses, last.Key)
	end, summary, err := failedEnd(h, CodeCrashed, cause)
	if err != nil {
		return err
	}
	body, err := json.Marshal(end)
	if err != nil {
		return err
	}

	r := store.Record{
		Key:  fmt.Sprintf("%s/%d", record.KindEnd, l.Fence),
		Kind: record.KindEnd,
		At:   e.clock(),
		Body: body,
	}
	change := &store.JournalChange{
		State:   store.JournalFailed,
		Summary: summary,
		Release: true,
		Seen:    int64(len(h.Records)),
	}
	_, err = e.Journal.AppendJournal(context.WithoutCancel(ctx), l, change, r)
	err = errors.Join(fmt.Errorf("run %s: %w: %s", l.Run, ErrCrashed, cause), err)
	e.report(l.Run, err)
	return err
}
