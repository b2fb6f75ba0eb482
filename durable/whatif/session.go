package whatif

// session.go: session, which stands between the loop of a replayed run and its records.

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/internal/record"
	"github.com/pawl-go/pawl/llm"
)

// session is the replay of one run.
type session struct {
	trial   *Trial
	history *record.History
	cancel  context.CancelCauseFunc
	effects map[string]pawl.Effect // of the offered tools, by name

	mu      sync.Mutex // guards these fields
	results *pool[*record.Outcome]
	answers *pool[*llm.Decision]
	reused  map[llm.Key]*record.Outcome // calls that got a stored result from their tool
	shadows map[*pawl.Tool]bool         // the replacements of the tools of the agent
	// the tools of the agent, with their replacements
	replacements map[*pawl.Tool]*pawl.Tool
	made         []madeCall // calls that have ended
	leftAt       llm.Key    // the first difference; "" means none
	leftBy       string     // what differs there
	stopped      error      // why the replay ended early; nil means that it did not
	run          Run        // what is counted
}

func newSession(t *Trial, h *record.History, cancel context.CancelCauseFunc) *session {
	s := &session{
		trial:   t,
		history: h,
		cancel:  cancel,
		results: newPool[*record.Outcome](),
		answers: newPool[*llm.Decision](),
		effects: h.Effects(),
		reused:  map[llm.Key]*record.Outcome{},
		shadows: map[*pawl.Tool]bool{},

		replacements: map[*pawl.Tool]*pawl.Tool{},
	}
	for key, o := range h.Outcomes {
		if o.Execution.Attempts > 0 || o.Execution.Cached {
			s.results.add(key, o.Execution.Call, o)
		}
	}
	for key, o := range h.Outcomes {
		// A person at a terminal has answered without a stored question.
		if d := o.Execution.Decision; d != nil && len(h.Questions[key]) == 0 {
			s.answers.add(key, o.Call, d)
		}
	}
	for key, asked := range h.Questions {
		for i := range asked {
			q := &asked[i]
			if q.Answer != nil && q.Waiting.Outcome == pawl.OutcomePending {
				s.answers.add(key, q.Waiting.Call, q.Answer)
			}
		}
	}
	s.results.sort()
	s.answers.sort()
	return s
}

// differ records that the replay differs from the run at key. Only the first difference counts.
func (s *session) differ(key llm.Key, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leftBy == "" {
		s.leftAt = key
		s.leftBy = what
	}
}

// left reports whether the replay has differed from the run.
func (s *session) left() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leftBy != ""
}

// stop ends the replay before the end of the run. It returns the first reason.
func (s *session) stop(why error) error {
	s.mu.Lock()
	if s.stopped == nil {
		s.stopped = why
	}
	why = s.stopped
	s.mu.Unlock()

	s.cancel(why)
	return why
}

// bind returns a copy of a that asks the records: pawl.Engine.Bind.
func (s *session) bind(a *pawl.Agent, key llm.Key) *pawl.Agent {
	b := *a
	if a.Model == nil {
		return &b // the run returns this error
	}

	was := s.history.Programs[string(cmp.Or(key, "run"))]
	name := s.pin(&b, was, key)
	b.Model = newModel(s, a, &b, was, name)
	b.Middleware = slices.Clone(a.Middleware)
	for i := range b.Middleware {
		b.Middleware[i].Model = nil // the bound model contains them
	}

	b.Executor = executor{s}
	if !s.trial.leaks {
		b.Tools = []pawl.Toolset{&shadowed{pawl.Toolsets(b.Tools), s}}
	}
	if a.Artifacts != nil {
		b.Artifacts = &shelf{a.Artifacts, s}
	}
	return &b
}

// pin changes b to the agent that the run began with, apart from the change. It returns the name of
// its model for requests; "" means the model's own.
func (s *session) pin(b *pawl.Agent, was record.Program, key llm.Key) (model string) {
	change := s.trial.Change
	if change.All || was.Agent == nil {
		return ""
	}
	if key != "" && key != "run" {
		change = Change{}
	}

	if !change.Instructions {
		b.Instructions = was.Agent.Instructions
	}
	if !change.Settings {
		b.Choice = was.Agent.Choice
		b.Settings = was.Agent.Settings
	}
	b.Tools = []pawl.Toolset{&record.Pinned{Toolset: pawl.Toolsets(b.Tools), Was: was, Added: change.Tools}}
	if change.Model {
		return ""
	}
	return was.Agent.PinnedModel(b.Model)
}

var _ pawl.MessageSource = (*session)(nil)

// Take returns the messages that the stored request at key received.
func (s *session) Take(_ context.Context, at llm.Key) []llm.Message {
	if b := s.history.Steered[at]; b != nil {
		return b.Messages
	}
	return nil
}

// Close returns no message: a message that no request received has no effect.
func (s *session) Close(context.Context) []llm.Message { return nil }
