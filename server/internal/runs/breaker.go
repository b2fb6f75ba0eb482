package runs

// breaker.go: a circuit breaker for each model, so that the runs that wait for a provider do not
// ask it all the time, nor all at once when it is back:
//
//	closed ──▶ open: three requests in a row have failed; each further one fails at once
//	  ▲          │ now and then one request passes, as a probe
//	  │          ▼
//	  └──── recovering: a request was answered; each answer lets two more waiting runs begin

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

const (
	// failuresToOpen is the number of temporary errors in a row that open a breaker.
	failuresToOpen = 3
	// mostPause is the longest time between two probes.
	mostPause = 5 * time.Minute
)

// phase is the state of a breaker.
type phase int

const (
	phaseClosed phase = iota
	phaseOpen
	phaseRecovering
)

// breaker decides which requests to a model are sent. It is safe for concurrent use.
type breaker struct {
	every time.Duration // see pause; less than 0 means that the breaker never opens

	// mu guards these fields.
	mu       sync.Mutex
	phase    phase
	failures int                // temporary errors in a row
	last     *llm.ProviderError // the last one; nil means none
	since    time.Time          // when the phase began
	probe    time.Time          // when the next probe may begin
	granted  bool               // a run may begin that has not sent its request yet: the probe
}

// pause returns the time to the next probe: a tenth of the outage so far, since each probe is
// stored in the journal of its run. The caller holds mu.
func (b *breaker) pause(now time.Time) time.Duration {
	return min(max(b.every, now.Sub(b.since)/10), mostPause)
}

// admit returns the error of a request that is not sent. Nil means that it is sent.
func (b *breaker) admit(now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.phase != phaseOpen:
		return nil
	case b.granted:
		b.granted = false
		return nil
	case !now.Before(b.probe):
		b.probe = now.Add(b.pause(now))
		return nil
	}

	refused := *b.last
	refused.Message = fmt.Sprintf("not asked, because the provider has been away since %s: %s",
		b.since.Format("15:04"), b.last.Message)
	refused.RetryAfter = b.probe.Sub(now)
	return &refused
}

// allow reports whether a waiting run may begin, and if not, when to ask again. While the breaker
// is not closed, one run may begin in each interval.
func (b *breaker) allow(now time.Time) (ok bool, next time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.phase == phaseClosed:
		return true, now
	case now.Before(b.probe):
		return false, b.probe
	}
	b.probe = now.Add(b.pause(now))
	b.granted = b.phase == phaseOpen
	return true, now
}

// nextProbe returns the time of the next probe. False means that the breaker is not open.
func (b *breaker) nextProbe() (at time.Time, isOpen bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.probe, b.phase == phaseOpen
}

// fail records a temporary error of the provider.
func (b *breaker) fail(err *llm.ProviderError, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures++
	b.last = err
	if b.every < 0 || b.failures < failuresToOpen {
		return
	}
	if b.phase != phaseOpen {
		b.phase = phaseOpen
		b.since = now
		b.probe = now.Add(b.pause(now))
		b.granted = false
	}
	if asked := now.Add(min(err.RetryAfter, mostPause)); asked.After(b.probe) {
		b.probe = asked
	}
}

// answer records a reply. It reports whether the provider was away.
func (b *breaker) answer(now time.Time) (wasAway bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures = 0
	if b.phase == phaseOpen {
		b.phase = phaseRecovering
		b.since = now
		b.probe = now.Add(b.pause(now))
	}
	return b.phase == phaseRecovering
}

// close ends the recovery: no run waits any more.
func (b *breaker) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.phase == phaseRecovering {
		b.phase = phaseClosed
	}
}

// modelName returns the name of the model of an agent, for its breaker.
func modelName(a *pawl.Agent) string {
	if n, ok := llm.As[llm.Namer](a.Model); ok && n.Name() != "" {
		return n.Name()
	}
	return "of the agent " + a.Name
}

// breakers has the breaker of each model. It is safe for concurrent use.
type breakers struct {
	every    time.Duration      // breaker.every
	answered func(model string) // is called when a model has answered that was away

	mu  sync.Mutex
	all map[string]*breaker // by modelName; guarded by mu
}

// forAgent returns the breaker of the model of an agent.
func (s *breakers) forAgent(a *pawl.Agent) *breaker { return s.named(modelName(a)) }

// named returns the breaker of a model.
func (s *breakers) named(model string) *breaker {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.all[model]
	if b == nil {
		b = &breaker{every: s.every}
		s.all[model] = b
	}
	return b
}

// open returns the number of open breakers.
func (s *breakers) open() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.all {
		if _, isOpen := b.nextProbe(); isOpen {
			n++
		}
	}
	return n
}

// guard returns the agent with the breaker of its model.
func (s *breakers) guard(a *pawl.Agent) *pawl.Agent {
	if a.Model == nil {
		return a
	}
	c := *a
	c.Model = &guardedModel{Model: a.Model, breakers: s, name: modelName(a)}
	return &c
}

// guardedModel is a model with a breaker.
type guardedModel struct {
	llm.Model
	breakers *breakers
	name     string
}

// Unwrap returns the model without the breaker.
func (m *guardedModel) Unwrap() llm.Model { return m.Model }

// Stream sends a request, unless the breaker is open.
func (m *guardedModel) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		b := m.breakers.named(m.name)
		if err := b.admit(time.Now()); err != nil {
			yield(llm.Delta{}, err)
			return
		}

		for d, err := range m.Model.Stream(ctx, req) {
			var away *llm.ProviderError
			switch {
			case err == nil && d.Finish != "":
				if b.answer(time.Now()) {
					m.breakers.answered(m.name)
				}
			case errors.As(err, &away) && away.Retryable && ctx.Err() == nil:
				b.fail(away, time.Now())
			}
			if !yield(d, err) {
				return
			}
		}
	}
}
