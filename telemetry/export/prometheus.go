package export

import (
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
)

// Prometheus is the page that a Prometheus server reads. Pass its Reader to Options.Readers, or to
// another meter provider. It is safe for concurrent use.
//
// Names are OpenTelemetry names in the form that its specification defines for Prometheus:
// gen_ai.client.operation.duration in seconds is gen_ai_client_operation_duration_seconds.
type Prometheus struct {
	reader metric.Reader
	page   http.Handler
}

var _ http.Handler = (*Prometheus)(nil)

// NewPrometheus returns a page without metrics.
func NewPrometheus() *Prometheus {
	reg := prometheus.NewRegistry()
	reader, err := otelprom.New(otelprom.WithRegisterer(reg), otelprom.WithoutScopeInfo(), otelprom.WithoutTargetInfo(),
		otelprom.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes))
	if err != nil {
		panic(fmt.Sprintf("export: a new registry: %v", err)) // it accepts every reader
	}
	return &Prometheus{reader, promhttp.HandlerFor(reg, promhttp.HandlerOpts{})}
}

// Reader returns the reader of the metrics, for one meter provider.
func (p *Prometheus) Reader() metric.Reader { return p.reader }

// Meter returns a meter provider whose only reader is this page, for programs that send metrics
// nowhere. It uses the Reader, so call it once.
func (p *Prometheus) Meter() *metric.MeterProvider {
	return metric.NewMeterProvider(metric.WithReader(p.reader))
}

// ServeHTTP answers GET with the current metrics.
func (p *Prometheus) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the metrics are read by GET", http.StatusMethodNotAllowed)
		return
	}
	p.page.ServeHTTP(w, r)
}
