package core_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/provider/openai"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
	"github.com/pawl-go/pawl/telemetry"
)

// BenchmarkFeature measures runs of three rounds of five calls. The first row is the plain run.
// Each other row adds one feature to it.
func BenchmarkFeature(b *testing.B) {
	drain := func(b *testing.B, r pawl.Runner) {
		b.Helper()
		var last pawl.Event
		for e, err := range r.Stream(b.Context(), llm.User("look")) {
			if err != nil {
				b.Fatal(err)
			}
			last = e
		}
		if last.Result.Text() != "DONE" {
			b.Fatalf("%+v", last)
		}
	}
	whole := func(b *testing.B, a *pawl.Agent) {
		b.Helper()
		if res, err := a.Run(b.Context(), llm.User("look")); err != nil || res.Text() != "DONE" {
			b.Fatalf("%+v %v", res, err)
		}
	}
	agent := func(tool *pawl.Tool, w ...pawl.Middleware) *pawl.Agent {
		return &pawl.Agent{Model: newFixed(3, 5), Tools: []pawl.Toolset{tool}, Instructions: "Be brief.", Middleware: w}
	}
	run := func(name string, f func(b *testing.B)) {
		b.Run(name, func(b *testing.B) {
			countCPU(b)
			for b.Loop() {
				f(b)
			}
		})
	}
	plain := agent(look())
	run("none", func(b *testing.B) { whole(b, plain) })
	anything := look()
	anything.Input = json.RawMessage(`{}`)
	unchecked := agent(anything)
	run("any-arguments", func(b *testing.B) { whole(b, unchecked) })
	run("events", func(b *testing.B) { drain(b, plain) })
	approved := agent(look(), pawl.Approve(policy.AskBeforeWrites))
	run("approval", func(b *testing.B) { whole(b, approved) })
	var secrets redact.Redactor
	if err := secrets.Add("canary-4b1f9c07e2d85a36"); err != nil {
		b.Fatal(err)
	}
	redacted := redact.Runner(plain, &secrets)
	run("redacted-events", func(b *testing.B) { drain(b, redacted) })
	spans := tracetest.NewNoopExporter()
	tel, err := telemetry.New(&telemetry.Options{Tracer: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))})
	if err != nil {
		b.Fatal(err)
	}
	traced := tel.Runner(agent(look(), tel.Middleware()))
	run("telemetry", func(b *testing.B) { drain(b, traced) })
	db, err := sqlite.Open(filepath.Join(b.TempDir(), "pawl.db"), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	n := 0
	for name, j := range map[string]store.Journal{"durable-memory": new(store.MemoryJournal), "durable-sqlite": db} {
		run(name, func(b *testing.B) {
			n++
			if res, err := (&durable.Engine{Journal: j}).Runner(fmt.Sprint("r", n), plain).Run(b.Context(),
				llm.User("look")); err != nil || res.Text() != "DONE" {
				b.Fatalf("%+v %v", res, err)
			}
		})
	}
}

// BenchmarkTools measures each request after the first, with one call, for 10 and for 400 offered
// tools. "10-long" offers 10 tools with as many bytes as the 400. Its difference from "10" is the
// cost of the bytes, and the difference of "400" from it is the cost of the number of tools.
func BenchmarkTools(b *testing.B) {
	const rounds = 10
	asked, length, last := 0, 0, 0
	post := roundTripper(func(r *http.Request) (*http.Response, error) {
		length = int(r.ContentLength)
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil || n != r.ContentLength {
			return nil, fmt.Errorf("%d of %d bytes: %w", n, length, err)
		}
		body := `{"choices":[{"message":{"role":"assistant","content":"DONE"},"finish_reason":"stop"}]}`
		if asked++; asked <= last {
			body = `{"choices":[{"message":{"role":"assistant","tool_calls":[{"id":"c` + fmt.Sprint(asked) + `","type":"function","function":{"name":"look","arguments":"{\"path\":\"/a/b\",\"limit\":10,\"query\":\"words\"}"}}]},"finish_reason":"tool_calls"}]}`
		}
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	})
	agent := func(n, more int) *pawl.Agent {
		a := &pawl.Agent{Model: openai.NewChat("m", &openai.Options{BaseURL: "http://localhost/v1", HTTP: post})}
		for i := range n - 1 { // the called tool is the last of the list
			t := look()
			t.Name, t.Description = fmt.Sprintf("look_%d", i), strings.Repeat("d", more/(n-1))
			a.Tools = append(a.Tools, t)
		}
		a.Tools = append(a.Tools, look())
		return a
	}
	run := func(a *pawl.Agent, rounds int) {
		asked, last = 0, rounds
		if res, err := a.Run(b.Context(), llm.User("look")); err != nil || res.Text() != "DONE" {
			b.Fatalf("%+v %v", res, err)
		}
	}
	ten, many := agent(10, 0), agent(400, 0)
	run(ten, 0)
	short := length
	run(many, 0)
	long := agent(10, length-short)
	for _, c := range []struct {
		name  string
		agent *pawl.Agent
	}{{"10", ten}, {"10-long", long}, {"400", many}} {
		b.Run(c.name, func(b *testing.B) {
			run(c.agent, rounds)
			var spent int64 // per request after the first
			for b.Loop() {
				begin := cpuTime(b)
				run(c.agent, 0)
				first := cpuTime(b)
				run(c.agent, rounds)
				spent += cpuTime(b) - first - (first - begin)
			}
			b.ReportMetric(float64(spent)/float64(b.N*rounds), "cpu-ns/request")
			b.ReportMetric(float64(length), "bytes")
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// BenchmarkValidate measures the check of a call's arguments: with a plain schema, which is checked
// while the bytes are read, with a schema that needs the full validator, and with arguments that
// need repair. The decode rows are for comparison: a tool decodes its arguments anyway.
func BenchmarkValidate(b *testing.B) {
	const args = `{"path":"/a/b","limit":10,"query":"abcdefghij klmnopqrst"}`
	b.Run("decode", func(b *testing.B) {
		countCPU(b)
		for b.Loop() {
			var in struct {
				Path, Query string
				Limit       int
			}
			if err := json.Unmarshal([]byte(args), &in); err != nil {
				b.Fatal(err)
			}
		}
	})
	full := strings.Replace(lookSchema, `"path":{"type":"string"}`, `"path":{"type":"string","pattern":"^/"}`, 1)
	for _, c := range []struct{ name, schema, args string }{
		{"plain", lookSchema, args},
		{"full", full, args},
		{"comma", lookSchema, `{"path":"/a/b","limit":10,"query":"abcdefghij klmnopqrst",}`},
		{"text-for-number", lookSchema, `{"path":"/a/b","limit":"10","query":"abcdefghij klmnopqrst"}`},
		{"plain-64KiB", lookSchema, `{"path":"/a/b","limit":10,"query":"` + strings.Repeat("abcdefg ", 8<<10) + `"}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			t := &pawl.Tool{Name: "look", Input: json.RawMessage(c.schema),
				Run: func(context.Context, llm.ToolCall) (llm.ToolResult, error) { return llm.ToolResult{}, nil }}
			b.SetBytes(int64(len(c.args)))
			countCPU(b)
			for b.Loop() {
				if err := t.Validate(json.RawMessage(c.args)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
