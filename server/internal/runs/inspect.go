package runs

import (
	"context"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/redact"
)

// Export returns a run without secrets. The run belongs to the scope in ctx (store.WithScope).
func (s *Service) Export(ctx context.Context, id string) (*journal.Export, error) {
	x, err := s.Engine.Export(ctx, id)
	if err != nil {
		return nil, err
	}
	hide, err := s.hides(ctx, id)
	if err != nil {
		return nil, err
	}
	return x.Redacted(hide), nil
}

// Hides returns the Redactor for the secrets of the server and of a run, whose tools may no longer
// be configured. Nil redacts nothing.
func (c *Caller) Hides(id string) (*redact.Redactor, error) { return c.S.hides(c.Ctx(), id) }

func (s *Service) hides(ctx context.Context, id string) (*redact.Redactor, error) {
	if s.O.Secrets == nil {
		return nil, nil
	}
	return s.Engine.Redactor(ctx, id, s.O.Secrets)
}

// Shown returns open calls for a client: complete for a client that executes them, without secrets
// for a client that only decides.
func (c *Caller) Shown(id string, open []pawl.PendingCall) ([]pawl.PendingCall, error) {
	hide, err := c.Hides(id)
	if err != nil || len(open) == 0 {
		return open, err
	}
	hidden := hide.Result(&pawl.Result{Pending: open}).Pending
	for i := range open {
		if !open[i].Passive {
			open[i] = hidden[i]
		}
	}
	return open, nil
}
