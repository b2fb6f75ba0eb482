// Package telemetry tells OpenTelemetry what runs do: spans and metrics by its semantic conventions for generative AI, and lines of log/slog. The core knows
// nothing of it, and who does not import it pays nothing.
//
//	tel, err := telemetry.New(&telemetry.Options{Tracer: tp, Meter: mp, Provider: "openai", Model: "gpt-5-mini"})
//	…
//	agent.Middleware = append(agent.Middleware, tel.Middleware()) // last, so innermost
//	for e, err := range tel.Runner(agent).Stream(ctx, llm.User("Do I need an umbrella in Oslo?")) { … }
//
// The two halves see different things, and a span that one of them has made is ended by the other:
//
//	invoke_agent weather                  Runner: from the events, one a run, runs inside of calls included
//	├── chat gpt-5-mini                   Middleware: its context goes to the model, so the spans of an HTTP client stand below
//	│   └── attempt                       one that failed and was made again
//	├── execute_tool forecast             Middleware: its context goes to the tool; a call that was refused before is told by its event
//	└── execute_tool clerk
//	    └── invoke_agent clerk            nested by its key
//	        └── chat gpt-5-nano
//
// So the spans of a trace are the runs, the requests, the calls and the failed attempts that were made again, no more and no fewer. Where an agent has no
// Middleware (one inside of a call whose maker did not know of telemetry) its events alone make the same spans, but those of its HTTP client stand
// elsewhere, and the times of requests are those at which the events came. With the Middleware alone (Agent.Run, an activity of Temporal) there are no spans
// of runs, and the others stand below the span of the context.
//
// No word that a person, a model or a tool has said is told unless Options.Content asks for it; then secrets are hidden. That holds for the text of errors, too.
//
// Log writes the lines. Package telemetry/export sends spans and metrics to a collector, and has the page for Prometheus; any other exporter
// of the OpenTelemetry SDK will do as well. docs/telemetry.md lists every span, attribute and metric.
package telemetry

import (
	"cmp"
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	nometer "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	notrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/redact"
)

// Options say where spans and metrics go. The zero value makes none.
type Options struct {
	Tracer   trace.TracerProvider // nil: no spans
	Meter    metric.MeterProvider // nil: no metrics
	Provider string               // gen_ai.provider.name: "openai", "anthropic", "gcp.gemini"; "": _OTHER
	Model    string               // gen_ai.request.model where the request does not say; "": it is not told

	// Content tells messages, arguments, results and the text of errors too. They may hold what people would not have told to whoever reads traces.
	Content  bool
	Redactor *redact.Redactor // hides secrets in content; nil: one that hides the arguments which tools mark as secret
}

// Telemetry makes spans and metrics of runs. It may be used by many runs and agents at once.
type Telemetry struct {
	o        Options
	tracer   trace.Tracer
	tokens   metric.Int64Histogram
	duration metric.Float64Histogram
	first    metric.Float64Histogram
}

const scopeName = "github.com/pawl-go/pawl/telemetry"

// New makes a Telemetry; nil is the zero Options. The error is that of a Meter that refuses an instrument.
func New(o *Options) (*Telemetry, error) {
	t := new(Telemetry)
	if o != nil {
		t.o = *o
	}
	if t.o.Tracer == nil {
		t.o.Tracer = notrace.NewTracerProvider()
	}
	if t.o.Meter == nil {
		t.o.Meter = nometer.NewMeterProvider()
	}
	if t.o.Redactor == nil {
		t.o.Redactor = new(redact.Redactor)
	}
	t.o.Provider = cmp.Or(t.o.Provider, other)
	t.tracer = t.o.Tracer.Tracer(scopeName, trace.WithSchemaURL("https://opentelemetry.io/schemas/"+Conventions))
	m := t.o.Meter.Meter(scopeName, metric.WithSchemaURL("https://opentelemetry.io/schemas/"+Conventions))
	var errs [3]error
	t.tokens, errs[0] = m.Int64Histogram(tokenUsage, metric.WithUnit("{token}"),
		metric.WithDescription("Number of input and output tokens used."), metric.WithExplicitBucketBoundaries(tokenBounds...))
	t.duration, errs[1] = m.Float64Histogram(operationDuration, metric.WithUnit("s"),
		metric.WithDescription("GenAI operation duration."), metric.WithExplicitBucketBoundaries(durationBounds...))
	t.first, errs[2] = m.Float64Histogram(timeToFirst, metric.WithUnit("s"),
		metric.WithDescription("Time to receive the first chunk of a streamed reply."), metric.WithExplicitBucketBoundaries(firstBounds...))
	return t, errors.Join(errs[:]...)
}

// Middleware returns the middleware that makes the spans of requests and calls, and puts them into the contexts of models and tools. It should stand last,
// so innermost: then a request is one that is sent, whatever falls back or is answered from a cache around it.
func (t *Telemetry) Middleware() pawl.Middleware {
	return pawl.Middleware{
		Model:    func(m llm.Model) llm.Model { return &model{t, m} },
		Approved: t.aroundCall,
		Check: func(tools []*pawl.Tool) error {
			t.o.Redactor.AddTools(tools...)
			return nil
		},
	}
}

// measured notes how long an operation took.
func (t *Telemetry) measured(set []attribute.KeyValue, fault string, took time.Duration) {
	if fault != "" {
		set = append(set, errorType.String(fault))
	}
	t.duration.Record(context.Background(), took.Seconds(), metric.WithAttributes(set...))
}

// metricSet is what the metrics of an operation have in common.
func (t *Telemetry) metricSet(operation, model, response string) []attribute.KeyValue {
	set := []attribute.KeyValue{operationName.String(operation), providerName.String(t.o.Provider)}
	if model != "" {
		set = append(set, requestModel.String(model))
	}
	if response != "" {
		set = append(set, responseModel.String(response))
	}
	return set
}

// used notes the tokens of a request.
func (t *Telemetry) used(model, response string, u llm.Usage) {
	for _, n := range [...]struct {
		kind  string
		count int
	}{{"input", u.Input}, {"output", u.Output}} {
		if n.count > 0 {
			t.tokens.Record(context.Background(), int64(n.count), metric.WithAttributes(append(t.metricSet(chat, model, response), tokenType.String(n.kind))...))
		}
	}
}
