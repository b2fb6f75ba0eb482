package runs

// progress.go: progress, which decides what becomes of each event of a run.

import (
	"errors"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
)

// progress is how far the execution of a run has come, as its stream shows. It has no effects: the
// hub does what next returns.
type progress struct {
	waited bool // the run was in the queue, so that another process may have taken it over

	begun  bool // the run is in the journal, or could not be started
	parked bool // another process continues the run
	waits  bool // it stopped because the provider of its model is away
	ended  bool // the stream contained the end of the run
	plain  bool // that end had no error, and an error after it adds nothing
}

// signal is an item of the stream of a run, with what the server does at that time.
type signal struct {
	event    pawl.Event
	err      error
	stopping bool // the server has stopped the run
	draining bool // the server starts no more calls
	follows  bool // another process executes the run
}

// action is what the hub does with an item.
type action int

const (
	actionPublish action = iota // readers get the event
	actionWait                  // the same, and the run stops until its provider is back
	actionEnd                   // the same, and it is the end of the run
	actionRefuse                // the error is why the run could not start
	actionFail                  // readers get the error: the run cannot continue here
	actionDrop                  // readers get nothing
)

// next returns what becomes of the next item.
func (p *progress) next(s signal) action {
	first := !p.begun
	p.begun = true
	p.parked = p.parked || p.parks(s)
	end := isEnd(s.event)

	switch {
	case s.err != nil && first:
		return actionRefuse

	// The run continues in another process, so that this is not its end.
	case p.parked && s.err != nil:
		return actionDrop
	case p.parked && end:
		return actionDrop

	case s.err != nil && p.plain:
		return actionDrop
	case s.err != nil:
		return actionFail
	case isOutage(s.event):
		p.waits = !s.follows
		return actionWait
	case end:
		p.ended = true
		p.plain = s.event.Error == ""
		return actionEnd
	}
	return actionPublish
}

// parks reports whether another process continues the run after an item.
func (p *progress) parks(s signal) bool {
	switch {
	case s.stopping:
		return true
	case s.draining && isEnd(s.event) && interrupted(s.event):
		return true
	}
	return p.waited && errors.Is(s.err, durable.ErrLost)
}

// broken reports whether the run stopped without an end, for no reason of the server: it would
// immediately stop in the same way again.
func (p *progress) broken(stopped bool) bool { return p.begun && !p.ended && !stopped }

// isEnd reports whether e ends the run itself, and not a nested run.
func isEnd(e pawl.Event) bool { return e.Run == "run" && e.Kind == pawl.EventRunEnded }

// isStep reports whether e ends a step of the run itself.
func isStep(e pawl.Event) bool { return e.Run == "run" && e.Kind == pawl.EventStep }

// interrupted reports whether e, the end of a run, ends it only in this process.
func interrupted(e pawl.Event) bool {
	return e.Error != "" && e.Result != nil && e.Result.Stop.Class() == pawl.ClassCancelled
}

// NoticeOutage is the code of the notice that a run waits for the provider of its model. Its data
// is a durable.Waiting.
const NoticeOutage = "outage"

// isOutage reports whether e says that the run itself waits.
func isOutage(e pawl.Event) bool {
	return e.Kind == pawl.EventNotice && e.Run == "run" && e.Code == NoticeOutage
}
