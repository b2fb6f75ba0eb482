package durable

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// Fork begins the run fork with what id had come to after its first steps: the replies up to that many, and how their calls ended. It goes on from there when it is
// resumed, with another model, other tools or instructions if need be: what was copied is not compared. A Write that was interrupted in the original is as
// unknown in the fork. o may be nil.
func (e *Engine) Fork(ctx context.Context, id, fork string, steps int, o *ForkOptions) error {
	if o == nil {
		o = new(ForkOptions)
	}
	h, err := e.history(ctx, scope(ctx), id)
	if err != nil {
		return err
	}
	begun, n := h.steps()
	if steps < 0 || steps > n {
		return fmt.Errorf("run %s has %d steps, not %d", id, n, steps)
	}
	s := &session{engine: e}
	first := []store.Record{}
	for _, r := range h.records {
		if r.Kind != kindBegin && !(within(r.Key, begun+steps) && (r.Kind == kindReply || r.Kind == kindOutcome || r.Kind == kindIntent || r.Kind == kindSteer)) {
			continue
		}
		c := store.Record{Key: r.Key, Kind: r.Kind, At: e.clock(), Body: r.Body}
		if v := o.other(h, r, &Origin{id, steps, h.trace}); v != nil {
			if c, err = s.record(r.Kind, r.Key, v); err != nil {
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
	l, err := e.Journal.BeginJournal(ctx, scope(ctx), store.JournalRun{ID: fork, Agent: h.begin.Agent, Task: taskOf(in.all()), State: store.JournalOpen}, newOwner(), e.clock(), first...)
	if err != nil {
		return err
	}
	_, err = e.Journal.RenewJournal(ctx, l, zeroTime)
	return err
}

// ForkOptions are what of a copy may differ. The zero value, and nil, change nothing.
type ForkOptions struct {
	Meta    json.RawMessage                                            // in place of the original's; nil: as it was
	Results func(key llm.Key, x pawl.Execution) (llm.ToolResult, bool) // gives a call that has ended another result; nil, and false: it has the one it had
}

// Origin is where a fork comes from.
type Origin struct {
	Run   string `json:"run"`
	Steps int    `json:"steps"`          // that were copied
	Trace string `json:"trace,omitzero"` // where the other run stands in a trace, as the W3C writes it (pawl.WithTrace); "": it is not known
}

// other is what is copied in place of the body of r; nil: the body.
func (o *ForkOptions) other(h *history, r store.Record, from *Origin) any {
	switch r.Kind {
	case kindBegin:
		body := *h.begin
		if body.Marked = h.marked(); o.Meta != nil {
			body.Meta = o.Meta
		}
		body.ForkedFrom = from
		return body
	case kindReply:
		body := *h.replies[llm.Key(r.Key)]
		body.Messages, body.Request, body.Sent = "", "", nil // nothing to compare with
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
		if x.Result, x.Outcome, x.Error, x.Ends = res, pawl.OutcomeOK, "", ""; res.IsError {
			x.Outcome, x.Error = pawl.OutcomeError, res.Text()
		}
		return body
	}
	return nil
}

// plain is o without its place in a trace, which differs from one execution of a run to the next.
func (o *Origin) plain() *Origin {
	if o == nil {
		return nil
	}
	return &Origin{Run: o.Run, Steps: o.Steps}
}
