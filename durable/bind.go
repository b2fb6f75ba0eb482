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
// The run at key continues with the agent that it began with.
func (s *session) bind(a *pawl.Agent, key llm.Key) *pawl.Agent {
	b := *a
	if a.Model == nil {
		return &b // the run returns this error
	}
	m := &model{session: s, accept: s.engine.AcceptChangedTools}
	m.name = s.pin(&b, s.history.Programs[string(cmp.Or(key, "run"))])
	m.agent = record.Agent{Model: nameOf(a.Model), Instructions: b.Instructions, Choice: b.Choice, Settings: b.Settings}
	if provider, _, _ := strings.Cut(m.agent.Model, ":"); m.name != "" {
		m.agent.Model = provider + ":" + m.name
	}

	m.inner, m.pricer = s.core.InnerModel(a)
	m.holder, _ = llm.As[llm.OutputHolder](m.inner)
	if m.holder == nil {
		m.holder, _ = llm.As[llm.OutputHolder](a.Model)
	}
	b.Middleware = slices.Clone(a.Middleware)
	for i := range b.Middleware {
		b.Middleware[i].Model = nil
	}
	b.Model = m

	x := &executor{session: s, inner: a.Executor}
	if x.inner == nil {
		x.inner = pawl.Parallel{}
	}
	b.Executor = x

	// The limit of the outermost run includes the time of earlier processes.
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.roots == 0 && b.Limits.Corrections >= 0 {
		// A run that failed may be asked again: each resume has its own corrections, after the
		// stored ones.
		b.Limits.Corrections = cmp.Or(b.Limits.Corrections, defaultCorrections) * (1 + s.history.FailedEnds)
	}
	if s.roots == 0 && b.Limits.Time > 0 && !s.readOnly {
		b.Limits.Time = max(b.Limits.Time-s.history.Active(), time.Nanosecond)
	}
	s.roots++
	return &b
}

// nameOf returns the name of a model as "provider:name", or "" if it is unknown.
func nameOf(m llm.Model) string {
	if named, ok := llm.As[llm.Namer](m); ok {
		return named.Name()
	}
	return ""
}
