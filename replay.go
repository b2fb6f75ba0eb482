package pawl

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/llm"
)

// Replayer is what an Executor may be, too, that keeps under Task.Key how calls ended, or that can wait in Execute for whoever decides. Calls made inside
// another (Invocation.Do, agents as tools) can wait only under one: the call that made them then waits with them, the run ends with
// StopPending, and once it is resumed with a Decision that call is carried out again from its beginning. The calls it makes again come to Execute under the
// same keys; for one that has ended, a Replayer yields Completed(Task.Replayed(…)) and carries nothing out.
//
// It sets Task.Since too, to the same time for a key whenever it comes.
//
// What such a call has spent is counted when it has ended, once. Parallel is no Replayer: it keeps nothing.
type Replayer interface {
	// Replays reports whether it does.
	Replays() bool
}

func replays(e Executor) bool {
	r, ok := e.(Replayer)
	return ok && r.Replays()
}

// ErrDiverged is the error of Invocation.Do when the tool, carried out again, makes another call than it made under that key before. Nothing
// was carried out for it.
var ErrDiverged = errors.New("diverged: another call was made here before")

// Replayed returns x, by which the task ended before, as what it comes to now. call is what was to be carried out then (Task.Call): where that was
// another tool, or other arguments, the Execution returned is a failure with ErrDiverged.
func (t Task) Replayed(call llm.ToolCall, x Execution) Execution {
	if call.Name != t.Call.Name || !bytes.Equal(jsonform.Canonical(call.Args), jsonform.Canonical(t.Call.Args)) {
		err := fmt.Errorf("%w: %s, and now %s", ErrDiverged, call.Name, t.Call.Name)
		if call.Name == t.Call.Name {
			err = fmt.Errorf("%w: %s with other arguments", ErrDiverged, call.Name)
		}
		x = Execution{Key: t.Key, Call: t.Call, Outcome: OutcomeError, Error: err.Error(), err: err, Result: llm.ErrorResult("Not run: " + err.Error() + ".")}
	}
	x.Index, x.Result.CallID, x.Result.Key = t.Index, t.Call.ID, t.Key
	x.here = false
	return x
}

// diverged returns the error of the first call that did; nil: none.
func diverged(xs []Execution) error {
	for i := range xs {
		if errors.Is(xs[i].err, ErrDiverged) {
			return xs[i].err
		}
	}
	return nil
}

// goOn gives t what was decided of it and of the calls inside of it, and what they waited for.
func (t *Task) goOn(decisions []llm.Decision, waiting []PendingCall) {
	grant := func(d llm.Decision) {
		same := func(o llm.Decision) bool { return o.Key == d.Key && o.Digest == d.Digest }
		if inOrUnder(d.Key, t.Key) && !slices.ContainsFunc(t.Decisions, same) {
			t.Decisions = append(t.Decisions, d)
		}
	}
	for _, d := range decisions {
		grant(d)
	}
	for i := range waiting {
		w := &waiting[i]
		switch {
		case w.Key == t.Key:
			t.Attempt, t.Pending = w.Attempt, w
		case inOrUnder(w.Key, t.Key):
			t.PendingInside = append(t.PendingInside, *w)
		default:
			continue
		}
		for _, d := range w.Granted {
			grant(d)
		}
	}
}

// inOrUnder reports whether key is of the call at, or of one inside of it.
func inOrUnder(key, at llm.Key) bool {
	rest, ok := strings.CutPrefix(string(key), string(at))
	return ok && (rest == "" || rest[0] == '/')
}

// waitsInside takes over the questions of calls made inside of this one, and reports whether there are any.
func (p *work) waitsInside() bool {
	v := &p.inv
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.waits) == 0 || v.sealed || v.ends != nil {
		return false
	}
	p.x.Pending = v.waits
	if d := p.x.Decision; d != nil && d.Approve {
		for i := range p.x.Pending {
			w := &p.x.Pending[i]
			w.Granted = append(slices.Clip(w.Granted), *d)
		}
	}
	return true
}

// pend notes that a run made inside of the call waits for ws.
func (v *Invocation) pend(ws []PendingCall) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.sealed {
		v.waits = append(v.waits, ws...)
	}
	return errWaits
}

// replayed counts what x has used, unless it was counted when it was carried out here.
func (b *budget) replayed(x *Execution) {
	if x.here {
		return
	}
	for o := b; o != nil; o = o.outer {
		if x.Limited > 0 && x.Limited == o.limits.Calls {
			o.refused.Store(true)
		}
	}
	b.add(int64(begunBeside(x, nil)+x.Spent.Calls), use{x.Spent.Usage.Total(), x.Spent.Usage.Cost})
}
