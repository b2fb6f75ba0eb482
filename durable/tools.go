package durable

// tools.go: stores and compares the tools that requests offer.

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/durable/internal/record"
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
	run := record.RunOf(req.Key)
	was, known := m.session.history.Programs[run]
	from := min(m.tools.stored, len(req.Tools))
	m.tools.stored = len(req.Tools)

	if !known && !m.tools.started {
		m.tools.started = true
		return m.session.add(record.KindTools, run+"/tools", record.Program{
			Tools:        m.session.digests(req.Tools),
			Marked:       record.MarkedIn(req.Tools),
			Instructions: record.Digest([]byte(m.agent.Instructions)),
			Agent:        &m.agent,
			Offered:      record.OfferSpecs(req.Tools),
		})
	}

	// A process that died may have stored some of them.
	stored := func(t *llm.ToolSpec) bool { return was.Tools[t.Name] != "" || was.Later[t.Name] != "" }
	later := slices.DeleteFunc(slices.Clone(req.Tools[from:]), stored)
	if len(later) == 0 {
		return nil
	}
	step := strings.TrimSuffix(strings.TrimPrefix(string(req.Key), run+"/"), "/model")
	return m.session.add(record.KindTools, run+"/tools/"+step, record.Program{
		Later:   m.session.digests(later),
		Marked:  record.MarkedIn(later),
		Offered: record.OfferSpecs(later),
	})
}

// compareTools compares the stored tools and instructions of a run with the current ones: at the
// first request, and for tools that are offered later at the request that offers them.
func (m *model) compareTools(req *llm.Request) error {
	run := record.RunOf(req.Key)
	was, known := m.session.history.Programs[run]
	from := min(m.tools.checked, len(req.Tools))
	m.tools.checked = len(req.Tools)

	switch {
	case !known: // the run has not offered tools yet
		return nil
	case !m.tools.first:
		m.tools.first = true
		return m.compareFirst(run, was, req)
	case from == len(req.Tools):
		return nil // no new ones
	}

	// A tool that the run had not offered when it broke off is not compared.
	now := map[string]string{}
	before := map[string]string{}
	for name, digest := range m.session.digests(req.Tools[from:]) {
		if stored := was.Later[name]; stored != "" {
			now[name] = digest
			before[name] = stored
		}
	}

	changed, err := m.changedTools(run, was, before, now, req)
	if len(changed) == 0 || err != nil || m.session.readOnly {
		return err
	}
	accepted := record.Program{
		Tools:   was.Tools,
		Later:   now,
		Marked:  record.MarkedIn(req.Tools),
		Offered: record.OfferSpecs(req.Tools),
	}
	key := fmt.Sprintf("%s/accept/%d/%s", run, m.session.lease.Fence, changed[0])
	return m.session.add(record.KindAccept, key, record.Acceptance{Run: run, Names: changed, Program: accepted})
}

// compareFirst compares the agent and the tools of the first request.
func (m *model) compareFirst(run string, was record.Program, req *llm.Request) error {
	b := record.Acceptance{
		Run: run,
		Program: record.Program{
			Tools:   m.session.digests(req.Tools),
			Marked:  record.MarkedIn(req.Tools),
			Offered: record.OfferSpecs(req.Tools),
		},
	}
	if what := m.agent.Difference(was); what != "" {
		if !m.session.engine.AcceptChanges {
			return fmt.Errorf("%w: the %s of %s differ", ErrChanged, what, run)
		}
		b.Names = []string{what}
		b.Agent = &m.agent
		b.Instructions = record.Digest([]byte(m.agent.Instructions))
	}

	changed, err := m.changedTools(run, was, was.Tools, b.Tools, req)
	b.Names = append(b.Names, changed...)
	if len(b.Names) == 0 || err != nil || m.session.readOnly {
		return err
	}

	// Later attempts compare with the accepted program.
	m.session.history.Accept(b)
	return m.session.add(record.KindAccept, fmt.Sprintf("%s/accept/%d", run, m.session.lease.Fence), b)
}

// changedTools returns the names of the tools whose digests, was and now, or whose addresses
// differ. It returns an error if one of them may not change.
func (m *model) changedTools(run string, rec record.Program, was, now map[string]string,
	req *llm.Request) (changed []string, err error) {
	var refused []string
	recorded := record.ToolsByName(rec.Offered)
	current := record.ToolsByName(record.OfferSpecs(req.Tools))

	for _, name := range slices.Sorted(maps.Keys(record.Joined(was, now))) {
		// The digest of a tool does not contain its address.
		before := recorded[name]
		is := current[name]
		moved := before != nil && is != nil && before.Address != is.Address
		if was[name] == now[name] && !moved {
			continue
		}
		changed = append(changed, name)

		accepted := m.session.engine.AcceptChanges || slices.Contains(m.accept, name)
		if accepted {
			continue
		}
		if before != nil {
			name += " (" + before.Difference(is) + ")"
		}
		refused = append(refused, name)
	}

	if len(refused) > 0 {
		err = fmt.Errorf("%w: tools of %s differ from what they were: %s", ErrChanged, run, strings.Join(refused, ", "))
	}
	return changed, err
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
	s.mu.Lock()
	d, ok := s.digested[spec]
	s.mu.Unlock()
	if ok {
		return d
	}

	d = record.ToolDigest(spec)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.digested[spec] = d
	return d
}
