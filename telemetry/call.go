package telemetry

// call.go: the span of a call.

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// aroundCall creates the span of a call that is permitted to run, and adds it to the tool's
// context. If there are events, the span ends with call_completed, which contains the outcome.
func (t *Telemetry) aroundCall(next pawl.ToolFunc) pawl.ToolFunc {
	return func(ctx context.Context, c llm.ToolCall) (res llm.ToolResult, err error) {
		inv := pawl.InvocationFrom(ctx)
		if inv == nil {
			return next(ctx, c)
		}
		tr := placeOf(ctx, inv.Key)
		n := t.enter(ctx, tr, inv.Key, c)
		defer func() { t.left(tr, n, inv, res, err) }()
		ctx = trace.ContextWithSpan(ctx, n.span)
		return next(context.WithValue(ctx, placeKey{}, place{tr, inv.Key, inv}), c)
	}
}

// enter begins the span. If a middleware repeats the call, enter is called again, and the earlier
// execution counts as an attempt.
func (t *Telemetry) enter(ctx context.Context, tr *tree, key llm.Key, c llm.ToolCall) *node {
	now := time.Now()
	if tr == nil {
		return t.startCall(ctx, key, c, now)
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	n := tr.nodes[key]
	switch {
	case tr.over:
		return t.startCall(ctx, key, c, now)
	case n == nil:
		// the run of a nested agent; its context contains that call's span
		if parent := tr.parent(key); parent != tr.root {
			ctx = trace.ContextWithSpan(ctx, parent.span)
		}
		n = t.startCall(ctx, key, c, now)
		tr.nodes[key] = n
	case !n.end.IsZero():
		n.repeats++
		t.failedAttempt(n.span, n.repeats, n.last, n.end, other, "")
	}
	n.last = now
	n.end = time.Time{}
	return n
}

// left records that the call has ended, as far as the middleware sees.
func (t *Telemetry) left(tr *tree, n *node, inv *pawl.Invocation, res llm.ToolResult, err error) {
	now := time.Now()
	if tr != nil {
		tr.mu.Lock()
		over := tr.over
		n.end = now
		tr.mu.Unlock()
		// complete ends the span with the Execution, which knows more: attempts, repairs, the
		// outcome. After the end of the run no Execution comes.
		if !over {
			return
		}
	}
	fault := faultOf(err)
	if fault == "" && res.IsError {
		fault = string(pawl.OutcomeError)
	}
	if t.options.Content && n.span.IsRecording() {
		n.span.SetAttributes(t.callContent(inv.Call, res)...)
	}
	t.endCall(n, now, fault, textOf(err), true)
}

// complete ends the span of a call with its Execution. It creates the span if the middleware did
// not see the call. The caller holds mu.
func (tr *tree) complete(x *pawl.Execution) {
	t := tr.telemetry
	n := tr.nodes[x.Key]
	if n == nil {
		if x.Started.Before(tr.root.start) && !x.Started.IsZero() {
			delete(tr.begun, x.Key)
			return // another process executed it and has recorded its span
		}
		c := x.Call
		if x.Outcome == pawl.OutcomeUnknownTool {
			c.Name = other // the model invented the name
		}
		n = tr.call(x.Key, c, x.Started)
	}
	delete(tr.nodes, x.Key)
	delete(tr.begun, x.Key)
	// The middleware measured the end at the tool.
	end := n.end
	if end.IsZero() {
		end = x.Ended
	}
	if end.Before(n.start) {
		end = n.start // its start event arrived late
	}
	set := []attribute.KeyValue{pawlOutcome.String(string(x.Outcome)), pawlAttempts.Int(x.Attempts)}
	set = given(set, x.Cached, pawlCached.Bool(true))
	set = given(set, len(x.Repairs) > 0, pawlRepairs.Int(len(x.Repairs)))
	if t.options.Content && n.span.IsRecording() {
		set = append(set, t.callContent(x.Call, x.Result)...)
	}
	n.span.SetAttributes(set...)
	fault := ""
	if x.Outcome.Failed() || x.Outcome == pawl.OutcomeCancelled || x.Outcome == pawl.OutcomeUnknown {
		fault = string(x.Outcome)
	}
	t.endCall(n, end, fault, x.Error, x.Attempts > 0)
}

// startCall begins the span of a call.
func (t *Telemetry) startCall(ctx context.Context, key llm.Key, c llm.ToolCall, start time.Time) *node {
	_, span := t.tracer.Start(ctx, executeTool+" "+c.Name, trace.WithTimestamp(start), trace.WithAttributes(
		semconv.GenAIOperationNameKey.String(executeTool), semconv.GenAIToolName(c.Name), semconv.GenAIToolType("function"),
		semconv.GenAIToolCallID(c.ID), pawlKey.String(string(key))))
	return &node{span: span, name: c.Name, start: start}
}

// endCall ends the span. If ran is true, the tool was started, and the call counts in the
// durations.
func (t *Telemetry) endCall(n *node, end time.Time, fault, text string, ran bool) {
	t.failed(n.span, fault, text)
	n.span.End(trace.WithTimestamp(end))
	if ran {
		measured(t.calls, append(t.metricSet(executeTool, "", ""), semconv.GenAIToolName(n.name)), fault, end.Sub(n.start))
	}
}
