package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/internal/test/parts"
	"github.com/pawl-go/pawl/telemetry"
)

// conventions is the part of the semantic conventions for generative AI, version 1.41.0, about the
// spans of pawl: docs/gen-ai/gen-ai-agent-spans.md, gen-ai-spans.md and gen-ai-metrics.md. The
// names are repeated here, so that a wrong name in the program is not also wrong in the test.
const conventionsVersion = "1.41.0"

// conventional describes one operation: its kind in OTLP, the attribute at the end of the span's
// name, the required attributes and the optional attributes.
var conventional = map[string]struct {
	kind               int
	named              string
	required, optional []string
}{
	"invoke_agent": {1, "gen_ai.agent.name", []string{"gen_ai.operation.name", "gen_ai.provider.name"},
		[]string{"gen_ai.agent.name", "gen_ai.conversation.id", "gen_ai.usage.input_tokens",
			"gen_ai.usage.output_tokens", "gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_write.input_tokens",
			"gen_ai.usage.reasoning.output_tokens", "error.type"}},
	"chat": {3, "gen_ai.request.model", []string{"gen_ai.operation.name", "gen_ai.provider.name"},
		[]string{"gen_ai.conversation.id", "gen_ai.output.type", "gen_ai.request.model", "gen_ai.request.max_tokens",
			"gen_ai.request.temperature", "gen_ai.request.top_p", "gen_ai.request.stop_sequences",
			"gen_ai.request.stream", "gen_ai.response.id", "gen_ai.response.model", "gen_ai.response.finish_reasons", "gen_ai.response.time_to_first_chunk", "gen_ai.usage.input_tokens",
			"gen_ai.usage.output_tokens", "gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_write.input_tokens", "gen_ai.usage.reasoning.output_tokens", "gen_ai.input.messages",
			"gen_ai.output.messages", "gen_ai.system_instructions", "error.type"}},
	"execute_tool": {1, "gen_ai.tool.name", []string{"gen_ai.operation.name"},
		[]string{"gen_ai.tool.name", "gen_ai.tool.type", "gen_ai.tool.call.id", "gen_ai.tool.call.arguments",
			"gen_ai.tool.call.result", "error.type"}},
}

// metered is the convention for a metric: the unit, and the attributes of its points.
var metered = map[string]struct {
	unit       string
	attributes []string
}{
	"gen_ai.client.token.usage": {"{token}", []string{"gen_ai.operation.name",
		"gen_ai.provider.name", "gen_ai.request.model", "gen_ai.response.model", "gen_ai.token.type"}},
	"gen_ai.client.operation.duration": {"s", []string{"gen_ai.operation.name", "gen_ai.provider.name",
		"gen_ai.request.model", "gen_ai.response.model", "error.type"}},
	"gen_ai.invoke_agent.duration": {"s", []string{"gen_ai.operation.name", "gen_ai.provider.name",
		"error.type", "gen_ai.agent.name"}},
	"gen_ai.execute_tool.duration": {"s", []string{"gen_ai.operation.name", "gen_ai.provider.name",
		"error.type", "gen_ai.tool.name"}},
	"gen_ai.client.operation.time_to_first_chunk": {"s", []string{"gen_ai.operation.name", "gen_ai.provider.name",
		"gen_ai.request.model", "gen_ai.response.model"}},
}

// otlp is the content of a collector's file: a line for each batch.
type otlp struct {
	ResourceSpans []struct {
		Resource   struct{ Attributes []otlpAttribute }
		ScopeSpans []struct {
			SchemaURL string `json:"schemaUrl"`
			Spans     []struct {
				TraceID, SpanID, ParentSpanID, Name string
				Kind                                int
				Attributes                          []otlpAttribute
			}
		}
	}
	ResourceMetrics []struct {
		ScopeMetrics []struct {
			Metrics []struct {
				Name, Unit string
				Histogram  struct {
					DataPoints []struct {
						Count      json.Number
						Attributes []otlpAttribute
					}
				}
			}
		}
	}
}

type otlpAttribute struct {
	Key   string
	Value struct{ StringValue string }
}

// deviations returns the differences between the batches and the conventions, and the contents of
// the batches: spans and points by name.
func deviations(t *testing.T, service string, lines []byte) (wrong []string, seen map[string]int) {
	t.Helper()
	seen = map[string]int{}
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	for line := range bytes.Lines(lines) {
		var batch otlp
		if err := json.Unmarshal(line, &batch); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		for _, rs := range batch.ResourceSpans {
			if !slices.ContainsFunc(rs.Resource.Attributes,
				func(a otlpAttribute) bool { return a.Key == "service.name" && a.Value.StringValue == service }) {
				continue
			}
			for _, scope := range rs.ScopeSpans {
				if scope.SchemaURL != "https://opentelemetry.io/schemas/"+conventionsVersion {
					say("the schema is %s", scope.SchemaURL)
				}
				for _, s := range scope.Spans {
					values := map[string]string{}
					for _, a := range s.Attributes {
						values[a.Key] = a.Value.StringValue
					}
					operation := values["gen_ai.operation.name"]
					c, ok := conventional[operation]
					if !ok {
						say("%s: its operation is %q", s.Name, operation)
						continue
					}
					seen[s.Name]++
					if want := operation + " " + values[c.named]; s.Name != want || s.Kind != c.kind {
						say("%s: want %q, of the kind %d, got %d", s.Name, want, c.kind, s.Kind)
					}
					for _, name := range c.required {
						if values[name] == "" {
							say("%s: %s is missing", s.Name, name)
						}
					}
					for name := range values {
						if !slices.Contains(c.required, name) && !slices.Contains(c.optional, name) &&
							!strings.HasPrefix(name, "pawl.") {
							say("%s: %s is not known", s.Name, name)
						}
					}
				}
			}
		}
		for _, rm := range batch.ResourceMetrics {
			for _, scope := range rm.ScopeMetrics {
				for _, m := range scope.Metrics {
					c, ok := metered[m.Name]
					if !ok || m.Unit != c.unit {
						say("metric %s (%s) is not known", m.Name, m.Unit)
					}
					for _, p := range m.Histogram.DataPoints {
						seen[m.Name]++
						for _, a := range p.Attributes {
							if !slices.Contains(c.attributes, a.Key) {
								say("metric %s: %s is not known", m.Name, a.Key)
							}
						}
					}
				}
			}
		}
	}
	return wrong, seen
}

// collectorAt starts OpenTelemetry's own collector. stop returns the received data. It skips the
// test if the collector is not built.
func collectorAt(t *testing.T) (url string, stop func() []byte) {
	t.Helper()
	program := parts.Built(t, "collector")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	dir := t.TempDir()
	out := filepath.Join(dir, "got.jsonl")
	conf := fmt.Sprintf(`{receivers: {otlp: {protocols: {http: {endpoint: %q}}}}, exporters: {file: {path: %q}},
  service: {pipelines: {traces: {receivers: [otlp], exporters: [file]}, metrics: {receivers: [otlp], exporters: [file]}, logs: {receivers: [otlp], exporters: [file]}}}}`, addr, out)
	if err := os.WriteFile(filepath.Join(dir, "conf.yaml"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--config", "file:"+filepath.Join(dir, "conf.yaml"))
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	over := false
	end := func() {
		if over {
			return
		}
		over = true
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended already
		if err := <-ended; err != nil {
			t.Errorf("the collector: %v\n%s", err, said.String())
		}
	}
	t.Cleanup(end)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range tick.C { // it does not report that it listens
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			break
		}
		select {
		case err := <-ended:
			over = true
			t.Fatalf("the collector ended: %v\n%s", err, said.String())
		default:
		}
	}
	return "http://" + addr, func() []byte {
		end()
		b, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
}

// A real collector accepts the data of pawl serve, and the received data follows the conventions.
// The test detects a batch with misspelt names.
func TestTheCollector(t *testing.T) {
	if telemetry.Conventions != conventionsVersion {
		t.Errorf("telemetry follows %s, and this table is that of %s", telemetry.Conventions, conventionsVersion)
	}
	url, stop := collectorAt(t)
	v := serveClerk(t, "--otel", url)
	for _, input := range []string{"look Oslo", "pay 7", "fail", "hello"} {
		v.curl("/v1/runs", "-H", "Content-Type: application/json", "-d", `{"input":"`+input+`","wait":true}`)
	}
	v.stop()
	control := `{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"control"}}]},"scopeSpans":[{"schemaUrl":"https://opentelemetry.io/schemas/1.41.0","spans":[
		{"traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"0102030405060708","name":"chat m","kind":3,"startTimeUnixNano":"1","endTimeUnixNano":"2","attributes":[
			{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},{"key":"gen_ai.provider_name","value":{"stringValue":"openai"}},{"key":"gen_ai.request.model","value":{"stringValue":"m"}},
			{"key":"gen_ai.usage.input_token","value":{"intValue":"5"}}]}]}]}]}`
	res, err := http.Post(url+"/v1/traces", "application/json", strings.NewReader(control))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	got := stop()
	wrong, _ := deviations(t, "control", got)
	slices.Sort(wrong)
	if diff := cmp.Diff(wrong, []string{"chat m: gen_ai.provider.name is missing",
		"chat m: gen_ai.provider_name is not known", "chat m: gen_ai.usage.input_token is not known"}); diff != "" {
		t.Errorf("what is wrong is not found: got -, want +\n%s", diff)
	}
	wrong, seen := deviations(t, "pawl", got)
	for _, w := range wrong {
		t.Error(w)
	}
	want := map[string]int{"invoke_agent clerk": 4, "chat sim": 5, "execute_tool look": 1, "execute_tool pay": 1}
	for name := range metered {
		want[name] = seen[name]
		if seen[name] == 0 && name != "gen_ai.client.operation.time_to_first_chunk" {
			t.Errorf("there is no point of %s", name)
		}
	}
	if diff := cmp.Diff(seen, want); diff != "" {
		t.Errorf("spans and points: got -, want +\n%s", diff)
	}
	if strings.Contains(string(got), "Oslo") {
		t.Error("what was said is told")
	}
}

// The parser of the Prometheus project reads GET /metrics, for clients with access.
func TestMetricsPage(t *testing.T) {
	v := serveClerk(t)
	v.curl("/v1/runs", "-H", "Content-Type: application/json", "-d", `{"input":"look Oslo","wait":true}`)
	res, err := http.Get(v.url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	if res.Body.Close(); res.StatusCode != 401 {
		t.Errorf("without a token: %s", res.Status)
	}
	http.DefaultClient.CloseIdleConnections()
	read := func(page io.Reader) (map[string]uint64, error) {
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(page)
		counts := map[string]uint64{}
		for name, f := range families {
			if strings.HasPrefix(name, "pawl_") { // one value each, of the state of the runs
				counts[name] = uint64(len(f.Metric))
				continue
			}
			for _, m := range f.Metric {
				h := m.GetHistogram()
				counts[name] += h.GetSampleCount()
				if last := h.Bucket[len(h.Bucket)-1]; last.GetCumulativeCount() != h.GetSampleCount() {
					t.Errorf("%s: the last bucket has %d of %d", name, last.GetCumulativeCount(), h.GetSampleCount())
				}
			}
		}
		return counts, err
	}
	page := v.curl("/metrics")
	got, err := read(strings.NewReader(page))
	if err != nil {
		t.Fatalf("%v\n%s", err, page)
	}
	want := map[string]uint64{"gen_ai_client_operation_duration_seconds": 2, "gen_ai_client_token_usage": 4,
		"gen_ai_invoke_agent_duration_seconds": 1, "gen_ai_execute_tool_duration_seconds": 1,
		"gen_ai_client_operation_time_to_first_chunk_seconds": 2}
	for _, name := range []string{"runs_working", "runs_queued", "runs_limit", "runs_stuck", "models_away",
		"leases_lost_total",
		"journal_errors_total", "journal_up", "questions_open", "question_age_seconds", "effects_unknown"} {
		want["pawl_"+name] = 1
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("got -, want +\n%s", diff)
	}
	if _, err := read(strings.NewReader(strings.Replace(page, "_bucket{", "_bucket{,,", 1))); err == nil {
		t.Error("the parser takes everything")
	}
}

const helloTurn = `{"turns": [{"message": {"role": "assistant", "parts": [{"type": "text", "text": "Paid."}]},
	"finish": "stop"}]}`

// Anchors are log records of a real collector, whose bodies verify the runs. A collector that is
// away stops the run.
func TestAnchorsToACollector(t *testing.T) {
	url, stop := collectorAt(t)
	dir := t.TempDir()
	db, env := filepath.Join(dir, "runs.db"), map[string]string{"PAWL_ANCHOR": "otel:" + url}
	run := func(want int, args ...string) string {
		t.Helper()
		var out bytes.Buffer
		sys := &cli.System{In: strings.NewReader(""), Out: &out, Err: &out,
			Env: func(name string) string { return env[name] }}
		if got := execute(args, sys); got != want {
			t.Fatalf("%q: status %d\n%s", args, got, out.String())
		}
		return out.String()
	}
	play := filepath.Join(dir, "play.json")
	ok(t, os.WriteFile(play, []byte(helloTurn), 0o600))
	run(0, "run", "--durable", "--run", "r", "--db", db, "--model", "script:"+play, "pay")
	var anchors bytes.Buffer
	for line := range bytes.Lines(stop()) {
		var got struct {
			ResourceLogs []struct {
				ScopeLogs []struct {
					LogRecords []struct{ Body struct{ StringValue string } }
				}
			}
		}
		ok(t, json.Unmarshal(line, &got))
		for _, r := range got.ResourceLogs {
			fmt.Fprintln(&anchors, r.ScopeLogs[0].LogRecords[0].Body.StringValue)
		}
	}
	file := filepath.Join(dir, "anchors.jsonl")
	ok(t, os.WriteFile(file, anchors.Bytes(), 0o600))
	run(0, "runs", "verify", "r", "--db", db, "--anchors", file)
	anchored := env["PAWL_ANCHOR"]
	env["PAWL_ANCHOR"] = ""
	run(0, "runs", "delete", "r", "--db", db)
	said := run(1, "runs", "verify", "--db", db, "--anchors", file)
	if !strings.Contains(said, "anchored and not there") {
		t.Errorf("without the run: %s", said)
	}
	env["PAWL_ANCHOR"] = anchored
	said = run(2, "run", "--durable", "--run", "s", "--db", db, "--model", "script:"+play, "pay")
	if !strings.Contains(said, "is not anchored: PAWL_ANCHOR") {
		t.Errorf("without the collector: %s", said)
	}
}
