package runs

// outage.go: what readers get of a run that waits for the provider of its model, and of its next
// attempt.

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/api"
)

// waits is an outage, as the readers of a run see it.
type waits struct {
	durable.Waiting
	began time.Time // when this process learned of it
}

// outageNotice returns the event that says for what a run waits.
func outageNotice(w *durable.Waiting) pawl.Event {
	data, _ := json.Marshal(w) // times and texts always marshal
	return pawl.Event{Kind: pawl.EventNotice, Run: "run", Code: NoticeOutage, Text: w.String(), Data: data}
}

// sayOutage yields the notice about an outage in place of the end of an attempt, after the
// retraction of the reply that broke off. held has the step that failed.
func sayOutage(w *durable.Waiting, held []pawl.Event, seq int64, yield func(pawl.Event, error) bool) {
	for _, step := range held {
		if step.Completed == nil || step.Completed.Response == nil {
			continue
		}
		for i, p := range slices.Backward(step.Completed.Response.Message.Parts) {
			void := pawl.Event{
				Kind:  pawl.EventTextRetracted,
				Run:   "run",
				Step:  step.Step,
				Seq:   seq,
				Index: i,
				Text:  textOf(p),
			}
			if !yield(void, nil) {
				return
			}
			seq++
		}
	}
	notice := outageNotice(w)
	notice.Seq = seq
	yield(notice, nil)
}

// textOf returns the text or the reasoning of a part of a reply. Other parts have none.
func textOf(p llm.Part) string {
	switch p := p.(type) {
	case llm.Text:
		return p.Text
	case llm.Reasoning:
		return p.Text
	}
	return ""
}

// IsOutage reports whether err says that a client has waited long enough for a run: see Live.Await.
func IsOutage(err error) bool {
	e, ok := errors.AsType[*api.Error](err)
	return ok && e.Code == "outage"
}

// published is what the readers of a run have got of it. Another attempt repeats the events from
// the start, and its readers get what is new.
type published struct {
	begun   bool  // the start of the run
	steps   int   // complete steps
	steered int   // messages of the user
	seq     int64 // Event.Seq of the last event
}

// repetition is an attempt whose events are compared with what was published before it.
type repetition struct {
	before  published
	steps   int   // complete steps of this attempt
	steered int   // messages of the user in this attempt
	shift   int64 // added to Event.Seq
	shifted bool  // the first new event has set shift
}

// isNew reports whether the readers do not have e yet, and gives it its place among their events.
func (r *repetition) isNew(e *pawl.Event) bool {
	switch {
	case !r.before.begun:
		return true
	case r.repeats(e):
		return false
	case !r.shifted:
		r.shifted = true
		r.shift = r.before.seq + 1 - e.Seq
	}
	e.Seq += r.shift
	return true
}

// repeats reports whether e was published before. Events within a step may have another order, so
// that whole steps are compared.
func (r *repetition) repeats(e *pawl.Event) bool {
	own := e.Run == "run"
	switch {
	case own && e.Kind == pawl.EventSteered:
		r.steered++
		return r.steered <= r.before.steered
	case own && e.Kind == pawl.EventRunStarted, own && e.Kind == pawl.EventNotice && e.Code == "attempt":
		return true
	case r.steps >= r.before.steps:
		return false
	case own && e.Kind == pawl.EventStep:
		r.steps++
	}
	return true
}

// add records that the readers get e.
func (p *published) add(e *pawl.Event) {
	p.begun = true
	p.seq = max(p.seq, e.Seq)
	switch {
	case e.Run != "run":
	case e.Kind == pawl.EventStep:
		p.steps++
	case e.Kind == pawl.EventSteered:
		p.steered++
	}
}
