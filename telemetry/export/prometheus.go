package export

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// Prometheus is the page that a Prometheus server reads, in its text format 0.0.4. Pass its Reader
// to Options.Readers, or to another meter provider. It is safe for concurrent use.
//
// Names are OpenTelemetry names in the form that its specification defines for Prometheus:
// gen_ai.client.operation.duration in seconds is gen_ai_client_operation_duration_seconds.
type Prometheus struct {
	reader *metric.ManualReader
}

var _ http.Handler = (*Prometheus)(nil)

// NewPrometheus returns a page without metrics.
func NewPrometheus() *Prometheus { return &Prometheus{metric.NewManualReader()} }

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
	var all metricdata.ResourceMetrics
	if err := p.reader.Collect(r.Context(), &all); err != nil {
		http.Error(w, "the metrics could not be read", http.StatusServiceUnavailable)
		return
	}
	var out bytes.Buffer
	for _, s := range all.ScopeMetrics {
		for _, m := range s.Metrics {
			write(&out, m)
		}
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(out.Bytes()) // the client may have disconnected
}

// write writes a metric. Metrics without a type in the format, such as exponential histograms, are
// left out.
func write(out *bytes.Buffer, m metricdata.Metrics) {
	name := promName(m.Name)
	if m.Unit == "s" {
		name += "_seconds"
	}
	head := func(name, kind string) {
		fmt.Fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(m.Description), name, kind)
	}
	switch d := m.Data.(type) {
	case metricdata.Histogram[int64]:
		head(name, "histogram")
		writeHistogram(out, name, d.DataPoints)
	case metricdata.Histogram[float64]:
		head(name, "histogram")
		writeHistogram(out, name, d.DataPoints)
	case metricdata.Gauge[int64]:
		head(name, "gauge")
		writePoints(out, name, d.DataPoints)
	case metricdata.Gauge[float64]:
		head(name, "gauge")
		writePoints(out, name, d.DataPoints)
	case metricdata.Sum[int64]:
		name, kind := sumName(name, d.IsMonotonic)
		head(name, kind)
		writePoints(out, name, d.DataPoints)
	case metricdata.Sum[float64]:
		name, kind := sumName(name, d.IsMonotonic)
		head(name, kind)
		writePoints(out, name, d.DataPoints)
	}
}

func sumName(name string, monotonic bool) (string, string) {
	if monotonic {
		return name + "_total", "counter"
	}
	return name, "gauge"
}

func writePoints[N int64 | float64](out *bytes.Buffer, name string, all []metricdata.DataPoint[N]) {
	for _, p := range sortedBy(all, func(p metricdata.DataPoint[N]) string { return labels(p.Attributes, "") }) {
		fmt.Fprintf(out, "%s%s %v\n", name, labels(p.Attributes, ""), p.Value)
	}
}

func writeHistogram[N int64 | float64](out *bytes.Buffer, name string, all []metricdata.HistogramDataPoint[N]) {
	for _, p := range sortedBy(all, func(p metricdata.HistogramDataPoint[N]) string { return labels(p.Attributes, "") }) {
		var below uint64
		for i, n := range p.BucketCounts {
			below += n
			le := "+Inf"
			if i < len(p.Bounds) {
				le = strconv.FormatFloat(p.Bounds[i], 'g', -1, 64)
			}
			fmt.Fprintf(out, "%s_bucket%s %d\n", name, labels(p.Attributes, le), below)
		}
		fmt.Fprintf(out, "%s_sum%s %v\n%s_count%s %d\n", name, labels(p.Attributes, ""), p.Sum, name, labels(p.Attributes, ""), p.Count)
	}
}

func sortedBy[P any](all []P, key func(P) string) []P {
	return slices.SortedFunc(slices.Values(all), func(a, b P) int { return strings.Compare(key(a), key(b)) })
}

// labels writes {name="value",…}. le is the bound of a bucket; empty means none.
func labels(set attribute.Set, le string) string {
	var pairs []string
	for _, kv := range set.ToSlice() { // sorted by key
		pairs = append(pairs, promName(string(kv.Key))+`="`+strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(kv.Value.String())+`"`)
	}
	if le != "" {
		pairs = append(pairs, `le="`+le+`"`)
	}
	if len(pairs) == 0 {
		return ""
	}
	return "{" + strings.Join(pairs, ",") + "}"
}

// promName returns a valid Prometheus name.
func promName(s string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' {
			return c
		}
		return '_'
	}, s)
}
