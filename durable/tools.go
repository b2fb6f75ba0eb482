package durable

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// offered is the tools in the requests of a run, for storage and comparison. A later request offers
// the same tools, and new ones after them.
type offered struct {
	checked int  // the number of compared tools
	first   bool // the first request was compared
	stored  int  // the number of stored tools
	started bool // the tools of the first request are stored; there may be none
}

// storeTools stores the tools that are offered for the first time.
func (m *model) storeTools(req *llm.Request) error {
	run := runOf(req.Key)
	was, known := m.s.h.tools[run]
	from := m.tools.stored
	m.tools.stored = len(req.Tools)
	if !known && !m.tools.started {
		m.tools.started = true
		return m.s.add(kindTools, run+"/tools",
			toolsBody{Tools: m.s.digests(req.Tools), Marked: markedOf(req.Tools),
				Instructions: sum([]byte(m.agent.Instructions)), Agent: &m.agent, Offered: offeredSpecs(req.Tools)})
	}
	later := slices.DeleteFunc(slices.Clone(req.Tools[min(from, len(req.Tools)):]), func(t *llm.ToolSpec) bool {
		return was.Tools[t.Name] != "" || was.Later[t.Name] != ""
	})
	if len(later) == 0 {
		return nil
	}
	step := strings.TrimSuffix(strings.TrimPrefix(string(req.Key), run+"/"), "/model")
	return m.s.add(kindTools, run+"/tools/"+step, toolsBody{Later: m.s.digests(later), Marked: markedOf(later),
		Offered: offeredSpecs(later)})
}

// check compares the stored tools and instructions of a run with the current ones: at the first
// request, and for tools that are offered later at the request that offers them.
func (m *model) check(req *llm.Request) error {
	run := runOf(req.Key)
	was, ok := m.s.h.tools[run]
	from := m.tools.checked
	m.tools.checked = len(req.Tools)
	switch {
	case !ok || from == len(req.Tools) && m.tools.first:
		return nil
	case !m.tools.first:
		m.tools.first = true
		return m.checkFirst(run, was, req)
	}
	now := m.s.digests(req.Tools[min(from, len(req.Tools)):])
	before := map[string]string{}
	for name := range now {
		before[name] = was.Later[name]
		if before[name] == "" {
			delete(now, name) // it was not offered before the run broke off
			delete(before, name)
		}
	}
	changed, err := m.changed(run, was, before, now, req)
	if len(changed) == 0 || err != nil || m.s.only {
		return err
	}
	return m.s.add(kindAccept, fmt.Sprintf("%s/accept/%d/%s", run, m.s.lease.Fence, changed[0]),
		acceptBody{run, changed, toolsBody{Tools: was.Tools, Later: now, Marked: markedOf(req.Tools),
			Offered: offeredSpecs(req.Tools)}})
}

// checkFirst compares the agent and the tools of the first request.
func (m *model) checkFirst(run string, was toolsBody, req *llm.Request) error {
	b := acceptBody{Run: run, toolsBody: toolsBody{Tools: m.s.digests(req.Tools), Marked: markedOf(req.Tools),
		Offered: offeredSpecs(req.Tools)}}
	if what := m.agent.difference(was); what != "" {
		if !m.s.engine.AcceptChanges {
			return fmt.Errorf("%w: the %s of %s differ", ErrChanged, what, run)
		}
		b.Names, b.Agent, b.Instructions = []string{what}, &m.agent, sum([]byte(m.agent.Instructions))
	}
	changed, err := m.changed(run, was, was.Tools, b.Tools, req)
	b.Names = append(b.Names, changed...)
	if len(b.Names) == 0 || err != nil || m.s.only {
		return err
	}
	m.s.h.accept(b)
	return m.s.add(kindAccept, fmt.Sprintf("%s/accept/%d", run, m.s.lease.Fence), b)
}

// changed returns the names whose digests or addresses differ. It returns an error if one of them
// may not change.
func (m *model) changed(run string, rec toolsBody, was, now map[string]string, req *llm.Request) (changed []string,
	err error) {
	var refused []string
	current, recorded := byName(offeredSpecs(req.Tools)), byName(rec.Offered)
	for _, name := range slices.Sorted(maps.Keys(joined(was, now))) {
		before := recorded[name]
		is := current[name]
		if was[name] == now[name] && (before == nil || is == nil || before.Address == is.Address) {
			continue
		}
		changed = append(changed, name)
		if !m.s.engine.AcceptChanges && !slices.Contains(m.accept, name) {
			if before != nil {
				name += " (" + before.difference(is) + ")"
			}
			refused = append(refused, name)
		}
	}
	if len(refused) > 0 {
		err = fmt.Errorf("%w: tools of %s differ from what they were: %s", ErrChanged, run, strings.Join(refused, ", "))
	}
	return changed, err
}

func byName(all []offeredTool) map[string]*offeredTool {
	out := map[string]*offeredTool{}
	for i := range all {
		out[all[i].Name] = &all[i]
	}
	return out
}

// digests returns digests by name, of everything that a model and the pipeline know of a tool.
func (s *session) digests(tools []*llm.ToolSpec) map[string]string {
	out := make(map[string]string, len(tools))
	for _, t := range tools {
		out[t.Name] = s.digest(t)
	}
	return out
}

// digest returns the digest of one tool, which does not change during a run.
func (s *session) digest(spec *llm.ToolSpec) string {
	t := toolOf(spec)

	s.mu.Lock()
	d, ok := s.digested[spec]
	s.mu.Unlock()
	if !ok {
		d = sum([]byte(t.Digest(nil)), []byte(t.Description), t.Output, []byte(t.Effect.String()),
			fmt.Append(nil, t.Passive))
		s.mu.Lock()
		s.digested[spec] = d
		s.mu.Unlock()
	}
	return d
}

// toolOf returns the tool that a request offers as spec. A middleware may make a spec without a
// tool. For such a spec, it makes a tool from the fields.
func toolOf(spec *llm.ToolSpec) *pawl.Tool {
	if t, ok := spec.Source.(*pawl.Tool); ok {
		return t
	}
	return &pawl.Tool{Name: spec.Name, Description: spec.Description, Input: spec.Input, Output: spec.Output,
		Deferred: spec.Deferred, NoRepair: spec.NoRepair, Passive: true}
}
