package runs

import (
	"context"
	"fmt"
	"slices"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/access"
	"github.com/pawl-go/pawl/store"
)

// queue holds the runs that wait for room: in order for each tenant, and the tenants take turns.
type queue struct {
	waiting map[string][]*Live // by tenant
	turns   []string           // tenants with waiting runs; the first is next
	size    map[string]int     // runs by tenant, with those whose start is being stored
	Total   int                // their sum
}

func (q *queue) add(tenant string, n int) {
	q.Total += n
	q.size[tenant] += n
	if q.size[tenant] == 0 {
		delete(q.size, tenant)
	}
}

func (q *queue) push(l *Live) {
	t := l.Who.Tenant
	if len(q.waiting[t]) == 0 {
		q.turns = append(q.turns, t)
	}
	q.waiting[t] = append(q.waiting[t], l)
}

// take removes a waiting run.
func (q *queue) take(l *Live) {
	t := l.Who.Tenant
	i := slices.Index(q.waiting[t], l)
	q.waiting[t] = slices.Delete(q.waiting[t], i, i+1)
	q.add(t, -1)
	l.queued.Store(false)
	turn := slices.Index(q.turns, t)
	q.turns = slices.Delete(q.turns, turn, turn+1)
	if len(q.waiting[t]) > 0 {
		q.turns = append(q.turns, t)
	} else {
		delete(q.waiting, t)
	}
}

// Queued returns the number of runs that wait in this process for room to execute.
func (s *Service) Queued() int {
	s.Hub.Mu.Lock()
	defer s.Hub.Mu.Unlock()
	return s.Hub.Queue.Total
}

// ahead returns the number of runs that are before a run in the queue.
func (h *Hub) ahead(p Place) (n int) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	q := &h.Queue
	l := h.runs[p]
	t := p.Who.Tenant
	i, turn := slices.Index(q.waiting[t], l), slices.Index(q.turns, t)
	for k, other := range q.turns {
		switch {
		case i < 0:
		case k < turn:
			n += min(len(q.waiting[other]), i+1)
		default:
			n += min(len(q.waiting[other]), i)
		}
	}
	return n
}

// run starts or resumes a run, and returns when that is in the journal. It returns false with a run
// that is already executing. A nil by means the server itself.
func (h *Hub) run(ctx context.Context, p Place, j job, by *access.Client, msgs ...llm.Message) (*Live, bool, error) {
	h.Mu.Lock()
	for l := h.runs[p]; l.Works() && l.Waits.Load(); l = h.runs[p] {
		// Its events end with the questions that the caller has answered.
		h.Mu.Unlock()
		if err := l.Await(ctx); err != nil {
			return nil, false, err
		}
		h.Mu.Lock()
	}
	if l := h.runs[p]; l.Works() || l != nil && j.story {
		h.Mu.Unlock()
		return l, false, l.wait(ctx)
	}
	room := h.room(p.Who.Tenant, j.story)
	if e := h.refuse(p.Who.Tenant, j.story, room); e != nil {
		h.Mu.Unlock()
		return nil, false, e
	}
	if by != nil && !by.Enter(&by.ActiveRuns, by.Runs) {
		h.Mu.Unlock()
		e := Fault("too_many", fmt.Sprintf("the token of %s may have %d concurrent runs", by.Name, by.Runs), "wait until one has stopped, or cancel it")
		e.RetryAfter = 1
		return nil, false, e
	}
	if old := h.runs[p]; old != nil {
		h.forget(old)
	}
	l := &Live{Place: p, Agent: j.Agent.Name, story: j.story, Structured: len(j.Agent.Output) > 0,
		Feed: newFeed(h.s.O.Fragments), Job: j, by: by, begun: make(chan struct{}), Done: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancelCause(store.WithThread(store.WithScope(h.base, p.Who), j.thread))
	h.runs[p] = l
	if s := h.seats[p]; s != nil && !j.story {
		delete(h.seats, p)
		close(s.on)
	}
	if !room {
		h.Queue.add(p.Who.Tenant, 1)
		l.queued.Store(true)
		h.Mu.Unlock()
		h.enqueue(l, msgs)
		return l, true, l.StartErr
	}
	h.start(l, msgs)
	h.Mu.Unlock()
	return l, true, l.wait(ctx)
}

// room reports whether a run may start at once. The caller holds mu.
func (h *Hub) room(tenant string, story bool) bool {
	if story {
		return h.stories < h.s.O.MaxRuns
	}
	return h.total < h.s.O.MaxRuns && h.mayRun(tenant) && h.Queue.size[tenant] == 0
}

func (h *Hub) mayRun(tenant string) bool {
	return h.s.O.TenantRuns == 0 || h.Working[tenant] < h.s.O.TenantRuns
}

// refuse returns the error for a run that can neither start nor wait. The caller holds mu.
func (h *Hub) refuse(tenant string, story, room bool) (e *api.Error) {
	q := &h.Queue
	switch {
	case Closed(h.Drained):
		e = Fault("busy", "the server is stopping", "try again later")
	case room:
		return nil
	case story, q.Total >= h.s.O.Queue, h.s.Tenants > 1 && q.size[tenant] >= (h.s.O.Queue+1)/2:
		e = Fault("busy", fmt.Sprintf("at most %d runs can execute concurrently, and %d can wait", h.s.O.MaxRuns, h.s.O.Queue), "try again later")
	default:
		return nil
	}
	e.RetryAfter = 1
	return e
}

// start executes a run. The caller holds mu.
func (h *Hub) start(l *Live, msgs []llm.Message) {
	h.count(l, 1)
	h.wg.Go(func() {
		h.work(l.ctx, l, msgs)
		l.leave()
	})
}

func (h *Hub) count(l *Live, n int) {
	if l.story {
		h.stories += n
		return
	}
	h.total += n
	h.Working[l.Who.Tenant] += n
	if h.Working[l.Who.Tenant] == 0 {
		delete(h.Working, l.Who.Tenant)
	}
}

// leave releases what the run holds of its token.
func (l *Live) leave() {
	if l.by != nil {
		l.by.Leave(&l.by.ActiveRuns)
	}
}

// enqueue stores a new run in the journal, or finds it there, and lets it wait.
func (h *Hub) enqueue(l *Live, msgs []llm.Message) {
	var err error
	if len(msgs) > 0 || l.Job.from != nil {
		r := h.s.Engine.Runner(l.Id, l.Job.Agent)
		r.Meta = l.Job.meta
		r.From = l.Job.from
		err = r.Enqueue(l.ctx, msgs...)
		l.Job.from = nil
	}
	h.Mu.Lock()
	defer h.Mu.Unlock()
	l.StartErr = err
	close(l.begun)
	h.Queue.push(l)
	if err != nil || Closed(h.Drained) {
		h.giveBack(l)
	}
	h.dispatch()
}

// dispatch starts waiting runs while there is room. The caller holds mu.
func (h *Hub) dispatch() {
	for h.total < h.s.O.MaxRuns && !Closed(h.Drained) {
		i := slices.IndexFunc(h.Queue.turns, h.mayRun)
		if i < 0 {
			return
		}
		l := h.Queue.waiting[h.Queue.turns[i]][0]
		h.Queue.take(l)
		h.start(l, nil)
	}
}

// hurry starts a waiting run that is cancelled, and therefore needs no room, and reports whether it
// was waiting.
func (h *Hub) hurry(l *Live) bool {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	if !l.queued.Load() || !Closed(l.begun) {
		return false
	}
	h.Queue.take(l)
	h.start(l, nil)
	return true
}

// drain starts no more runs and calls, and leaves the waiting runs to the next process.
func (h *Hub) drain() {
	h.Shut(h.Drained)
	h.Mu.Lock()
	defer h.Mu.Unlock()
	for len(h.Queue.turns) > 0 {
		h.giveBack(h.Queue.waiting[h.Queue.turns[0]][0])
	}
}

// giveBack removes a waiting run from this process. The caller holds mu.
func (h *Hub) giveBack(l *Live) {
	h.Queue.take(l)
	l.cancel(nil)
	l.Feed.end()
	close(l.Done)
	if h.runs[l.Place] == l {
		delete(h.runs, l.Place)
	}
	l.leave()
}

// mine reports whether a run that has waited is still to be executed here: another process may have
// found it in the journal.
func (h *Hub) mine(ctx context.Context, l *Live) bool {
	head, err := h.s.O.Journal.JournalRun(ctx, l.Who, l.Id)
	return err != nil || head.State == store.JournalOpen && (head.Owner == "" || !head.Until.After(h.s.O.Now()))
}

// wait returns when the run is in the journal, or with the reason why it is not.
func (l *Live) wait(ctx context.Context) error {
	select {
	case <-l.begun:
		return l.StartErr
	case <-ctx.Done():
		return ctx.Err()
	}
}
