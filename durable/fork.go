package durable

// fork.go: copies the first steps of a run.

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/internal/record"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// Fork is a copy of the first steps of a run, which continues as another run.
type Fork struct {
	// Run is the ID of the original.
	Run string
	// ID is the ID of the copy.
	ID string
	// Steps is the number of replies that are copied, with the outcomes of their calls.
	Steps int

	// Meta replaces the original's Meta. Nil means no change.
	Meta json.RawMessage
	// Results returns a new result for an ended call, or false for no change. Nil means no change.
	Results func(key llm.Key, x pawl.Execution) (llm.ToolResult, bool)
}

// Fork creates the run f.ID as a copy of the first steps of run f.Run. The copy continues from
// there when it is resumed, possibly with another model, other tools or other instructions: copied
// requests are not compared. A Write that was interrupted in the original has an unknown outcome in
// the copy too. The error is store.ErrConflict if the run f.ID exists.
func (e *Engine) Fork(ctx context.Context, f Fork) error {
	h, err := e.history(ctx, scope(ctx), f.Run)
	if err != nil {
		return err
	}
	started, n := h.Steps()
	if f.Steps < 0 || f.Steps > n {
		return fmt.Errorf("run %s has %d steps, not %d", f.Run, n, f.Steps)
	}
	records, err := f.records(h, started+f.Steps, e.clock())
	if err != nil {
		return err
	}
	in, err := inputOf(h)
	if err != nil {
		return err
	}

	run := store.JournalRun{ID: f.ID, Agent: h.Begin.Agent, Task: taskOf(in.All()), State: store.JournalOpen}
	l, err := e.Journal.BeginJournal(ctx, scope(ctx), run, newOwner(), e.clock(), records...)
	if err != nil {
		return err
	}
	return e.release(ctx, l) // any process may resume the fork at once
}

// records returns the records of the copy, which ends at the given step.
func (f *Fork) records(h *record.History, step int, now time.Time) (records []store.Record, err error) {
	origin := &record.Origin{Run: f.Run, Steps: f.Steps, Trace: h.Trace}
	for _, r := range h.Records {
		if !copied(r, step) {
			continue
		}

		c := store.Record{Key: r.Key, Kind: r.Kind, At: now, Body: r.Body}
		if v := f.replacement(h, r, origin); v != nil {
			c.Body, err = json.Marshal(v)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", r.Key, err)
			}
		}
		records = append(records, c)
	}
	return records, nil
}

// replacement returns the body of the copy of r. Nil means the body of r.
func (f *Fork) replacement(h *record.History, r store.Record, from *record.Origin) any {
	switch r.Kind {
	case record.KindBegin:
		body := *h.Begin
		body.Marked = h.Marked()
		if f.Meta != nil {
			body.Meta = f.Meta
		}
		body.ForkedFrom = from
		return body
	case record.KindReply:
		body := *h.Replies[llm.Key(r.Key)]
		body.Messages = "" // which means that the request is not compared
		body.Request = ""
		body.Sent = nil
		return body
	case record.KindOutcome:
		if f.Results == nil {
			return nil
		}
		body := *h.Outcomes[llm.Key(r.Key)]
		res, ok := f.Results(llm.Key(r.Key), body.Execution)
		if !ok {
			return nil
		}
		setResult(&body.Execution, res)
		return body
	}
	return nil
}

// setResult replaces the result of a call that has ended.
func setResult(x *pawl.Execution, res llm.ToolResult) {
	res.CallID = x.Result.CallID
	res.Key = x.Result.Key
	x.Result = res
	x.Ends = ""
	x.Outcome = pawl.OutcomeOK
	x.Error = ""
	if res.IsError {
		x.Outcome = pawl.OutcomeError
		x.Error = res.Text()
	}
}

// copied reports whether a fork at the given step has the record r: the beginning, and what the
// steps before said and did. Questions and tools are asked and recorded again.
func copied(r store.Record, step int) bool {
	switch r.Kind {
	case record.KindBegin:
		return true
	case record.KindReply, record.KindOutcome, record.KindIntent, record.KindSteer:
		return within(r.Key, step)
	}
	return false
}

// within reports whether the record at key precedes the given step: requests have lower numbers
// than the step, calls at most the same number.
func within(key string, step int) bool {
	n, ok := record.StepOf(key)
	if !ok || n > step {
		return false
	}
	request := strings.HasPrefix(key, "run/"+strconv.Itoa(n)+"/model")
	return n < step || !request
}
