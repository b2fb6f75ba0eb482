package export

import (
	"context"
	"math"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

var _ sdktrace.SpanExporter = (*exporter)(nil)

// The JSON form of OTLP: IDs are hexadecimal, 64-bit numbers are text.
type (
	resourceJSON struct {
		Attributes []keyValue `json:"attributes,omitzero"`
	}
	scopeJSON struct {
		Name    string `json:"name"`
		Version string `json:"version,omitzero"`
	}
	keyValue struct {
		Key   string         `json:"key"`
		Value map[string]any `json:"value"`
	}
	spansJSON struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   resourceJSON  `json:"resource"`
		ScopeSpans []*scopeSpans `json:"scopeSpans"`
	}
	scopeSpans struct {
		Scope     scopeJSON  `json:"scope"`
		Spans     []spanJSON `json:"spans"`
		SchemaURL string     `json:"schemaUrl,omitzero"`
	}
	spanJSON struct {
		TraceID    string      `json:"traceId"`
		SpanID     string      `json:"spanId"`
		ParentID   string      `json:"parentSpanId,omitzero"`
		State      string      `json:"traceState,omitzero"`
		Flags      byte        `json:"flags"`
		Name       string      `json:"name"`
		Kind       int         `json:"kind"`
		Start      string      `json:"startTimeUnixNano"`
		End        string      `json:"endTimeUnixNano"`
		Attributes []keyValue  `json:"attributes,omitzero"`
		Events     []eventJSON `json:"events,omitzero"`
		Links      []linkJSON  `json:"links,omitzero"`
		Status     statusJSON  `json:"status"`
	}
	eventJSON struct {
		Time       string     `json:"timeUnixNano"`
		Name       string     `json:"name"`
		Attributes []keyValue `json:"attributes,omitzero"`
	}
	linkJSON struct {
		TraceID    string     `json:"traceId"`
		SpanID     string     `json:"spanId"`
		Attributes []keyValue `json:"attributes,omitzero"`
	}
	statusJSON struct {
		Code    int    `json:"code,omitzero"`
		Message string `json:"message,omitzero"`
	}
)

// ExportSpans sends spans. All have the resource of the provider.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if len(spans) == 0 {
		return nil
	}
	all := resourceSpans{Resource: resourceOf(spans[0].Resource())}
	scopes := map[instrumentation.Scope]*scopeSpans{}
	for _, s := range spans {
		scope := s.InstrumentationScope()
		if scopes[scope] == nil {
			scopes[scope] = &scopeSpans{Scope: scopeJSON{scope.Name, scope.Version}, SchemaURL: scope.SchemaURL}
			all.ScopeSpans = append(all.ScopeSpans, scopes[scope])
		}
		scopes[scope].Spans = append(scopes[scope].Spans, spanOf(s))
	}
	e.send(ctx, spansJSON{[]resourceSpans{all}})
	return nil
}

// Shutdown does nothing, because all data was sent.
func (e *exporter) Shutdown(context.Context) error { return nil }

func spanOf(s sdktrace.ReadOnlySpan) spanJSON {
	at := s.SpanContext()
	out := spanJSON{TraceID: at.TraceID().String(), SpanID: at.SpanID().String(), State: at.TraceState().String(),
		Flags: byte(at.TraceFlags()), Name: s.Name(),
		Kind: kindOf(s.SpanKind()), Start: nanos(s.StartTime()), End: nanos(s.EndTime()),
		Attributes: attributesOf(s.Attributes())}
	if p := s.Parent(); p.SpanID().IsValid() {
		out.ParentID = p.SpanID().String()
	}
	for _, ev := range s.Events() {
		out.Events = append(out.Events, eventJSON{nanos(ev.Time), ev.Name, attributesOf(ev.Attributes)})
	}
	for _, l := range s.Links() {
		out.Links = append(out.Links, linkJSON{l.SpanContext.TraceID().String(), l.SpanContext.SpanID().String(),
			attributesOf(l.Attributes)})
	}
	switch st := s.Status(); st.Code {
	case codes.Ok:
		out.Status.Code = 1
	case codes.Error:
		out.Status = statusJSON{2, st.Description}
	}
	return out
}

func kindOf(k trace.SpanKind) int {
	switch k {
	case trace.SpanKindServer:
		return 2
	case trace.SpanKindClient:
		return 3
	case trace.SpanKindProducer:
		return 4
	case trace.SpanKindConsumer:
		return 5
	}
	return 1
}

func resourceOf(r *resource.Resource) resourceJSON {
	if r == nil {
		return resourceJSON{}
	}
	return resourceJSON{attributesOf(r.Attributes())}
}

func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

func attributesOf(set []attribute.KeyValue) (out []keyValue) {
	for _, kv := range set {
		out = append(out, keyValue{string(kv.Key), valueOf(kv.Value)})
	}
	return out
}

func valueOf(v attribute.Value) map[string]any {
	switch v.Type() {
	case attribute.BOOL:
		return map[string]any{"boolValue": v.AsBool()}
	case attribute.INT64:
		return map[string]any{"intValue": strconv.FormatInt(v.AsInt64(), 10)}
	case attribute.FLOAT64:
		return map[string]any{"doubleValue": double(v.AsFloat64())}
	case attribute.STRINGSLICE:
		var values []any
		for _, s := range v.AsStringSlice() {
			values = append(values, map[string]any{"stringValue": s})
		}
		return map[string]any{"arrayValue": map[string]any{"values": values}}
	}
	return map[string]any{"stringValue": v.String()}
}

// double returns f in the JSON form, in which values that JSON cannot represent are text.
func double(f float64) any {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return f
}
