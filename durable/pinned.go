package durable

// pinned.go: the run continues with the agent that it began with, or ends as changed.

import (
	"errors"

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
	b.Tools = []pawl.Toolset{&record.Pinned{
		Toolset: pawl.Toolsets(b.Tools),
		Was:     was,
		Changed: s.engine.AcceptChangedTools,
	}}
	return was.Agent.PinnedModel(b.Model)
}

// endChanged stores that the run cannot continue with the program that this process has. It is then
// JournalFailed with the reason, until it is resumed with the former program or with AcceptChanges.
func (s *session) endChanged(why error) {
	var limit *LimitError
	if !errors.Is(why, ErrChanged) || errors.As(why, &limit) {
		return
	}

	cause := text.Clip(why.Error(), 1000)
	end, summary, err := failedEnd(s.history, CodeChanged, cause)
	if err != nil {
		return
	}
	r, err := s.record(record.KindEnd, s.endKey(), end)
	if err != nil {
		return
	}

	// Not by flush, which stores nothing after a failure.
	change := &store.JournalChange{State: store.JournalFailed, Summary: summary, Release: true, Seen: s.seen}
	_, err = s.write(change, []store.Record{r})
	s.ended = err == nil
}
