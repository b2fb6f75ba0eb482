package durable

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl"
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
	started, n := h.steps()
	if steps < 0 || steps > n {
		return fmt.Errorf("run %s has %d steps, not %d", id, n, steps)
	}
	s := &session{engine: e}
	first := []store.Record{}
	for _, r := range h.records {
		if r.Kind != kindBegin &&
			!(within(r.Key, started+steps) &&
				(r.Kind == kindReply || r.Kind == kindOutcome || r.Kind == kindIntent || r.Kind == kindSteer)) {
			continue
		}
		c := store.Record{Key: r.Key, Kind: r.Kind, At: e.clock(), Body: r.Body}
		if v := o.other(h, r, &Origin{id, steps, h.trace}); v != nil {
			c, err = s.record(r.Kind, r.Key, v)
			if err != nil {
				return err
			}
			c.Elapsed = 0
		}
		first = append(first, c)
	}
	in, err := h.begin.input()
	if err != nil {
		return err
	}
	l, err := e.Journal.BeginJournal(ctx, scope(ctx),
		store.JournalRun{ID: fork, Agent: h.begin.Agent, Task: taskOf(in.all()), State: store.JournalOpen},
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

// Origin is the source of a fork.
type Origin struct {
	Run   string `json:"run"`
	Steps int    `json:"steps"` // the number of copied steps
	// Trace is the position of the original run in a trace, in the form of the W3C (package
	// telemetry). Empty means unknown.
	Trace string `json:"trace,omitzero"`
}

// other returns the replacement for the body of r, or the body itself.
func (o *ForkOptions) other(h *history, r store.Record, from *Origin) any {
	switch r.Kind {
	case kindBegin:
		body := *h.begin
		body.Marked = h.marked()
		if o.Meta != nil {
			body.Meta = o.Meta
		}
		body.ForkedFrom = from
		return body
	case kindReply:
		body := *h.replies[llm.Key(r.Key)]
		body.Messages = ""
		body.Request = ""
		body.Sent = nil // nothing to compare with
		return body
	case kindOutcome:
		body := *h.outcomes[llm.Key(r.Key)]
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

// plain returns o without its position in a trace, which differs between the executions of a run.
func (o *Origin) plain() *Origin {
	if o == nil {
		return nil
	}
	return &Origin{Run: o.Run, Steps: o.Steps}
}

// within reports whether the record at key precedes the given step: requests have lower numbers
// than the step, calls at most the same number.
func within(key string, step int) bool {
	n, ok := stepOf(key)
	return ok && (n < step || n == step && !strings.HasPrefix(key, "run/"+strconv.Itoa(n)+"/model"))
}
