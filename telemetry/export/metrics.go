package export

import (
	"context"
	"fmt"
	"strconv"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

var _ metric.Exporter = (*exporter)(nil)

type (
	metricsJSON struct {
		ResourceMetrics []resourceMetrics `json:"resourceMetrics"`
	}
	resourceMetrics struct {
		Resource     resourceJSON   `json:"resource"`
		ScopeMetrics []scopeMetrics `json:"scopeMetrics"`
	}
	scopeMetrics struct {
		Scope     scopeJSON    `json:"scope"`
		Metrics   []metricJSON `json:"metrics"`
		SchemaURL string       `json:"schemaUrl,omitzero"`
	}
	metricJSON struct {
		Name        string      `json:"name"`
		Description string      `json:"description,omitzero"`
		Unit        string      `json:"unit,omitzero"`
		Gauge       *pointsJSON `json:"gauge,omitzero"`
		Sum         *pointsJSON `json:"sum,omitzero"`
		Histogram   *pointsJSON `json:"histogram,omitzero"`
	}
	pointsJSON struct {
		Points      []pointJSON `json:"dataPoints"`
		Temporality int         `json:"aggregationTemporality,omitzero"`
		Monotonic   bool        `json:"isMonotonic,omitzero"`
	}
	pointJSON struct {
		Attributes []keyValue `json:"attributes,omitzero"`
		Start      string     `json:"startTimeUnixNano,omitzero"`
		Time       string     `json:"timeUnixNano"`
		Int        string     `json:"asInt,omitzero"`
		Double     any        `json:"asDouble,omitzero"`
		Count      string     `json:"count,omitzero"`
		Sum        any        `json:"sum,omitzero"`
		Buckets    []string   `json:"bucketCounts,omitzero"`
		Bounds     []float64  `json:"explicitBounds,omitzero"`
		Min        any        `json:"min,omitzero"`
		Max        any        `json:"max,omitzero"`
	}
)

// Temporality returns cumulative: counts start at the beginning of the process.
func (e *exporter) Temporality(metric.InstrumentKind) metricdata.Temporality {
	return metricdata.CumulativeTemporality
}

// Aggregation returns the default of each kind of instrument.
func (e *exporter) Aggregation(k metric.InstrumentKind) metric.Aggregation {
	return metric.DefaultAggregationSelector(k)
}

// ForceFlush does nothing, because nothing is buffered.
func (e *exporter) ForceFlush(context.Context) error { return nil }

// Export sends metrics.
func (e *exporter) Export(ctx context.Context, all *metricdata.ResourceMetrics) error {
	out := resourceMetrics{Resource: resourceOf(all.Resource)}
	for _, s := range all.ScopeMetrics {
		scope := scopeMetrics{Scope: scopeJSON{s.Scope.Name, s.Scope.Version}, SchemaURL: s.Scope.SchemaURL}
		for _, m := range s.Metrics {
			one, err := metricOf(m)
			if err != nil {
				e.keep(err)
				continue
			}
			scope.Metrics = append(scope.Metrics, one)
		}
		out.ScopeMetrics = append(out.ScopeMetrics, scope)
	}
	if len(out.ScopeMetrics) == 0 {
		return nil
	}
	e.send(ctx, metricsJSON{[]resourceMetrics{out}})
	return nil
}

func metricOf(m metricdata.Metrics) (metricJSON, error) {
	out := metricJSON{Name: m.Name, Description: m.Description, Unit: m.Unit}
	switch d := m.Data.(type) {
	case metricdata.Gauge[int64]:
		out.Gauge = &pointsJSON{Points: points(d.DataPoints)}
	case metricdata.Gauge[float64]:
		out.Gauge = &pointsJSON{Points: points(d.DataPoints)}
	case metricdata.Sum[int64]:
		out.Sum = &pointsJSON{points(d.DataPoints), temporality(d.Temporality), d.IsMonotonic}
	case metricdata.Sum[float64]:
		out.Sum = &pointsJSON{points(d.DataPoints), temporality(d.Temporality), d.IsMonotonic}
	case metricdata.Histogram[int64]:
		out.Histogram = &pointsJSON{Points: histogram(d.DataPoints), Temporality: temporality(d.Temporality)}
	case metricdata.Histogram[float64]:
		out.Histogram = &pointsJSON{Points: histogram(d.DataPoints), Temporality: temporality(d.Temporality)}
	default:
		return out, fmt.Errorf("telemetry: metric %s: %T cannot be sent", m.Name, d)
	}
	return out, nil
}

func temporality(t metricdata.Temporality) int {
	if t == metricdata.DeltaTemporality {
		return 1
	}
	return 2
}

func points[N int64 | float64](all []metricdata.DataPoint[N]) (out []pointJSON) {
	for _, p := range all {
		one := pointJSON{Attributes: attributesOf(p.Attributes.ToSlice()), Start: nanos(p.StartTime),
			Time: nanos(p.Time)}
		switch v := any(p.Value).(type) {
		case int64:
			one.Int = strconv.FormatInt(v, 10)
		case float64:
			one.Double = double(v)
		}
		out = append(out, one)
	}
	return out
}

func histogram[N int64 | float64](all []metricdata.HistogramDataPoint[N]) (out []pointJSON) {
	for _, p := range all {
		one := pointJSON{Attributes: attributesOf(p.Attributes.ToSlice()), Start: nanos(p.StartTime),
			Time: nanos(p.Time), Count: strconv.FormatUint(p.Count, 10),
			Sum: double(float64(p.Sum)), Bounds: p.Bounds}
		for _, n := range p.BucketCounts {
			one.Buckets = append(one.Buckets, strconv.FormatUint(n, 10))
		}
		if v, ok := p.Min.Value(); ok {
			one.Min = double(float64(v))
		}
		if v, ok := p.Max.Value(); ok {
			one.Max = double(float64(v))
		}
		out = append(out, one)
	}
	return out
}
