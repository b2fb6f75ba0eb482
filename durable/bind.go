package durable

// bind.go: the agents of a run, with models and executors that record.

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/internal/record"
	"github.com/pawl-go/pawl/llm"
)

// defaultCorrections is what Limits.Corrections of 0 means.
const defaultCorrections = 2

// bind returns a copy of a that records: its model, wrapped in its middleware, and its executor.
// The run at key continues with the agent that it began with: pawl.Engine.Bind.
func (s *session) bind(a *pawl.Agent, key llm.Key) *pawl.Agent {
	b := *a
	if a.Model == nil {
		return &b // the run returns this error
	}

	// The wrapped model contains the middleware of models: a stored reply does not pass it again.
	pinned := s.pin(&b, s.history.Programs[string(cmp.Or(key, "run"))])
	b.Model = s.bindModel(a, &b, pinned)
	b.Middleware = slices.Clone(a.Middleware)
	for i := range b.Middleware {
		b.Middleware[i].Model = nil
	}

	b.Executor = &executor{session: s, inner: a.Executor}

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.roots == 0 {
		s.continueLimits(&b.Limits)
	}
	s.roots++
	return &b
}

// bindModel returns the model of b, which is the agent a as the run began with it. name is the name
// of the model in requests; "" means its own.
func (s *session) bindModel(a, b *pawl.Agent, name string) *model {
	m := &model{session: s, accept: s.engine.AcceptChangedTools, name: name}
	m.agent = record.Agent{
		Model:        record.NameOf(a.Model),
		Instructions: b.Instructions,
		Choice:       b.Choice,
		Settings:     b.Settings,
	}
	if name != "" {
		provider, _, _ := strings.Cut(m.agent.Model, ":")
		m.agent.Model = provider + ":" + name
	}

	m.inner, m.pricer = s.core.InnerModel(a)
	m.holder, _ = llm.As[llm.OutputHolder](m.inner)

	// A middleware without Unwrap hides the ability of the model.
	if m.holder == nil {
		m.holder, _ = llm.As[llm.OutputHolder](a.Model)
	}
	return m
}

// continueLimits continues the limits of earlier processes. l are the limits of the outermost run.
func (s *session) continueLimits(l *pawl.Limits) {
	// A run that failed may be asked again: each resume has its own corrections, after the stored
	// ones.
	if l.Corrections >= 0 {
		l.Corrections = cmp.Or(l.Corrections, defaultCorrections) * (1 + s.history.FailedEnds)
	}

	// The time of earlier processes counts.
	if l.Time > 0 && !s.readOnly {
		l.Time = max(l.Time-s.history.Active(), time.Nanosecond)
	}
}
