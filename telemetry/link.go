package telemetry

import (
	"context"
	"encoding/json"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawl-go/pawl"
)

// Relation is the relation of a run to an earlier run.
type Relation string

// The relations.
const (
	Resumed Relation = "resume" // it continues from the other run's Result
	Forked  Relation = "fork"   // it continues from a step in the middle of the other run
)

// traceparentValue is the name in Result.Values.
const traceparentValue = "traceparent"

// Traceparent returns the position of res's run in a trace, in the W3C form (00-TRACE-SPAN-FLAGS).
// A Runner writes it to res.Values, so it is also available in a stored res. It returns "" if there
// is none or res is nil.
func Traceparent(res *pawl.Result) (at string) {
	if res != nil {
		// a value that is not text was not written by this package
		_ = json.Unmarshal(res.Values[traceparentValue], &at)
	}
	return at
}

type linkKey struct{}

// LinkTo returns the context for a run that a Runner links to an earlier run at traceparent. An
// invalid or empty traceparent gives no link.
func LinkTo(ctx context.Context, is Relation, traceparent string) context.Context {
	link, ok := linkTo(is, traceparent)
	if !ok {
		return ctx
	}
	return context.WithValue(ctx, linkKey{}, append(slices.Clip(linksOf(ctx)), link))
}

func linkTo(is Relation, traceparent string) (trace.Link, bool) {
	at := parsed(traceparent)
	return trace.Link{SpanContext: at, Attributes: []attribute.KeyValue{pawlLink.String(string(is))}}, at.IsValid()
}

// linkAttempt links a durable run to its previous attempt, or to the run it was forked from, using
// the notice of its attempt.
func (n *node) linkAttempt(data []byte) {
	var said struct {
		Trace  string `json:"trace"`
		Forked struct {
			Trace string `json:"trace"`
		} `json:"forked_from"`
	}
	if json.Unmarshal(data, &said) != nil {
		return // the notice comes from another source
	}
	// A resumed fork continues its own attempt, and that attempt has the link to the run it was
	// forked from.
	link, ok := linkTo(Resumed, said.Trace)
	if !ok {
		link, ok = linkTo(Forked, said.Forked.Trace)
	}
	if ok {
		n.span.AddLink(link)
	}
}

func linksOf(ctx context.Context) []trace.Link {
	if _, inside := ctx.Value(placeKey{}).(place); inside {
		return nil // they belong to the enclosing run
	}
	links, _ := ctx.Value(linkKey{}).([]trace.Link)
	return links
}

func traceparent(at trace.SpanContext) string {
	form := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpanContext(context.Background(), at), form)
	return form[traceparentValue]
}

func parsed(traceparent string) trace.SpanContext {
	form := propagation.MapCarrier{traceparentValue: traceparent}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), form))
}

type idKey struct{}

// WithRunID returns the context for a run that is known by id (the ID of a durable run, or of a
// thread). It becomes the gen_ai.conversation.id of its spans and the run_id of its log lines.
func WithRunID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, idKey{}, id)
}

// RunID returns the ID set by WithRunID, or "".
func RunID(ctx context.Context) string {
	id, _ := ctx.Value(idKey{}).(string)
	return id
}
