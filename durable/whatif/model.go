package whatif

// model.go: stored replies to equal requests, and new replies to other requests.

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/internal/record"
	"github.com/pawl-go/pawl/llm"
)

// model answers the requests of one run. It wraps the model of the agent.
type model struct {
	session *session
	inner   llm.Model
	pricer  llm.Pricer       // nil means that the price is unknown
	holder  llm.OutputHolder // nil means that the model does not say
	name    string           // of the model in requests; "" means its own name

	was      record.Program // of the stored run
	differs  string         // what differs of the agent; "" means nothing
	digester record.Digester
	digests  map[*llm.ToolSpec]string // of the tools so far
}

var (
	_ llm.Model        = (*model)(nil)
	_ llm.Pricer       = (*model)(nil)
	_ llm.OutputHolder = (*model)(nil)
)

// newModel returns the model of b, which is the agent a as the replay needs it.
func newModel(s *session, a, b *pawl.Agent, was record.Program, name string) *model {
	m := &model{session: s, name: name, was: was, digests: map[*llm.ToolSpec]string{}}
	m.inner, m.pricer = new(pawl.Engine).InnerModel(a)
	m.holder, _ = llm.As[llm.OutputHolder](m.inner)
	if m.holder == nil {
		m.holder, _ = llm.As[llm.OutputHolder](a.Model)
	}

	now := record.Agent{
		Model:        record.NameOf(a.Model),
		Instructions: b.Instructions,
		Choice:       b.Choice,
		Settings:     b.Settings,
	}
	if name != "" {
		now.Model = was.Agent.Model
	}
	if was.Tools != nil || was.Agent != nil {
		m.differs = now.Difference(was)
	}
	return m
}

// Unwrap returns the wrapped model.
func (m *model) Unwrap() llm.Model { return m.inner }

// MaxCost returns the answer of the wrapped model.
func (m *model) MaxCost(req *llm.Request) (float64, bool) {
	if m.pricer == nil {
		return 0, false
	}
	return m.pricer.MaxCost(req)
}

// HoldsOutput returns the answer of the wrapped model.
func (m *model) HoldsOutput(req *llm.Request) bool {
	return m.holder != nil && m.holder.HoldsOutput(req)
}

// errRecordEnds stops a replay where the stored run had stopped, without a difference before.
var errRecordEnds = errors.New("the stored run stopped here")

// errOffline stops an offline replay at a request that differs.
var errOffline = errors.New("the request differs, and no model is asked offline")

// errBudget stops a replay when the budget is used up.
var errBudget = errors.New("the budget is used up")

// Stream yields the stored reply, or asks the model.
func (m *model) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		s := m.session
		stored := s.history.Replies[req.Key]
		what := m.difference(req, stored)
		if stored != nil && what == "" {
			s.mu.Lock()
			s.run.Played++
			s.mu.Unlock()
			stored.Original().Deltas()(yield)
			return
		}

		switch {
		case stored != nil:
			s.differ(req.Key, what)
		case !s.left() && !s.goesOn():
			yield(llm.Delta{}, s.stop(errRecordEnds))
			return
		default:
			s.differ(req.Key, "limits: the stored run stopped before this request")
		}
		m.ask(ctx, req, yield)
	}
}

// goesOn reports whether a request after the last stored one is a difference: the run had come to
// an end by itself. Otherwise something outside ended it, which is not replayed.
func (s *session) goesOn() bool {
	end := s.history.End
	switch end.Stop {
	case pawl.StopAnswer, pawl.StopFinished, pawl.StopStalled:
		return true
	case pawl.StopLimit:
		return end.Limit != "time"
	}
	return false
}

// ask sends the request to the model.
func (m *model) ask(ctx context.Context, req *llm.Request, yield func(llm.Delta, error) bool) {
	s := m.session
	switch {
	case s.trial.Offline:
		yield(llm.Delta{}, s.stop(errOffline))
		return
	case !s.trial.affords():
		yield(llm.Delta{}, s.stop(errBudget))
		return
	}
	s.mu.Lock()
	s.run.Asked++
	s.mu.Unlock()

	sent := *req
	if sent.Model == "" {
		sent.Model = m.name
	}
	resp := new(llm.Response)
	defer func() {
		s.trial.pay(resp.Usage.Cost)
		s.mu.Lock()
		s.run.Cost += resp.Usage.Cost
		s.mu.Unlock()
	}()

	for d, err := range m.inner.Stream(ctx, &sent) {
		if err == nil {
			err = resp.Add(d)
		}
		if err != nil && ctx.Err() == nil {
			err = s.stop(fmt.Errorf("the model: %w", err))
		}
		if !yield(d, err) || err != nil {
			return
		}
	}
}

// difference says what differs between req and the stored request. Empty means nothing.
func (m *model) difference(req *llm.Request, stored *record.Reply) string {
	now := m.digester.Next(req)
	switch {
	case stored == nil:
		return ""
	case m.differs != "":
		return m.differs
	}
	if what := m.toolDifference(req.Tools); what != "" {
		return what
	}
	return stored.Difference(now)
}

// toolDifference names the first tool that differs from the tool of the stored run.
func (m *model) toolDifference(tools []*llm.ToolSpec) string {
	if m.was.Tools == nil {
		return "" // not stored
	}
	gone := maps.Clone(m.was.Tools)
	for _, spec := range tools {
		delete(gone, spec.Name)
		now, known := m.digests[spec]
		if !known {
			now = record.ToolDigest(spec)
			m.digests[spec] = now
		}

		was := m.was.Tools[spec.Name]
		if was == "" {
			was = m.was.Later[spec.Name]
		}
		switch {
		case was == "":
			return "tools: " + spec.Name + " is new"
		case was != now:
			return "tools: " + spec.Name + " differs"
		}
	}
	for _, name := range slices.Sorted(maps.Keys(gone)) {
		return "tools: " + name + " is gone"
	}
	return ""
}
