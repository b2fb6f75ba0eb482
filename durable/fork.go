package durable

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/internal/record"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// Fork creates the run fork as a copy of the first steps of run id: that many replies, and the
// outcomes of their calls. The copy continues from there when it is resumed, possibly with another
// model, other tools or other instructions: copied requests are not compared. A Write that was
// interrupted in the original has an unknown outcome in the fork too. o may be nil.
func (e *Engine) Fork(ctx context.Context, id, fork string, steps int, o *ForkOptions) error {
	o = cmp.Or(o, new(ForkOptions))
	h, err := e.history(ctx, scope(ctx), id)
	if err != nil {
		return err
	}
	started, n := h.Steps()
	if steps < 0 || steps > n {
		return fmt.Errorf("run %s has %d steps, not %d", id, n, steps)
	}

	s := &session{engine: e}
	origin := &record.Origin{Run: id, Steps: steps, Trace: h.Trace}
	first := []store.Record{}
	for _, r := range h.Records {
		if !copied(r, started+steps) {
			continue
		}
		c := store.Record{Key: r.Key, Kind: r.Kind, At: e.clock(), Body: r.Body}
		if v := o.other(h, r, origin); v != nil {
			c, err = s.record(r.Kind, r.Key, v)
			if err != nil {
				return err
			}
			c.Elapsed = 0
		}
		first = append(first, c)
	}

	in, err := inputOf(h)
	if err != nil {
		return err
	}
	run := store.JournalRun{ID: fork, Agent: h.Begin.Agent, Task: taskOf(in.All()), State: store.JournalOpen}
	l, err := e.Journal.BeginJournal(ctx, scope(ctx), run, newOwner(), e.clock(), first...)
	if err != nil {
		return err
	}
	// Any process may resume the fork at once.
	_, err = e.Journal.RenewJournal(ctx, l, zeroTime)
	return err
}

// ForkOptions change parts of a copy. The zero value and nil change nothing.
type ForkOptions struct {
	// Meta replaces the original's Meta. Nil means no change.
	Meta json.RawMessage
	// Results returns a new result for an ended call, or false for no change. Nil means no change.
	Results func(key llm.Key, x pawl.Execution) (llm.ToolResult, bool)
}

// other returns the replacement for the body of r, or the body itself.
func (o *ForkOptions) other(h *record.History, r store.Record, from *record.Origin) any {
	switch r.Kind {
	case record.KindBegin:
		body := *h.Begin
		body.Marked = h.Marked()
		if o.Meta != nil {
			body.Meta = o.Meta
		}
		body.ForkedFrom = from
		return body
	case record.KindReply:
		body := *h.Replies[llm.Key(r.Key)]
		body.Messages = ""
		body.Request = ""
		body.Sent = nil // nothing to compare with
		return body
	case record.KindOutcome:
		if o.Results == nil {
			return nil
		}
		body := *h.Outcomes[llm.Key(r.Key)]
		res, ok := o.Results(llm.Key(r.Key), body.Execution)
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
