package durable

// pinned.go: the run continues with the agent that it began with, or ends as changed.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/internal/record"
	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/store"
)

// pin changes b to the agent that the run began with, and returns the name of its model for
// requests; "" means the model's own.
func (s *session) pin(b *pawl.Agent, was record.Program) (model string) {
	if was.Agent == nil || s.comparesBytes || s.engine.AcceptChanges {
		return ""
	}
	b.Instructions = was.Agent.Instructions
	b.Choice = was.Agent.Choice
	b.Settings = was.Agent.Settings
	b.Tools = []pawl.Toolset{&pinned{pawl.Toolsets(b.Tools), was, s.engine.AcceptChangedTools}}

	provider, name, _ := strings.Cut(was.Agent.Model, ":")
	if now, own, _ := strings.Cut(nameOf(b.Model), ":"); now == provider && own != name {
		return name
	}
	return ""
}

// pinned is the toolset of a run that continues: the tools that it began with, in their order.
type pinned struct {
	pawl.Toolset
	was    record.Program
	accept []string // tools that may have changed
}

// Tools returns the recorded tools, and tools that a request may add later. A tool that is not
// compatible is returned unchanged: the first request rejects it.
func (p *pinned) Tools(ctx context.Context) ([]*pawl.Tool, error) {
	all, err := p.Toolset.Tools(ctx)
	if err != nil {
		return nil, err
	}

	recorded := record.ToolsByName(p.was.Offered)
	out := []*pawl.Tool{}
	for _, t := range all {
		was := recorded[t.Name]
		switch {
		case slices.Contains(p.accept, t.Name): // the present tool
		case was == nil && !t.Deferred:
			continue // the run began without it
		case was != nil && was.Compatible(record.Offer(t)):
			t = was.ApplyTo(t)
		}
		out = append(out, t)
	}

	// The recorded tools come first, in their order: the place of a new tool, -1, is the largest
	// unsigned number.
	place := func(t *pawl.Tool) uint {
		named := func(o record.OfferedTool) bool { return o.Name == t.Name }
		return uint(slices.IndexFunc(p.was.Offered, named))
	}
	slices.SortStableFunc(out, func(a, b *pawl.Tool) int { return cmp.Compare(place(a), place(b)) })
	return out, nil
}

// endChanged stores that the run cannot continue with the program that this process has. It is then
// JournalFailed with the reason, until it is resumed with the former program or with AcceptChanges.
func (s *session) endChanged(why error) {
	var limit *LimitError
	if !errors.Is(why, ErrChanged) || errors.As(why, &limit) {
		return
	}

	cause := text.Clip(why.Error(), 1000)
	body := record.End{Stop: pawl.StopFailed, Cause: cause, Error: cause}
	if s.history.End != nil {
		body.Spent = s.history.End.Spent
		body.Values = s.history.End.Values
	}
	r, err := s.record(record.KindEnd, s.endKey(), body)
	if err != nil {
		return
	}
	summary, err := json.Marshal(Summary{
		Stop:    body.Stop,
		Code:    codeChanged,
		Cause:   cause,
		Spent:   body.Spent,
		Pending: len(s.history.OpenQuestions()),
	})
	if err != nil {
		return
	}

	change := &store.JournalChange{State: store.JournalFailed, Summary: summary, Release: true, Seen: s.seen}
	_, err = s.write(change, []store.Record{r})
	s.ended = err == nil
}
