package notify

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/store"
)

// Watcher finds what people are to know in a journal, and notifies them once.
type Watcher struct {
	Secrets *redact.Redactor // redacted in all messages; nil means none

	// Address is the address of the pages for people, such as https://pawl.example.com. Empty means
	// that messages have no link.
	Address string

	// Links makes approval links for questions. Nil means that messages have none.
	Links *Links

	Report func(error) // receives errors; nil means that they are dropped

	journal  store.Journal
	pending  func(ctx context.Context, id string) ([]pawl.PendingCall, error)
	channels map[string][]Channel // by the name of the agent

	nudges chan struct{}
	ended  chan end
	unsent []end // ends that a channel has not sent yet

	// settled has the versions of runs of which nothing is left to be sent. It is made anew by each
	// scan, so that it has no runs that are over.
	settled map[place]string
}

// place is where a run is in the journal.
type place struct {
	scope store.Scope
	id    string
}

// end is the end of a run, with its answer.
type end struct {
	head store.JournalRun // what is known of it without the journal
	text string
}

const (
	scanEvery = 10 * time.Second
	sendTime  = 15 * time.Second // for one attempt
	backlog   = 1000             // ended runs that wait to be sent
)

// New returns a Watcher of a journal. pending returns the open questions of a run in the scope of
// its context. channels are by the name of the agent.
func New(journal store.Journal, pending func(context.Context, string) ([]pawl.PendingCall, error),
	channels map[string][]Channel) *Watcher {
	return &Watcher{
		journal:  journal,
		pending:  pending,
		channels: channels,
		nudges:   make(chan struct{}, 1),
		ended:    make(chan end, backlog),
	}
}

func (w *Watcher) report(err error) {
	if err != nil && w.Report != nil {
		w.Report(err)
	}
}

// Observe records that a run of an agent has stopped. The next scan begins at once.
func (w *Watcher) Observe(scope store.Scope, id, agent string, res *pawl.Result) {
	if len(w.channels[agent]) == 0 {
		return
	}
	if res.Stop.Class() != pawl.ClassWaiting {
		head := store.JournalRun{Scope: scope, ID: id, Agent: agent}
		select {
		case w.ended <- end{head, w.Secrets.String(res.Text())}:
		default:
			w.report(errors.New("notify: too many runs end at once; the end of run " + id + " is not sent"))
		}
	}
	select {
	case w.nudges <- struct{}{}:
	default: // a scan is due already
	}
}

// Run notifies people until ctx ends. It begins with the questions that wait already. At the end it
// sends the ends of runs that it has observed.
func (w *Watcher) Run(ctx context.Context) {
	tick := time.NewTicker(scanEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		w.scan(ctx)
		w.ends(ctx)
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-w.nudges:
		}
	}

	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTime)
	defer cancel()
	w.ends(last)
}

// scan reports the questions and the failures in the journal.
func (w *Watcher) scan(ctx context.Context) {
	settled := map[place]string{}
	for head, err := range w.journal.UnendedRuns(ctx) {
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			w.report(err)
			break
		}
		if len(w.channels[head.Agent]) == 0 {
			continue
		}

		at := place{head.Scope, head.ID}
		version := head.State + head.Head
		if w.settled[at] == version || w.settle(ctx, head) {
			settled[at] = version
		}
	}
	w.settled = settled
}

// settle sends what people are to know of a run that is not over. It returns true if nothing is
// left to be sent until the run changes.
func (w *Watcher) settle(ctx context.Context, head store.JournalRun) bool {
	switch head.State {
	case store.JournalWaiting:
		return w.questions(ctx, head)
	case store.JournalFailed:
		e := w.eventOf(Failed, head)
		e.Text = w.Secrets.String(causeOf(head))
		return w.send(ctx, e)
	}
	return true
}

// questions sends the open questions of a run. It returns true if none is left to be sent.
func (w *Watcher) questions(ctx context.Context, head store.JournalRun) bool {
	open, err := w.pending(store.WithScope(ctx, head.Scope), head.ID)
	if errors.Is(err, store.ErrNotFound) {
		return true // deleted since
	}
	if err != nil {
		w.report(err)
		return false
	}

	settled := true
	for _, p := range open {
		e := w.eventOf(Waits, head)
		e.Question = &Question{
			Key:    p.Key,
			Digest: p.Digest,
			Tool:   p.Call.Name,
			Args:   w.Secrets.JSON(p.Call.Args),
			Why:    w.Secrets.String(p.Why),
		}
		settled = w.send(ctx, e) && settled
	}
	return settled
}

// ends sends the ends of the runs that were observed. What is not sent yet stays for the next time.
func (w *Watcher) ends(ctx context.Context) {
	for len(w.unsent) < backlog && len(w.ended) > 0 {
		w.unsent = append(w.unsent, <-w.ended)
	}
	w.unsent = slices.DeleteFunc(w.unsent, func(observed end) bool { return w.settleEnd(ctx, observed) })
}

// settleEnd sends the end of a run. It returns true if nothing is left to be sent. A run that has
// stopped and is not over has no end: it has failed, which scan reports, or another process
// continues it.
func (w *Watcher) settleEnd(ctx context.Context, observed end) bool {
	head, err := w.journal.JournalRun(ctx, observed.head.Scope, observed.head.ID)
	switch {
	case errors.Is(err, store.ErrNotFound): // its client wanted it deleted
	case err != nil:
		w.report(err)
		return false
	case head.State != store.JournalOver:
		return true
	}

	e := w.eventOf(Ended, observed.head)
	e.Task = w.Secrets.String(head.Task)
	e.Text = observed.text
	return w.send(ctx, e)
}

// eventOf returns an event about a run.
func (w *Watcher) eventOf(kind Kind, head store.JournalRun) *Event {
	e := &Event{
		Kind:   kind,
		Agent:  head.Agent,
		Run:    head.ID,
		Tenant: head.Scope.Tenant,
		User:   head.Scope.User,
		Task:   w.Secrets.String(head.Task),
	}
	if w.Address != "" {
		e.Link = w.Address + "/#/run/" + url.PathEscape(e.Run)
	}
	return e
}

// causeOf returns why a run has failed, as its summary says it.
func causeOf(head store.JournalRun) string {
	var summary struct{ Cause string }
	if json.Unmarshal(head.Summary, &summary) != nil {
		return ""
	}
	return summary.Cause
}

// send sends an event through each channel of its agent that wants it. It returns true if no
// channel has to try again.
func (w *Watcher) send(ctx context.Context, e *Event) bool {
	e.identify()
	settled := true
	for _, c := range w.channels[e.Agent] {
		if !slices.Contains(c.Kinds, e.Kind) {
			continue
		}
		if ctx.Err() != nil {
			return false
		}
		done, err := w.deliver(ctx, c, e)
		w.report(err)
		settled = settled && done
	}
	return settled
}
