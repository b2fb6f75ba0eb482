package runs

// outage.go: runs that wait for the provider of a model. The engine stops such a run and leaves it
// open (durable.Engine.Outage). Its Live stays here without a goroutine, and its readers with it:
//
//	work ──▶ suspend: the provider is away ──▶ retry: its time has come ──▶ work
//	             └──▶ forget: the memory is needed, or the server stops; its readers are sent away,
//	                          and Recover finds the run in the journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/store"
)

// NoticeOutage is the code of the notice that a run waits for the provider of its model. Its data
// is a durable.Waiting.
const NoticeOutage = "outage"

// roomEvery is the time after which a run that is due and finds no room looks again.
const roomEvery = time.Second

// waits is an outage, as the readers of a run see it.
type waits struct {
	durable.Waiting
	began time.Time // when this process learned of it
}

// outageOf returns for what a run waits that has just stopped. Nil means that it does not.
func (h *hub) outageOf(l *Live) *durable.Waiting {
	head, err := h.service.options.Journal.JournalRun(l.ctx, l.scope, l.id)
	if err != nil {
		return nil
	}
	return outageIn(head)
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

// isOutage reports whether e says that the run itself waits.
func isOutage(e pawl.Event) bool {
	return e.Kind == pawl.EventNotice && e.Run == "run" && e.Code == NoticeOutage
}

// observe records what an event says about the provider: it is away, or it has answered.
func (l *Live) observe(e pawl.Event) {
	if isOutage(e) {
		w := &waits{began: time.Now()}
		if json.Unmarshal(e.Data, &w.Waiting) != nil {
			return
		}
		if before := l.away.Load(); before != nil {
			w.began = before.began
		}
		l.away.Store(w)
		return
	}

	switch e.Kind {
	case pawl.EventText, pawl.EventReasoning, pawl.EventCallDelta, pawl.EventResponseReceived, pawl.EventRunEnded:
		if e.Run == "run" {
			l.away.Store(nil)
		}
	}
}

// suspend ends an attempt of a run whose provider is away. Another one begins at that time.
func (h *hub) suspend(l *Live, at time.Time) {
	l.release()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count(l, -1)
	defer h.dispatch() // there is room for another one

	l.suspended.Store(true)
	if h.runs[l.place] != l || isClosed(h.drained) {
		h.forget(l)
		return
	}
	l.next = at
	if probe, isOpen := h.breakerOf(modelName(l.job.agent)).nextProbe(); isOpen && probe.Before(at) {
		at = probe
	}
	l.timer = time.AfterFunc(time.Until(at), func() { h.retry(l, retryDue) })
	h.retain(l)
}

// reason is why a suspended run is executed again.
type reason int

const (
	retryDue       reason = iota // its time has come, or the time of a probe
	retryAnswered                // its provider has answered another run
	retryAsked                   // a person does not wait for its time
	retryCancelled               // it stores its end, and needs neither room nor its provider
)

// mayRetry reports whether a suspended run may ask its provider, and if not, when to ask again.
func (h *hub) mayRetry(l *Live, why reason) (ok bool, next time.Time) {
	if why != retryDue {
		return true, next
	}
	now := time.Now()
	b := h.breakerOf(modelName(l.job.agent))
	_, isOpen := b.nextProbe()
	if !isOpen && now.Before(l.next) {
		return false, l.next // the time of a probe has brought it here
	}
	return b.allow(now)
}

// retry executes a suspended run again. If another process has executed it since then, the run is
// followed there.
func (h *hub) retry(l *Live, why reason) {
	h.mu.Lock()
	ok, next := h.mayRetry(l, why)
	if !ok && l.suspended.Load() {
		l.timer.Reset(time.Until(next))
	}
	h.mu.Unlock()
	if !ok {
		return
	}

	head, err := h.service.options.Journal.JournalRun(l.ctx, l.scope, l.id)
	elsewhere := err == nil && (head.State != store.JournalOpen || isLeased(head, time.Now()))

	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !l.suspended.Load() || isClosed(h.drained):
		return
	case !elsewhere && why != retryCancelled && !h.hasRoom(l.scope.Tenant, false):
		l.timer.Reset(roomEvery)
		return
	}
	l.timer.Stop()
	h.unrest(l)
	l.suspended.Store(false)
	if elsewhere {
		l.follows.Store(true)
	}
	h.start(l, nil)
}

// leave ends a suspended run in this process. Its readers get ErrElsewhere. The
// caller holds mu.
func (h *hub) leave(l *Live) {
	if l.timer != nil {
		l.timer.Stop()
	}
	l.suspended.Store(false)
	l.cancel(nil)
	close(l.done)
	l.feed.finish()
}

// Patience returns a channel that has a value when a reader that came at a time stops waiting for
// the provider of the run, and nil if the provider is not away. The error is that the time is over.
// d is Reading.Hold.
func (l *Live) Patience(came time.Time, d time.Duration) (<-chan time.Time, error) {
	w := l.away.Load()
	if w == nil || d <= 0 {
		return nil, nil
	}
	since := came
	if w.began.After(since) {
		since = w.began
	}
	left := time.Until(since.Add(d))
	if left <= 0 {
		return nil, l.outage(w)
	}
	return time.After(left), nil
}

// outage returns the error for a client that does not wait any longer.
func (l *Live) outage(w *waits) *api.Error {
	e := Fault("outage", fmt.Sprintf("the run %s is %s; it goes on by itself", l.id, w.String()),
		"GET /v1/runs/"+l.id+" shows it")
	e.Run = l.id
	e.RetryAfter = max(1, int(math.Ceil(time.Until(w.Next).Seconds())))
	return e
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
