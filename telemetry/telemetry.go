// Package telemetry reports runs to OpenTelemetry: spans and metrics that follow its semantic
// conventions for generative AI, and lines of log/slog. The core does not depend on it, and
// programs that do not import it have no cost.
//
//	tel, err := telemetry.New(&telemetry.Options{
//		Tracer: tp, Meter: mp, Provider: "openai", Model: "gpt-6.1-terra",
//	})
//	…
//	agent.Middleware = append(agent.Middleware, tel.Middleware())
//	question := llm.User("Do I need an umbrella in Oslo?")
//	for e, err := range tel.Runner(agent).Stream(ctx, question) { … }
//
// The two parts see different things, and each can end spans that the other created:
//
//	invoke_agent weather        Runner: one for each run, from its events, including nested runs
//	├── chat gpt-6.1-terra         Middleware: its context goes to the model, so the spans of an
//	│   │                       HTTP client are below it
//	│   └── attempt             a failed attempt that was retried
//	├── execute_tool forecast   Middleware: its context goes to the tool; a call that was
//	│                           refused earlier is reported by its event
//	└── execute_tool clerk
//	    └── invoke_agent clerk  nested by its key
//	        └── chat gpt-6-luna
//
// The spans of a trace are exactly the runs, the requests, the calls and the failed attempts that
// were retried. If an agent has no Middleware (a nested agent whose author did not use telemetry),
// its events alone give the same spans. The spans of its HTTP client are then elsewhere in the
// trace, and the times of requests are the times of the events. With the Middleware alone
// (Agent.Run, an activity of Temporal) there are no spans of runs, and the other spans are below
// the span of the context.
//
// Words of a person, a model or a tool are recorded only with Options.Content, and then secrets are
// redacted. This applies to the text of errors as well.
//
// Log writes the log lines. Package telemetry/export sends spans and metrics to a collector, and
// provides the page for Prometheus; any other exporter of the OpenTelemetry SDK works as well.
// docs/telemetry.md lists every span, attribute and metric.
package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	nometer "go.opentelemetry.io/otel/metric/noop"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/semconv/v1.41.0/genaiconv"
	"go.opentelemetry.io/otel/trace"
	notrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/redact"
)

// Options define where spans and metrics go. The zero value creates none.
type Options struct {
	Tracer trace.TracerProvider // nil means no spans
	Meter  metric.MeterProvider // nil means no metrics
	// Provider is gen_ai.provider.name: "openai", "anthropic", "gcp.gemini". Empty means _OTHER.
	Provider string
	Model    string // gen_ai.request.model if the request names none; empty means not reported
	// Names are the names that have changed since the conventions left OpenTelemetry's main
	// repository. Empty means Names2026.
	Names Names

	// Content also records messages, arguments, results and the text of errors. They may contain
	// private information that readers of traces should not see.
	Content bool
	// Redactor redacts content. Nil means a Redactor for the arguments that tools mark as secret.
	Redactor *redact.Redactor
}

// Telemetry creates spans and metrics for runs. It is safe for concurrent use by many runs and
// agents.
type Telemetry struct {
	options  Options
	tracer   trace.Tracer
	tokens   metric.Int64Histogram
	duration metric.Float64Histogram // of requests
	first    metric.Float64Histogram
	runs     metric.Float64Histogram // the duration of runs
	calls    metric.Float64Histogram // the duration of calls
}

const scopeName = "github.com/pawl-go/pawl/telemetry"

// New returns a Telemetry. A nil o is the zero Options. It returns an error if the Meter refuses an
// instrument.
func New(o *Options) (*Telemetry, error) {
	t := new(Telemetry)
	t.options = *cmp.Or(o, new(Options))
	if t.options.Tracer == nil {
		t.options.Tracer = notrace.NewTracerProvider()
	}
	if t.options.Meter == nil {
		t.options.Meter = nometer.NewMeterProvider()
	}
	t.options.Redactor = cmp.Or(t.options.Redactor, new(redact.Redactor))
	t.options.Provider = cmp.Or(t.options.Provider, other)
	t.options.Names = cmp.Or(t.options.Names, Names2026)
	if !slices.Contains(names, t.options.Names) {
		return nil, fmt.Errorf("telemetry names %q: want one of %q", t.options.Names, names)
	}
	t.tracer = t.options.Tracer.Tracer(scopeName, trace.WithSchemaURL(semconv.SchemaURL))
	m := t.options.Meter.Meter(scopeName, metric.WithSchemaURL(semconv.SchemaURL))
	tokens, err1 := genaiconv.NewClientTokenUsage(m, metric.WithExplicitBucketBoundaries(tokenBounds...))
	duration, err2 := genaiconv.NewClientOperationDuration(m, metric.WithExplicitBucketBoundaries(durationBounds...))
	first, err3 := genaiconv.NewClientOperationTimeToFirstChunk(m, metric.WithExplicitBucketBoundaries(firstBounds...))
	t.tokens = tokens.Inst()
	t.duration = duration.Inst()
	t.first = first.Inst()
	// The older conventions have one histogram for requests, calls and runs.
	t.runs = t.duration
	t.calls = t.duration
	if t.options.Names == Names1_41 {
		return t, errors.Join(err1, err2, err3)
	}

	var err4, err5 error
	t.runs, err4 = m.Float64Histogram(invokeAgentDuration, metric.WithUnit("s"),
		metric.WithDescription("The duration of one agent invocation."), metric.WithExplicitBucketBoundaries(runBounds...))
	t.calls, err5 = m.Float64Histogram(executeToolDuration, metric.WithUnit("s"),
		metric.WithDescription("The duration of one tool execution."), metric.WithExplicitBucketBoundaries(durationBounds...))
	return t, errors.Join(err1, err2, err3, err4, err5)
}

// Middleware returns the middleware that creates the spans of requests and calls and adds them to
// the contexts of models and tools. It acts within other middleware, wherever it is listed: it
// sees only requests that are sent, without fallbacks and answers from a cache.
func (t *Telemetry) Middleware() pawl.Middleware {
	return pawl.Middleware{
		Rank:     200, // innermost
		Model:    func(m llm.Model) llm.Model { return &model{t, m} },
		Approved: t.aroundCall,
		Check: func(tools []*pawl.Tool) error {
			t.options.Redactor.AddTools(tools...)
			return nil
		},
	}
}

// measured records the duration of an operation in its histogram.
func measured(in metric.Float64Histogram, set []attribute.KeyValue, fault string, took time.Duration) {
	set = given(set, fault != "", semconv.ErrorTypeKey.String(fault))
	in.Record(context.Background(), took.Seconds(), metric.WithAttributes(set...))
}

// metricSet returns the common attributes of an operation's metrics.
func (t *Telemetry) metricSet(operation, model, response string) []attribute.KeyValue {
	set := []attribute.KeyValue{semconv.GenAIOperationNameKey.String(operation),
		semconv.GenAIProviderNameKey.String(t.options.Provider)}
	set = given(set, model != "", semconv.GenAIRequestModel(model))
	return given(set, response != "", semconv.GenAIResponseModel(response))
}

// given adds an attribute that is known.
func given(set []attribute.KeyValue, known bool, kv attribute.KeyValue) []attribute.KeyValue {
	if known {
		set = append(set, kv)
	}
	return set
}

// used records the tokens of a request.
func (t *Telemetry) used(model, response string, u llm.Usage) {
	for _, n := range [...]struct {
		kind  string
		count int
	}{{"input", u.Input}, {"output", u.Output}} {
		if n.count > 0 {
			t.tokens.Record(context.Background(), int64(n.count),
				metric.WithAttributes(append(t.metricSet(chat, model, response),
					semconv.GenAITokenTypeKey.String(n.kind))...))
		}
	}
}
