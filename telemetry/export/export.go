// Package export sends spans and metrics to an OTLP collector, and serves metrics to Prometheus. It
// is for programs without an OpenTelemetry setup:
//
//	// to OTEL_EXPORTER_OTLP_ENDPOINT, or this machine
//	out, err := export.Open(&export.Options{Service: "forecaster"})
//	…
//	tel, err := telemetry.New(&telemetry.Options{Tracer: out.Tracer, Meter: out.Meter})
//	…
//	err = out.Close(ctx) // sends the rest; the error says what did not arrive
//
// OpenTelemetry's own exporters send OTLP over HTTP, in the binary form. They link gRPC and
// protobuf, which package telemetry alone does not.
package export

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"os"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
)

// Options define the destination. The zero value uses the environment.
type Options struct {
	// Endpoint is the address of a collector without /v1/traces. Empty means
	// OTEL_EXPORTER_OTLP_ENDPOINT, or else http://localhost:4318.
	Endpoint string
	// Service is service.name. Empty means pawl. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES
	// take precedence.
	Service string
	Readers []metric.Reader     // additional readers of the metrics, such as Prometheus
	HTTP    http.RoundTripper   // nil means a copy of http.DefaultTransport
	Getenv  func(string) string // nil means os.Getenv
}

// Pipeline holds the providers for a Telemetry. Close it after use.
type Pipeline struct {
	// Tracer makes spans. It is never nil.
	Tracer *trace.TracerProvider
	// Meter makes metrics. It is never nil.
	Meter *metric.MeterProvider

	signals [2]*signal
	idle    func() // closes idle connections
}

// Open returns a pipeline to a collector. It sends nothing yet, so the collector need not be
// running. It reads the variables OTEL_EXPORTER_OTLP_ENDPOINT, _HEADERS, _TIMEOUT and _COMPRESSION,
// and their variants for _TRACES and _METRICS; OTEL_SDK_DISABLED; and the SDK's variables for
// resources, batches and sampling (the SDK reads those from the process, not through Getenv).
// Unsupported values are errors: the protocol grpc, custom certificates, and malformed values. The
// protocol http/json is sent as http/protobuf, which collectors accept at the same address.
func Open(o *Options) (*Pipeline, error) {
	o = cmp.Or(o, new(Options))
	env := o.Getenv
	if env == nil {
		env = os.Getenv
	}

	p := &Pipeline{idle: func() {}}
	// A transport of its own, so that Close can close its connections and no others.
	if o.HTTP == nil {
		own := *o
		from := http.DefaultTransport
		if t, ok := from.(*http.Transport); ok { // otherwise the program has replaced it
			t = t.Clone()
			from = t
			p.idle = t.CloseIdleConnections
		}
		own.HTTP = from
		o = &own
	}

	var errs [2]error
	p.signals[0], errs[0] = newSignal(o, env, "TRACES", "/v1/traces")
	p.signals[1], errs[1] = newSignal(o, env, "METRICS", "/v1/metrics")
	if err := cmp.Or(errs[:]...); err != nil {
		return nil, err
	}
	spans, err := p.signals[0].spans()
	if err != nil {
		return nil, err
	}
	metrics, err := p.signals[1].metrics()
	if err != nil {
		return nil, err
	}

	service := attribute.String("service.name", cmp.Or(o.Service, "pawl"))
	res, err := resource.Merge(resource.NewSchemaless(service), resource.Environment())
	if err != nil {
		return nil, err
	}
	traces := []trace.TracerProviderOption{trace.WithResource(res)}
	meters := []metric.Option{metric.WithResource(res)}
	// The readers of the program stay: the variable turns off what is sent, and a page of metrics
	// sends nothing.
	if !strings.EqualFold(env("OTEL_SDK_DISABLED"), "true") {
		traces = append(traces, trace.WithBatcher(spans))
		meters = append(meters, metric.WithReader(metric.NewPeriodicReader(metrics)))
	}
	for _, r := range o.Readers {
		meters = append(meters, metric.WithReader(r))
	}
	p.Tracer = trace.NewTracerProvider(traces...)
	p.Meter = metric.NewMeterProvider(meters...)
	return p, nil
}

// Close sends the remaining data until ctx ends, and shuts down both providers. It returns
// the error of the first batch that did not arrive, now or earlier. The providers themselves do not
// report it.
func (p *Pipeline) Close(ctx context.Context) error {
	for _, sig := range p.signals {
		sig.closing.Store(true)
	}
	defer p.idle()
	ended := errors.Join(p.Tracer.Shutdown(ctx), p.Meter.Shutdown(ctx))
	return cmp.Or(p.signals[0].failed(), p.signals[1].failed(), ended)
}
