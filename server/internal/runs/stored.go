package runs

// stored.go: what the journal has of a run.

import (
	"context"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/redact"
)

// Stored returns the content of a run, with secrets, and the extras of its client; nil means none.
func (s *Service) Stored(ctx context.Context, c Caller, id string) (*journal.Export, *Extras, error) {
	x, err := s.engine.Export(c.in(ctx), id)
	if err != nil {
		return nil, nil, err
	}
	extras, err := s.Extras(ctx, c, id)
	return x, extras, err
}

// Export returns a run without secrets. The run belongs to the scope in ctx (store.WithScope).
func (s *Service) Export(ctx context.Context, id string) (*journal.Export, error) {
	x, err := s.engine.Export(ctx, id)
	if err != nil {
		return nil, err
	}
	hide, err := s.redactor(ctx, id)
	if err != nil {
		return nil, err
	}
	return x.Redacted(hide), nil
}

// redactor returns the Redactor for the secrets of the server and of a run, whose tools may no
// longer be configured. Nil redacts nothing.
func (s *Service) redactor(ctx context.Context, id string) (*redact.Redactor, error) {
	if s.options.Secrets == nil {
		return nil, nil
	}
	return s.engine.Redactor(ctx, id, s.options.Secrets)
}

// Timeline returns the times of a run.
func (s *Service) Timeline(ctx context.Context, c Caller, id string) (*journal.Timeline, error) {
	return s.engine.Timeline(c.in(ctx), id)
}

// Effects returns the ledger of a run, without secrets.
func (s *Service) Effects(ctx context.Context, c Caller, id string) ([]journal.LedgerEntry, error) {
	list, err := s.engine.Effects(c.in(ctx), id)
	if err != nil {
		return nil, err
	}
	hide, err := s.redactor(c.in(ctx), id)
	if err != nil {
		return nil, err
	}
	for i := range list {
		list[i] = list[i].Redacted(hide)
	}
	return list, nil
}

// Diff returns where two runs differ, without secrets of either.
func (s *Service) Diff(ctx context.Context, c Caller, id, other string) ([]journal.Difference, error) {
	ctx = c.in(ctx)
	a, err := s.engine.Export(ctx, id)
	if err != nil {
		return nil, err
	}
	b, err := s.engine.Export(ctx, other)
	if err != nil {
		return nil, err
	}
	hide, err := s.redactor(ctx, id)
	if err == nil && hide != nil {
		hide, err = s.engine.Redactor(ctx, other, hide)
	}
	if err != nil {
		return nil, err
	}
	return journal.Diff(a, b, hide)
}

// Transcript returns the conversation of a run that is over.
func (s *Service) Transcript(ctx context.Context, c Caller, id string) ([]llm.Message, error) {
	res, err := s.endOf(ctx, c, id)
	if err != nil {
		return nil, err
	}
	return res.Messages, nil
}

// endOf returns the Result of a run that is over.
func (s *Service) endOf(ctx context.Context, c Caller, id string) (*pawl.Result, error) {
	head, err := s.Head(ctx, c, id)
	if err != nil {
		return nil, err
	}
	if !isOver(head) {
		return nil, Fault("conflict", id+" is not over", "give its calls their results")
	}
	j, err := s.jobOf(c.in(ctx), place{c.Scope, id}, head.Agent)
	if err != nil {
		return nil, err
	}
	for e, err := range s.engine.ReplayEvents(id, j.agent).Stream(c.in(ctx)) {
		if err != nil {
			return nil, err
		}
		if isEnd(e) && e.Result != nil {
			return e.Result, nil
		}
	}
	return nil, Fault("conflict", id+" has no end", "")
}
