// Package export sends spans and metrics to a collector over OTLP, and shows metrics to Prometheus. It is what package telemetry's are worth looking at with,
// where a program has no set-up of its own:
//
//	out, err := export.Open(&export.Options{Service: "forecaster"}) // to OTEL_EXPORTER_OTLP_ENDPOINT, or this machine
//	…
//	tel, err := telemetry.New(&telemetry.Options{Tracer: out.Tracer, Meter: out.Meter})
//	…
//	err = out.Close(ctx) // sends what is left; the error says what did not arrive
//
// OTLP goes over HTTP as JSON, which every collector takes at the same address as the binary form. The exporter of OpenTelemetry itself writes that form, and brings gRPC and
// protobuf with it: 157 packages and 14 MB of a program, for what is 200 lines here. Whoever wants it gives its providers to telemetry.New instead.
package export

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
)

// Options say where to. The zero value asks the environment.
type Options struct {
	Endpoint string              // where a collector is, without /v1/traces; "": OTEL_EXPORTER_OTLP_ENDPOINT, then http://localhost:4318
	Service  string              // service.name; "": pawl. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES stand over it
	Readers  []metric.Reader     // that read the metrics besides, such as Prometheus
	HTTP     http.RoundTripper   // nil: one like http.DefaultTransport
	Getenv   func(string) string // nil: os.Getenv
}

// Pipeline is what a Telemetry is given. Close it.
type Pipeline struct {
	Tracer *trace.TracerProvider
	Meter  *metric.MeterProvider

	spans, metrics *exporter
	idle           func() // lets the connections go
}

// Open makes a pipeline to a collector. Nothing is sent yet, so nobody need be there. It reads the variables OTEL_EXPORTER_OTLP_ENDPOINT, _HEADERS, _TIMEOUT and
// _COMPRESSION, and those for _TRACES and _METRICS alone; OTEL_SDK_DISABLED; those of the SDK for resources, batches and sampling (it asks the process for them,
// not Getenv). What it cannot do is an error: the protocol grpc, certificates of one's own, and what is malformed.
func Open(o *Options) (*Pipeline, error) {
	if o == nil {
		o = new(Options)
	}
	env := o.Getenv
	if env == nil {
		env = os.Getenv
	}
	var errs [2]error
	p := &Pipeline{idle: func() {}}
	if o.HTTP == nil {
		own, from := *o, http.DefaultTransport
		if t, ok := from.(*http.Transport); ok { // else the program has put something of its own there
			t = t.Clone()
			from, p.idle = t, t.CloseIdleConnections
		}
		own.HTTP = from
		o = &own
	}
	p.spans, errs[0] = newExporter(o, env, "TRACES", "/v1/traces")
	p.metrics, errs[1] = newExporter(o, env, "METRICS", "/v1/metrics")
	if err := cmp.Or(errs[:]...); err != nil {
		return nil, err
	}
	res, err := resource.Merge(resource.NewSchemaless(attribute.String("service.name", cmp.Or(o.Service, "pawl"))), resource.Environment())
	if err != nil {
		return nil, err
	}
	traces, meters := []trace.TracerProviderOption{trace.WithResource(res)}, []metric.Option{metric.WithResource(res)}
	if !strings.EqualFold(env("OTEL_SDK_DISABLED"), "true") {
		traces = append(traces, trace.WithBatcher(p.spans))
		meters = append(meters, metric.WithReader(metric.NewPeriodicReader(p.metrics)))
	}
	for _, r := range o.Readers {
		meters = append(meters, metric.WithReader(r))
	}
	p.Tracer, p.Meter = trace.NewTracerProvider(traces...), metric.NewMeterProvider(meters...)
	return p, nil
}

// Close sends what is left, no longer than ctx lives, and ends both providers. The error is that of the first batch that did not arrive, now or before: the
// providers themselves tell nobody.
func (p *Pipeline) Close(ctx context.Context) error {
	p.spans.closing.Store(true)
	p.metrics.closing.Store(true)
	defer p.idle()
	ended := errors.Join(p.Tracer.Shutdown(ctx), p.Meter.Shutdown(ctx))
	if err := cmp.Or(p.spans.failed(), p.metrics.failed()); err != nil {
		return err
	}
	return ended
}

// faults keeps the first one.
type faults struct {
	mu    sync.Mutex
	first error
}

func (f *faults) keep(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.first == nil {
		f.first = err
	}
}

func (f *faults) failed() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.first
}
