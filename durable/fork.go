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
	first := []store.Record{}
	for _, r := range h.Records {
		if r.Kind != record.KindBegin &&
			!(within(r.Key, started+steps) &&
				(r.Kind == record.KindReply || r.Kind == record.KindOutcome || r.Kind == record.KindIntent || r.Kind == record.KindSteer)) {
			continue
		}
		c := store.Record{Key: r.Key, Kind: r.Kind, At: e.clock(), Body: r.Body}
		if v := o.other(h, r, &record.Origin{Run: id, Steps: steps, Trace: h.Trace}); v != nil {
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
	l, err := e.Journal.BeginJournal(ctx, scope(ctx),
		store.JournalRun{ID: fork, Agent: h.Begin.Agent, Task: taskOf(in.All()), State: store.JournalOpen},
		newOwner(), e.clock(), first...)
	if err != nil {
		return err
	}
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
		body := *h.Outcomes[llm.Key(r.Key)]
		if o.Results == nil {
			return nil
		}
		res, ok := o.Results(llm.Key(r.Key), body.Execution)
		if !ok {
			return nil
		}
		x := &body.Execution
		res.CallID, res.Key = x.Result.CallID, x.Result.Key
		x.Result = res
		x.Outcome = pawl.OutcomeOK
		x.Error = ""
		x.Ends = ""
		if res.IsError {
			x.Outcome, x.Error = pawl.OutcomeError, res.Text()
		}
		return body
	}
	return nil
}

// within reports whether the record at key precedes the given step: requests have lower numbers
// than the step, calls at most the same number.
func within(key string, step int) bool {
	n, ok := record.StepOf(key)
	return ok && (n < step || n == step && !strings.HasPrefix(key, "run/"+strconv.Itoa(n)+"/model"))
}
