package temporal_test

import (
	"context"
	"errors"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/caller"
	"github.com/pawl-go/pawl/durable/temporal"
	"github.com/pawl-go/pawl/llm"
)

// The code blocks of docs/temporal.md. This test compiles them; it has no cluster to run them on.
var _ = []any{connect, work, begin, callers}

// vault has the credentials of users.
var vault interface {
	TokenOf(ctx context.Context, tenant, user string) (caller.Token, error)
}

func callers() temporal.Cluster {
	// begin callers
	workers := temporal.Cluster{
		Address: "127.0.0.1:7233",
		// The caller has a name, a tenant and a user.
		Credential: func(ctx context.Context, c caller.Caller) (caller.Token, error) {
			return vault.TokenOf(ctx, c.Tenant, c.User)
		},
	}
	// end callers
	return workers
}

func connect(ctx context.Context) (*temporal.Engine, error) {
	// begin connect
	blobs := temporal.Dir("/srv/pawl/blobs") // all workers and clients share it
	eng, err := temporal.Cluster{Address: "127.0.0.1:7233"}.Dial(ctx, blobs)
	// end connect
	return eng, err
}

func work(ctx context.Context, eng *temporal.Engine, agent *pawl.Agent) error {
	// begin work
	w := eng.Worker(nil)
	// Every worker of the task queue has the same agents under the same names.
	if err := w.Add(ctx, "billing", agent); err != nil {
		return err
	}
	return w.Run(ctx) // until ctx ends
	// end work
}

func begin(ctx context.Context, eng *temporal.Engine) error {
	// begin begin
	_, err := eng.Runner("invoice-7", "billing").Run(ctx, llm.User("Pay invoice 7."))
	var stop *pawl.StopError
	if errors.As(err, &stop) && stop.Reason == pawl.StopPending {
		err = eng.Decide(ctx, "invoice-7", stop.Result.Pending[0].Approve("me"))
	}
	// end begin
	return err
}
