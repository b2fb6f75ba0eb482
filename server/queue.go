package server

// queue.go: admits runs. A run that finds no room waits in the journal and in a queue.

import (
	"context"
	"fmt"
	"slices"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// queue holds the runs that wait for room: in order for each tenant, and the tenants take turns.
type queue struct {
	waiting map[string][]*live // by tenant
	turns   []string           // tenants with waiting runs; the first is next
	size    map[string]int     // runs by tenant, with those whose start is being stored
	total   int                // their sum
}

func (q *queue) add(tenant string, n int) {
	q.total += n
	q.size[tenant] += n
	if q.size[tenant] == 0 {
		delete(q.size, tenant)
	}
}

func (q *queue) push(l *live) {
	t := l.who.Tenant
	if len(q.waiting[t]) == 0 {
		q.turns = append(q.turns, t)
	}
	q.waiting[t] = append(q.waiting[t], l)
}

// take removes a waiting run.
func (q *queue) take(l *live) {
	t := l.who.Tenant
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
func (s *Server) Queued() int {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return s.hub.queue.total
}

// ahead returns the number of runs that are before a run in the queue.
func (h *hub) ahead(p place) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	q := &h.queue
	l := h.runs[p]
	t := p.who.Tenant
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
func (h *hub) run(ctx context.Context, p place, j job, by *client, msgs ...llm.Message) (*live, bool, error) {
	h.mu.Lock()
	for l := h.runs[p]; l.works() && l.waits.Load(); l = h.runs[p] {
		// Its events end with the questions that the caller has answered.
		h.mu.Unlock()
		if err := l.await(ctx); err != nil {
			return nil, false, err
		}
		h.mu.Lock()
	}
	if l := h.runs[p]; l.works() || l != nil && j.story {
		h.mu.Unlock()
		return l, false, l.wait(ctx)
	}
	room := h.room(p.who.Tenant, j.story)
	if e := h.refuse(p.who.Tenant, j.story, room); e != nil {
		h.mu.Unlock()
		return nil, false, e
	}
	if by != nil && !by.enter(&by.runs, by.Runs) {
		h.mu.Unlock()
		e := fault("too_many", fmt.Sprintf("the token of %s may have %d concurrent runs", by.Name, by.Runs), "wait until one has stopped, or cancel it")
		e.after = 1
		return nil, false, e
	}
	if old := h.runs[p]; old != nil {
		h.forget(old)
	}
	l := &live{place: p, agent: j.agent.Name, story: j.story, structured: len(j.agent.Output) > 0,
		feed: newFeed(h.s.o.Fragments), job: j, by: by, begun: make(chan struct{}), done: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancelCause(store.WithThread(store.WithScope(h.base, p.who), j.thread))
	h.runs[p] = l
	if s := h.seats[p]; s != nil && !j.story {
		delete(h.seats, p)
		close(s.on)
	}
	if !room {
		h.queue.add(p.who.Tenant, 1)
		l.queued.Store(true)
		h.mu.Unlock()
		h.enqueue(l, msgs)
		return l, true, l.err
	}
	h.start(l, msgs)
	h.mu.Unlock()
	return l, true, l.wait(ctx)
}

// room reports whether a run may start at once. The caller holds mu.
func (h *hub) room(tenant string, story bool) bool {
	if story {
		return h.stories < h.s.o.MaxRuns
	}
	return h.total < h.s.o.MaxRuns && h.mayRun(tenant) && h.queue.size[tenant] == 0
}

func (h *hub) mayRun(tenant string) bool {
	return h.s.o.TenantRuns == 0 || h.working[tenant] < h.s.o.TenantRuns
}

// refuse returns the error for a run that can neither start nor wait. The caller holds mu.
func (h *hub) refuse(tenant string, story, room bool) (e *Error) {
	q := &h.queue
	switch {
	case closed(h.drained):
		e = fault("busy", "the server is stopping", "try again later")
	case room:
		return nil
	case story, q.total >= h.s.o.Queue, h.s.tenants > 1 && q.size[tenant] >= (h.s.o.Queue+1)/2:
		e = fault("busy", fmt.Sprintf("at most %d runs can execute concurrently, and %d can wait", h.s.o.MaxRuns, h.s.o.Queue), "try again later")
	default:
		return nil
	}
	e.after = 1
	return e
}

// start executes a run. The caller holds mu.
func (h *hub) start(l *live, msgs []llm.Message) {
	h.count(l, 1)
	h.wg.Go(func() {
		h.work(l.ctx, l, msgs)
		l.leave()
	})
}

func (h *hub) count(l *live, n int) {
	if l.story {
		h.stories += n
		return
	}
	h.total += n
	h.working[l.who.Tenant] += n
	if h.working[l.who.Tenant] == 0 {
		delete(h.working, l.who.Tenant)
	}
}

// leave releases what the run holds of its token.
func (l *live) leave() {
	if l.by != nil {
		l.by.leave(&l.by.runs)
	}
}

// enqueue stores a new run in the journal, or finds it there, and lets it wait.
func (h *hub) enqueue(l *live, msgs []llm.Message) {
	var err error
	if len(msgs) > 0 || l.job.from != nil {
		r := h.s.engine.Runner(l.id, l.job.agent)
		r.Meta = l.job.meta
		r.From = l.job.from
		err = r.Enqueue(l.ctx, msgs...)
		l.job.from = nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	l.err = err
	close(l.begun)
	h.queue.push(l)
	if err != nil || closed(h.drained) {
		h.giveBack(l)
	}
	h.dispatch()
}

// dispatch starts waiting runs while there is room. The caller holds mu.
func (h *hub) dispatch() {
	for h.total < h.s.o.MaxRuns && !closed(h.drained) {
		i := slices.IndexFunc(h.queue.turns, h.mayRun)
		if i < 0 {
			return
		}
		l := h.queue.waiting[h.queue.turns[i]][0]
		h.queue.take(l)
		h.start(l, nil)
	}
}

// hurry starts a waiting run that is cancelled, and therefore needs no room, and reports whether it
// was waiting.
func (h *hub) hurry(l *live) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !l.queued.Load() || !closed(l.begun) {
		return false
	}
	h.queue.take(l)
	h.start(l, nil)
	return true
}

// drain starts no more runs and calls, and leaves the waiting runs to the next process.
func (h *hub) drain() {
	h.shut(h.drained)
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.queue.turns) > 0 {
		h.giveBack(h.queue.waiting[h.queue.turns[0]][0])
	}
}

// giveBack removes a waiting run from this process. The caller holds mu.
func (h *hub) giveBack(l *live) {
	h.queue.take(l)
	l.cancel(nil)
	l.feed.end()
	close(l.done)
	if h.runs[l.place] == l {
		delete(h.runs, l.place)
	}
	l.leave()
}

// mine reports whether a run that has waited is still to be executed here: another process may have
// found it in the journal.
func (h *hub) mine(ctx context.Context, l *live) bool {
	head, err := h.s.o.Journal.JournalRun(ctx, l.who, l.id)
	return err != nil || head.State == store.JournalOpen && (head.Owner == "" || !head.Until.After(h.s.o.Now()))
}

// wait returns when the run is in the journal, or with the reason why it is not.
func (l *live) wait(ctx context.Context) error {
	select {
	case <-l.begun:
		return l.err
	case <-ctx.Done():
		return ctx.Err()
	}
}
