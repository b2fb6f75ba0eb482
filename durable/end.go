package durable

// end.go: how a session ends, and what lists show of the run then.

import (
	"context"
	"encoding/json"
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

	if err := s.add(record.KindEnd, s.endKey(), s.endOf(res, text)); err != nil {
		return err
	}
	s.stopHeartbeat() // which would renew a lease that the next write releases

	summary, err := json.Marshal(Summary{
		Stop:    res.Stop,
		Cause:   res.Cause,
		Spent:   res.Spent,
		Pending: len(res.Pending),
		Unknown: unknownOf(res.Pending),
	})
	if err != nil {
		return err
	}
	err = s.flush(&store.JournalChange{State: stateOf(res, text), Summary: summary, Release: true})
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
		Stop:    res.Stop,
		Limit:   res.Limit,
		Cause:   res.Cause,
		Error:   text,
		Spent:   res.Spent,
		Pending: res.Pending,
		Values:  res.Values,
		Output:  res.Output,
		Answer:  res.Answer,
		Failed:  maps.Clone(s.failures),
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
	// Code is "changed" for a run that failed with ErrChanged. "" means any other stop.
	Code string `json:"code,omitzero"`
	// Cause is Result.Cause. "" means none.
	Cause string `json:"cause,omitzero"`
	// Spent is Result.Spent.
	Spent pawl.Spent `json:"spent"`
	// Pending is the number of pending calls.
	Pending int `json:"pending,omitzero"`
	// Unknown is the number of pending calls whose outcome is unknown.
	Unknown int `json:"unknown,omitzero"`
}

// codeChanged is Summary.Code of a run that failed with ErrChanged.
const codeChanged = "changed"

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
