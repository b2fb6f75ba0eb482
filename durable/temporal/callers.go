package temporal

import (
	"context"
	"fmt"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/pawl-go/pawl/caller"
)

// Credential returns the credential with which a worker acts in the name of a caller, whose Name,
// Tenant and User it has. It is called for each activity of a run that has a caller, and must be
// safe for concurrent use. After an error the calls that need the credential are refused, and
// nothing is sent.
type Credential func(ctx context.Context, c caller.Caller) (caller.Token, error)

// Callers returns the propagator that brings the caller of a run to its activities, for the
// ContextPropagators of client.Options. Clients that start runs need it, with or without a
// Credential, and workers need it with one. Cluster.Dial sets it.
//
// The caller that caller.From finds in the context of Runner.Run is the caller of the run until its
// end, also on another worker, in nested agents, and after an answer of another person. The history
// has the caller's identity and never the credential. Every client of the namespace can name any
// caller, so only programs that authenticate their users may have access to it.
func Callers(credential Credential) workflow.ContextPropagator {
	return &callers{credential: credential}
}

// callers implements Callers.
type callers struct{ credential Credential }

// identity is a caller in the header of a workflow and of its activities. Its form is stored.
type identity struct {
	Name   string `json:"name,omitzero"`
	Tenant string `json:"tenant,omitzero"`
	User   string `json:"user,omitzero"`
}

const identityHeader = "pawl-caller"

type identityKey struct{}

// Inject writes the identity of the caller in ctx.
func (p *callers) Inject(ctx context.Context, to workflow.HeaderWriter) error {
	c, ok := caller.From(ctx)
	if !ok {
		return nil
	}
	return write(to, identity{Name: c.Name, Tenant: c.Tenant, User: c.User})
}

// InjectFromWorkflow writes the identity of the caller of a run.
func (p *callers) InjectFromWorkflow(ctx workflow.Context, to workflow.HeaderWriter) error {
	id, ok := ctx.Value(identityKey{}).(identity)
	if !ok {
		return nil
	}
	return write(to, id)
}

// Extract returns a context with the caller of the run, for an activity.
func (p *callers) Extract(ctx context.Context, from workflow.HeaderReader) (context.Context, error) {
	id, ok, err := read(from)
	if err != nil || !ok {
		return ctx, err
	}
	c := caller.Caller{Name: id.Name, Tenant: id.Tenant, User: id.User}
	if p.credential == nil {
		return caller.With(ctx, c), nil
	}

	// An activity without the credential is not lost: what needs it is refused, with the reason
	// that there is none.
	token, err := p.credential(ctx, c)
	if err == nil {
		c.Token = token
	}
	return caller.With(ctx, c), nil
}

// ExtractToWorkflow returns a context with the identity of the caller.
func (p *callers) ExtractToWorkflow(ctx workflow.Context, from workflow.HeaderReader) (workflow.Context, error) {
	id, ok, err := read(from)
	if err != nil || !ok {
		return ctx, err
	}
	return workflow.WithValue(ctx, identityKey{}, id), nil
}

// write writes an identity into a header.
func write(to workflow.HeaderWriter, id identity) error {
	payload, err := converter.GetDefaultDataConverter().ToPayload(id)
	if err != nil {
		return fmt.Errorf("the caller of the run: %w", err)
	}
	to.Set(identityHeader, payload)
	return nil
}

// read returns the identity in a header. ok is false if there is none.
func read(from workflow.HeaderReader) (id identity, ok bool, err error) {
	payload, ok := from.Get(identityHeader)
	if !ok {
		return id, false, nil
	}
	err = converter.GetDefaultDataConverter().FromPayload(payload, &id)
	if err != nil {
		return id, false, fmt.Errorf("the caller of the run: %w", err)
	}
	return id, true, nil
}
