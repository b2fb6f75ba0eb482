package export_test

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/sdk/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/telemetry"
	"github.com/pawl-go/pawl/telemetry/export"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// receiver is a collector that decodes requests with the types of the protocol; an unknown field is
// an error.
type receiver struct {
	*httptest.Server
	mu      sync.Mutex
	spans   []*tracepb.ResourceSpans
	metrics []*metricspb.ResourceMetrics
	header  http.Header
	faults  []string
	// reports whether it has sent a response; nil accepts everything
	answer func(w http.ResponseWriter) bool
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.header = req.Header
	body := io.Reader(req.Body)
	if req.Header.Get("Content-Encoding") == "gzip" {
		body, _ = gzip.NewReader(body)
	}
	b, err := io.ReadAll(body)
	if err == nil && r.answer != nil && r.answer(w) {
		return
	}
	var traces tracepb.TracesData
	var metrics metricspb.MetricsData
	switch {
	case err != nil:
	case req.Header.Get("Content-Type") != "application/x-protobuf":
		err = fmt.Errorf("content type %s", req.Header.Get("Content-Type"))
	case req.URL.Path == "/v1/traces":
		err = strictly(b, &traces)
		r.spans = append(r.spans, traces.ResourceSpans...)
	case req.URL.Path == "/v1/metrics":
		err = strictly(b, &metrics)
		r.metrics = append(r.metrics, metrics.ResourceMetrics...)
	default:
		err = fmt.Errorf("path %s", req.URL.Path)
	}
	if err != nil {
		r.faults = append(r.faults, err.Error())
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf") // an empty body accepts everything
}

// strictly decodes b, and rejects fields that the type does not have.
func strictly(b []byte, m proto.Message) error {
	err := proto.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(b, m)
	if err == nil && proto.Size(m) != len(b) {
		err = fmt.Errorf("%d of %d bytes are known", proto.Size(m), len(b))
	}
	return err
}

// carryOut runs an agent through a pipeline.
func carryOut(t *testing.T, o *export.Options) error {
	t.Helper()
	out, err := export.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	tel, err := telemetry.New(&telemetry.Options{Tracer: out.Tracer, Meter: out.Meter, Provider: "openai", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	look := pawl.Func("look", "looks", func(context.Context, struct{}) (string, error) { return "", fmt.Errorf("no") })
	a := &pawl.Agent{Name: "a", Model: script.New(script.Call("look", `{}`), script.Say("done")),
		Tools: []pawl.Toolset{look}, Middleware: []pawl.Middleware{tel.Middleware()}}
	ctx := telemetry.LinkTo(t.Context(), telemetry.Forked, "00-0102030405060708090a0b0c0d0e0f10-0102030405060708-01")
	for _, err := range tel.Runner(a).Stream(ctx, llm.User("go")) {
		if err != nil {
			t.Fatal(err)
		}
	}
	return out.Close(t.Context())
}

func nobody(string) string { return "" }

// The data received over HTTP, decoded by the protocol's own types, describes the run.
func TestSpansAndMetricsArrive(t *testing.T) {
	for _, zip := range []bool{false, true} {
		r := newReceiver(t)
		env := func(name string) string {
			if zip && name == "OTEL_EXPORTER_OTLP_COMPRESSION" {
				return "gzip"
			}
			return ""
		}
		if err := carryOut(t, &export.Options{Endpoint: r.URL, Service: "forecaster", Getenv: env}); err != nil {
			t.Fatal(err, r.faults)
		}
		if len(r.faults) > 0 {
			t.Fatal(r.faults)
		}
		var spans []*tracepb.Span
		names := map[string]string{}
		for _, rs := range r.spans {
			if got := rs.Resource.Attributes[0]; got.Key != string(semconv.ServiceNameKey) ||
				got.Value.GetStringValue() != "forecaster" {
				t.Errorf("the resource is %v", rs.Resource)
			}
			for _, s := range rs.ScopeSpans {
				spans = append(spans, s.Spans...)
			}
		}
		for _, s := range spans {
			names[string(s.SpanId)] = s.Name
		}
		var got []string
		for _, s := range spans {
			line := fmt.Sprintf("%s below %q, kind %v, status %v, links %d", s.Name, names[string(s.ParentSpanId)], s.Kind, s.Status.GetCode(), len(s.Links))
			if len(s.TraceId) != 16 || len(s.SpanId) != 8 || s.EndTimeUnixNano < s.StartTimeUnixNano ||
				time.Since(time.Unix(0, int64(s.StartTimeUnixNano))) > time.Minute {
				t.Errorf("%s is not whole: %v", s.Name, s)
			}
			for _, a := range s.Attributes {
				if a.Key == string(semconv.ErrorTypeKey) {
					line += ", " + a.Value.GetStringValue()
				}
				if a.Key == string(semconv.GenAIUsageInputTokensKey) && a.Value.GetIntValue() <= 0 {
					t.Errorf("%s: %v", s.Name, a)
				}
			}
			got = append(got, line)
		}
		slices.Sort(got)
		want := []string{
			`chat m below "invoke_agent a", kind SPAN_KIND_CLIENT, status STATUS_CODE_UNSET, links 0`,
			`chat m below "invoke_agent a", kind SPAN_KIND_CLIENT, status STATUS_CODE_UNSET, links 0`,
			`execute_tool look below "invoke_agent a", kind SPAN_KIND_INTERNAL, status STATUS_CODE_ERROR, links 0, error`,
			`invoke_agent a below "", kind SPAN_KIND_INTERNAL, status STATUS_CODE_UNSET, links 1`,
		}
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("got -, want +\n%s", diff)
		}
		counts := map[string]uint64{}
		for _, rm := range r.metrics {
			for _, s := range rm.ScopeMetrics {
				for _, m := range s.Metrics {
					for _, p := range m.GetHistogram().GetDataPoints() {
						if counts[m.Name] += p.Count; len(p.BucketCounts) != len(p.ExplicitBounds)+1 {
							t.Errorf("%s: %d buckets for %d bounds", m.Name, len(p.BucketCounts), len(p.ExplicitBounds))
						}
					}
				}
			}
		}
		if diff := cmp.Diff(counts, map[string]uint64{"gen_ai.client.operation.duration": 2, "gen_ai.execute_tool.duration": 1, "gen_ai.invoke_agent.duration": 1,
			"gen_ai.client.operation.time_to_first_chunk": 2, "gen_ai.client.token.usage": 4}); diff != "" {
			t.Errorf("metrics, got -, want +\n%s", diff)
		}
	}
}

// At the end of the program it becomes visible that no collector received the data: the providers
// report nothing, Close does.
func TestCloseSaysWhatDidNotArrive(t *testing.T) {
	r := newReceiver(t)
	for _, c := range []struct {
		name   string
		answer func(w http.ResponseWriter) bool
		want   string
	}{
		{"a refusal", func(w http.ResponseWriter) bool { w.WriteHeader(http.StatusUnauthorized); return true }, "401"},
		{"a refusal of some", func(w http.ResponseWriter) bool {
			w.Header().Set("Content-Type", "application/x-protobuf")
			b, _ := proto.Marshal(&collectorpb.ExportTraceServiceResponse{
				PartialSuccess: &collectorpb.ExportTracePartialSuccess{RejectedSpans: 2, ErrorMessage: "too old"}})
			_, _ = w.Write(b)
			return true
		}, "too old (2 spans rejected)"},
		{"another address", func(w http.ResponseWriter) bool {
			w.Header().Set("Location", "http://elsewhere.invalid/")
			w.WriteHeader(http.StatusTemporaryRedirect)
			return true
		}, "307"},
	} {
		r.mu.Lock()
		r.answer = c.answer
		r.mu.Unlock()
		if err := carryOut(t, &export.Options{Endpoint: r.URL, Getenv: nobody}); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	short := func(name string) string {
		if name == "OTEL_EXPORTER_OTLP_TIMEOUT" {
			return "200"
		}
		return ""
	}
	r.mu.Lock()
	r.answer = func(w http.ResponseWriter) bool {
		http.Error(w, "full", http.StatusServiceUnavailable)
		return true
	}
	r.mu.Unlock()
	if err := carryOut(t, &export.Options{Endpoint: r.URL, Getenv: short}); err == nil ||
		!strings.Contains(err.Error(), "503 Service Unavailable full") {
		t.Errorf("a busy collector: %v", err)
	}
	r.Close()
	if err := carryOut(t, &export.Options{Endpoint: r.URL, Getenv: short}); err == nil ||
		!strings.Contains(err.Error(), "connection refused") {
		t.Errorf("no collector: %v", err)
	}
}

// If a collector is busy and asks for it, the batch is sent again.
func TestSentAgainWhenAskedTo(t *testing.T) {
	r := newReceiver(t)
	var times []time.Time
	r.answer = func(w http.ResponseWriter) bool {
		if times = append(times, time.Now()); len(times) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		return false
	}
	if err := carryOut(t, &export.Options{Endpoint: r.URL, Getenv: nobody}); err != nil {
		t.Fatal(err)
	}
	if len(r.spans) == 0 || len(times) != 3 || times[1].Sub(times[0]) < time.Second {
		t.Errorf("%d batches of spans came, in %d requests at %v", len(r.spans), len(times), times)
	}
}

// The standard variables are read, and unsupported values are an error.
func TestVariables(t *testing.T) {
	r := newReceiver(t)
	env := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": r.URL + "/", "OTEL_EXPORTER_OTLP_HEADERS": "x-key=a%20b, x-other = 2", "OTEL_EXPORTER_OTLP_METRICS_HEADERS": "x-key=a%20b"}
	if err := carryOut(t, &export.Options{Getenv: func(name string) string { return env[name] }}); err != nil {
		t.Fatal(err)
	}
	if len(r.spans) == 0 || r.header.Get("X-Key") != "a b" {
		t.Errorf("%d batches came, with the headers %v", len(r.spans), r.header)
	}
	env["OTEL_SDK_DISABLED"] = "true"
	r.spans = nil
	if err := carryOut(t, &export.Options{Getenv: func(name string) string { return env[name] }}); err != nil ||
		len(r.spans) > 0 {
		t.Errorf("disabled: %d batches, %v", len(r.spans), err)
	}
	for name, bad := range map[string]string{"ENDPOINT": "localhost:4318", "TRACES_ENDPOINT": "http://u:secret@h/v1/traces", "PROTOCOL": "grpc", "TIMEOUT": "1s", "COMPRESSION": "zstd", "HEADERS": "secretvalue", "CERTIFICATE": "ca.pem"} {
		_, err := export.Open(&export.Options{Getenv: func(n string) string {
			if n == "OTEL_EXPORTER_OTLP_"+name {
				return bad
			}
			return ""
		}})
		if err == nil || strings.Contains(err.Error(), "=secret") {
			t.Errorf("%s=%s: %v", name, bad, err)
		}
	}
}

// The page contains each histogram once, its buckets add up, and labels are escaped.
func TestPrometheus(t *testing.T) {
	p := export.NewPrometheus()
	out, err := export.Open(&export.Options{Readers: []metric.Reader{p.Reader()}, Getenv: func(name string) string {
		if name == "OTEL_SDK_DISABLED" {
			return "true" // nothing is sent
		}
		return ""
	}})
	if err != nil {
		t.Fatal(err)
	}
	tel, err := telemetry.New(&telemetry.Options{Meter: out.Meter, Provider: `a"b\c` + "\n", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	a := &pawl.Agent{Model: script.New(script.Say("done")), Middleware: []pawl.Middleware{tel.Middleware()}}
	if _, err := a.Run(t.Context(), llm.User("go")); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	page := w.Body.String()
	for _, want := range []string{
		"# TYPE gen_ai_client_operation_duration_seconds histogram\n", "# TYPE gen_ai_client_token_usage histogram\n",
		`gen_ai_client_operation_duration_seconds_count{gen_ai_operation_name="chat",gen_ai_provider_name="a\"b\\c\n",gen_ai_request_model="m",gen_ai_response_model="script"} 1` + "\n",
		`gen_ai_client_operation_duration_seconds_bucket{gen_ai_operation_name="chat",gen_ai_provider_name="a\"b\\c\n",gen_ai_request_model="m",gen_ai_response_model="script",le="+Inf"} 1` + "\n",
	} {
		if strings.Count(page, want) != 1 {
			t.Errorf("the page has %d times %q:\n%s", strings.Count(page, want), want, page)
		}
	}
	w = httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/metrics", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST gives %d", w.Code)
	}
	if err := out.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func Example() {
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		fmt.Println(r.Method, r.URL.Path)
	}))
	defer collector.Close()
	ctx := context.Background()

	// begin open
	out, err := export.Open(&export.Options{Endpoint: collector.URL})
	if err != nil {
		panic(err)
	}
	tel, err := telemetry.New(&telemetry.Options{Tracer: out.Tracer, Meter: out.Meter})
	if err != nil {
		panic(err)
	}
	// end open
	agent := &pawl.Agent{Model: script.New(script.Say("Hello.")), Middleware: []pawl.Middleware{tel.Middleware()}}
	if _, err := agent.Run(ctx, llm.User("Hi.")); err != nil {
		panic(err)
	}
	if err := out.Close(ctx); err != nil { // sends the rest, and reports data that did not arrive
		panic(err)
	}
	// Output:
	// POST /v1/traces
	// POST /v1/metrics
}
