package pawl

import (
	"context"

	"github.com/pawl-go/pawl/llm"
)

// Engine makes runs survive what happens to the process. It binds an agent: Bind returns a copy whose Model and Executor record, the agent's middleware
// inside of what is recorded, since it may look at clocks. Package durable has the one over a journal.
//
// The engine of a run is in its context. Each run of an Agent under that context is bound, and so are those that agents make inside its calls (Agent.Tool); the run
// that a tool makes by itself, by Agent.Run, is part of what the tool does and is not.
type Engine interface {
	Bind(a *Agent) *Agent
}

// Recorder is a Replayer that keeps what a call is about to do before it does it.
type Recorder interface {
	Replayer
	// Intend is called before each attempt of a tool that does not compose, when everything has let it pass: call is what it is begun with. It returns when that
	// is kept. With an error the tool does not begin, and its call stays open; the Recorder ends the run's context with a cause that says why.
	Intend(ctx context.Context, t Task, call llm.ToolCall, tool *Tool, attempt int) error
}

type engineKey struct{}

type engaged struct {
	engine Engine
	run    string
}

// WithEngine returns the context of a run with that ID which e makes durable. The ID tells its idempotency keys and its artifacts from those of other runs.
func WithEngine(ctx context.Context, e Engine, run string) context.Context {
	return context.WithValue(ctx, engineKey{}, engaged{e, run})
}

type traceKey struct{}

// WithTrace returns the context of runs that stand at traceparent in a trace, in the form of the W3C. An engine keeps it, and tells who goes on with a run where the attempt before stood, so that
// the two can be linked. Package telemetry does both.
func WithTrace(ctx context.Context, traceparent string) context.Context {
	return context.WithValue(ctx, traceKey{}, traceparent)
}

// TraceOf returns what WithTrace has said; "": nothing.
func TraceOf(ctx context.Context) string {
	at, _ := ctx.Value(traceKey{}).(string)
	return at
}

// engineOf returns what makes a run durable that begins with ctx; nothing when it is part of what a tool does.
func engineOf(ctx context.Context, inside *Invocation) engaged {
	if inside == nil && InvocationFrom(ctx) != nil {
		return engaged{}
	}
	e, _ := ctx.Value(engineKey{}).(engaged)
	return e
}

// parallelOf returns the Parallel that e is, or is made around.
func parallelOf(e Executor) (Parallel, bool) {
	for {
		switch x := e.(type) {
		case Parallel:
			return x, true
		case interface{ Unwrap() Executor }:
			e = x.Unwrap()
		default:
			return Parallel{}, false
		}
	}
}

// intend has the attempt kept that is about to begin. An error: it does not begin.
func (p *work) intend(ctx context.Context, c llm.ToolCall) error {
	s := p.task.scope
	if s.recorder == nil || p.tool.Effect == EffectCompose || p.tool == s.answer {
		return nil
	}
	if err := s.recorder.Intend(ctx, *p.task, c, p.tool, p.x.Attempts+1); err != nil {
		return &failure{outcome: OutcomeCancelled, text: "Not run: it could not be recorded.", err: err}
	}
	return nil
}

// Tool returns the tool that t's call names: read only. It is nil when the run has none of that name, or t was sent here from elsewhere.
func (t Task) Tool() *Tool {
	if t.scope == nil {
		return nil
	}
	return t.named(t.Call.Name)
}

// named returns the tool of that name; nil: the run has none.
func (t *Task) named(name string) *Tool {
	if t.tool != nil && t.tool.Name == name {
		return t.tool
	}
	return find(t.scope.tools, name)
}
