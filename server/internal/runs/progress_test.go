package runs

import (
	"errors"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
)

// Events of a run and of a run inside it.
var (
	started     = signal{event: pawl.Event{Run: "run", Kind: pawl.EventRunStarted}}
	step        = signal{event: pawl.Event{Run: "run", Kind: pawl.EventStep}}
	answered    = signal{event: end("run", pawl.StopAnswer, "")}
	pending     = signal{event: end("run", pawl.StopPending, "")}
	failed      = signal{event: end("run", pawl.StopFailed, "no model")}
	interrupt   = signal{event: end("run", pawl.StopCancelled, "context canceled")}
	cancelled   = signal{event: end("run", pawl.StopCancelled, "")}
	nestedEnded = signal{event: end("run/1/0", pawl.StopAnswer, "")}
	broken      = signal{err: errors.New("the connection broke")}
	leaseLost   = signal{err: durable.ErrLost}
)

func end(run llm.Key, stop pawl.StopReason, err string) pawl.Event {
	return pawl.Event{Run: run, Kind: pawl.EventRunEnded, Error: err, Result: &pawl.Result{Stop: stop}}
}

func stopping(s signal) signal { s.stopping = true; return s }
func draining(s signal) signal { s.draining = true; return s }

// TestProgress has a row for each way in which the stream of a run ends, and what readers get of
// it.
func TestProgress(t *testing.T) {
	for _, test := range []struct {
		name   string
		waited bool
		stream []signal
		want   []action
		parked bool
		broken bool // it stopped without an end
	}{
		{name: "an answer", stream: []signal{started, step, answered},
			want: []action{actionPublish, actionPublish, actionEnd}},
		{name: "a question", stream: []signal{started, pending}, want: []action{actionPublish, actionEnd}},
		{name: "the end of a nested run", stream: []signal{started, nestedEnded},
			want: []action{actionPublish, actionPublish}, broken: true},
		{name: "no start", stream: []signal{broken}, want: []action{actionRefuse}, broken: true},
		{name: "nothing at all"},

		{name: "an error after a plain end adds nothing", stream: []signal{started, answered, broken},
			want: []action{actionPublish, actionEnd, actionDrop}},
		{name: "an error after an end with an error", stream: []signal{started, failed, broken},
			want: []action{actionPublish, actionEnd, actionFail}},
		{name: "an error without an end", stream: []signal{started, step, broken},
			want: []action{actionPublish, actionPublish, actionFail}, broken: true},
		{name: "a cancelled run", stream: []signal{started, cancelled}, want: []action{actionPublish, actionEnd}},

		{name: "the server stops: its end is not the end of the run", stream: []signal{started, stopping(interrupt), stopping(broken)},
			want: []action{actionPublish, actionDrop, actionDrop}, parked: true, broken: true},
		{name: "the server stops: events before the end are of the run", stream: []signal{started, stopping(step)},
			want: []action{actionPublish, actionPublish}, parked: true, broken: true},
		{name: "the server drains and interrupts the run", stream: []signal{started, draining(interrupt)},
			want: []action{actionPublish, actionDrop}, parked: true, broken: true},
		{name: "the server drains, and the run ends by itself", stream: []signal{started, draining(answered)},
			want: []action{actionPublish, actionEnd}},
		{name: "the server drains, and a nested run is interrupted",
			stream: []signal{started, draining(signal{event: end("run/1/0", pawl.StopCancelled, "context canceled")})},
			want:   []action{actionPublish, actionPublish}, broken: true},

		{name: "another process took a waiting run", waited: true, stream: []signal{leaseLost},
			want: []action{actionDrop}, parked: true, broken: true},
		{name: "another process took a run that had not waited", stream: []signal{started, leaseLost},
			want: []action{actionPublish, actionFail}, broken: true},
		{name: "a waiting run that fails has been announced", waited: true, stream: []signal{broken},
			want: []action{actionFail}, broken: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := progress{waited: test.waited, begun: test.waited}
			for i, s := range test.stream {
				if got := p.next(s); got != test.want[i] {
					t.Errorf("item %d: action %d, want %d", i, got, test.want[i])
				}
			}
			if p.parked != test.parked {
				t.Errorf("parked: %t, want %t", p.parked, test.parked)
			}
			if got := p.broken(false); got != test.broken {
				t.Errorf("broken: %t, want %t", got, test.broken)
			}
			if p.broken(true) {
				t.Error("a run that was stopped is broken")
			}
		})
	}
}
