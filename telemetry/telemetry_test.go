package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sort"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a Telemetry and its output.
type bench struct {
	*telemetry.Telemetry
	spans  *tracetest.SpanRecorder
	reader *metric.ManualReader
}

func newBench(t *testing.T, o telemetry.Options) *bench {
	t.Helper()
	b := &bench{spans: tracetest.NewSpanRecorder(), reader: metric.NewManualReader()}
	o.Tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(b.spans))
	o.Meter = metric.NewMeterProvider(metric.WithReader(b.reader))
	tel, err := telemetry.New(&o)
	if err != nil {
		t.Fatal(err)
	}
	b.Telemetry = tel
	return b
}

// agent creates an agent; with seen it has the middleware.
func (b *bench) agent(name string, seen bool, m llm.Model, tools ...pawl.Toolset) *pawl.Agent {
	a := &pawl.Agent{Name: name, Model: m, Tools: tools}
	if seen {
		a.Middleware = append(a.Middleware, b.Middleware())
	}
	return a
}

// run executes r.
func run(ctx context.Context, r pawl.Runner, msgs ...llm.Message) (*pawl.Result, error) {
	if len(msgs) == 0 {
		msgs = []llm.Message{llm.User("go")}
	}
	return runtest.Ended(pawl.Collect(r.Stream(ctx, msgs...), nil))
}

// shape formats the spans as a tree, siblings by their keys.
func (b *bench) shape(t *testing.T) string {
	t.Helper()
	below := map[trace.SpanID][]sdktrace.ReadOnlySpan{}
	if started, ended := len(b.spans.Started()), len(b.spans.Ended()); started != ended {
		t.Errorf("%d spans were started and %d ended", started, ended)
	}
	for _, s := range b.spans.Ended() {
		below[s.Parent().SpanID()] = append(below[s.Parent().SpanID()], s)
	}
	var out strings.Builder
	var write func(id trace.SpanID, indent string)
	write = func(id trace.SpanID, indent string) {
		all := below[id]
		sort.SliceStable(all, func(i, j int) bool { return attr(all[i], "pawl.key") < attr(all[j], "pawl.key") })
		for _, s := range all {
			fmt.Fprintf(&out, "%s%s", indent, s.Name())
			if e := attr(s, "error.type"); e != "" {
				out.WriteString(" !" + e)
			}
			out.WriteByte('\n')
			write(s.SpanContext().SpanID(), indent+"  ")
		}
	}
	write(trace.SpanID{}, "")
	return out.String()
}

// only returns the spans with that name in the order of their ends.
func (b *bench) only(name string) iter.Seq[sdktrace.ReadOnlySpan] {
	return func(yield func(sdktrace.ReadOnlySpan) bool) {
		for _, s := range b.spans.Ended() {
			if s.Name() == name && !yield(s) {
				return
			}
		}
	}
}

func attr(s sdktrace.ReadOnlySpan, key attribute.Key) string {
	for _, kv := range s.Attributes() {
		if kv.Key == key {
			return kv.Value.String()
		}
	}
	return ""
}

type none struct{}

func tool(name string, effect pawl.Effect, fn func(ctx context.Context) (string, error)) *pawl.Tool {
	t := pawl.Func(name, "does "+name, func(ctx context.Context, _ none) (string, error) { return fn(ctx) })
	t.Effect = effect
	return t
}

func ok(name string) *pawl.Tool {
	return tool(name, pawl.EffectRead, func(context.Context) (string, error) { return "done", nil })
}

// An agent that calls another one: the tree is the same whether the inner agent, both or none have
// the middleware.
func TestTheTreeOfARun(t *testing.T) {
	want := `invoke_agent chief
  chat m
  chat m
  execute_tool look
  execute_tool clerk
    invoke_agent clerk
      chat m
      execute_tool broken !error
      chat m
  execute_tool _OTHER !unknown_tool
  chat m
`
	for _, seen := range [][2]bool{{true, true}, {true, false}, {false, false}} {
		b := newBench(t, telemetry.Options{Model: "m"})
		broken := tool("broken", pawl.EffectWrite, func(context.Context) (string, error) { return "", errors.New("no") })
		clerk := b.agent("clerk", seen[1], script.New(script.Call("broken", `{}`), script.Say("it is broken")), broken)
		chief := b.agent("chief", seen[0], script.New(script.Together(script.Call("look", `{}`), script.Call("clerk", `{"task":"look"}`)),
			script.Call("made_up", `{}`), script.Say("done")), ok("look"), clerk.Tool("asks a clerk"))
		if _, err := run(t.Context(), b.Runner(chief)); err != nil {
			t.Fatal(err)
		}
		got := b.shape(t)
		if diff := cmp.Diff(sorted(got), sorted(want)); diff != "" {
			t.Errorf("middleware in the outer and the inner agent %v: got -, want +\n%s\n%s", seen, diff, got)
		}
	}
}

// sorted makes trees with unordered siblings comparable.
func sorted(tree string) []string {
	lines := strings.Split(strings.TrimSpace(tree), "\n")
	slices.Sort(lines)
	return lines
}

// Spans that the model and the tool create with their contexts are below their spans.
func TestContextsHaveTheSpans(t *testing.T) {
	b := newBench(t, telemetry.Options{Model: "m"})
	seen := map[string]string{}
	at := func(ctx context.Context) string {
		for _, s := range b.spans.Started() {
			if s.SpanContext().Equal(trace.SpanContextFromContext(ctx)) {
				return s.Name()
			}
		}
		return ""
	}
	m := script.New(script.Call("look", `{}`), script.Say("done"))
	spy := modelFunc(func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
		seen["model"] = at(ctx)
		return m.Stream(ctx, req)
	})
	look := tool("look", pawl.EffectRead, func(ctx context.Context) (string, error) { seen["tool"] = at(ctx); return "", nil })
	if _, err := run(t.Context(), b.Runner(b.agent("a", true, spy, look))); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(seen, map[string]string{"model": "chat m", "tool": "execute_tool look"}); diff != "" {
		t.Errorf("got -, want +\n%s", diff)
	}
}

type modelFunc func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error]

func (f modelFunc) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return f(ctx, req)
}

// Errors of runs are reported with a type and a status.
func TestErrorsHaveATypeAndAStatus(t *testing.T) {
	for _, c := range []struct {
		name string
		m    llm.Model
		tool *pawl.Tool
		want string
	}{
		{"a provider", script.New(script.Fail(&llm.ProviderError{Provider: "p", Code: llm.CodeRateLimit, Message: "canary"})), nil,
			"invoke_agent a !rate_limit|  chat m !rate_limit"},
		{"what has no name", script.New(script.Fail(errors.New("canary"))), nil, "invoke_agent a !_OTHER|  chat m !_OTHER"},
		{"a tool that aborts", script.New(script.Call("t", `{}`)), tool("t", pawl.EffectWrite, func(context.Context) (string, error) {
			return "", pawl.AbortError(errors.New("canary"))
		}), "invoke_agent a !error|  chat m|  execute_tool t !error"},
		{"a panic", script.New(script.Call("t", `{}`), script.Say("x")),
			tool("t", pawl.EffectWrite, func(context.Context) (string, error) { panic("canary") }),
			"invoke_agent a|  chat m|  execute_tool t !panicked|  chat m"},
		{"arguments that do not fit", script.New(script.Call("t", `{"canary":1}`), script.Say("x")), ok("t"),
			"invoke_agent a|  chat m|  execute_tool t !invalid|  chat m"},
	} {
		for _, seen := range []bool{true, false} {
			b := newBench(t, telemetry.Options{Model: "m"})
			a := b.agent("a", seen, c.m)
			if c.tool != nil {
				a.Tools = []pawl.Toolset{c.tool}
			}
			_, _ = run(t.Context(), b.Runner(a))
			want := c.want
			if !seen && strings.Contains(want, "chat m !rate") {
				want = "invoke_agent a !rate_limit|  chat m !_OTHER" // events do not contain it
			}
			if diff := cmp.Diff(sorted(b.shape(t)), sorted(strings.ReplaceAll(want, "|", "\n"))); diff != "" {
				t.Errorf("%s, middleware %v: got -, want +\n%s", c.name, seen, diff)
			}
			for _, s := range b.spans.Ended() {
				if failed := attr(s, "error.type") != ""; failed != (s.Status().Code == codes.Error) {
					t.Errorf("%s: %s has the error.type %q and the status %v", c.name, s.Name(), attr(s, "error.type"), s.Status())
				}
			}
		}
	}
}

// Failed attempts that were retried are spans below the span of the request or the call.
func TestASpanForEachRetry(t *testing.T) {
	for _, seen := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, telemetry.Options{Model: "m"})
			m := script.New(script.Call("flaky", `{}`), script.Say("done"))
			again := modelFunc(func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
				return func(yield func(llm.Delta, error) bool) {
					if !yield(llm.Delta{Notice: &llm.Notice{Code: "retry", Text: "attempt 2 of 3"}}, nil) {
						return
					}
					m.Stream(ctx, req)(yield)
				}
			})
			n := 0
			flaky := tool("flaky", pawl.EffectRead, func(context.Context) (string, error) {
				if n++; n < 3 {
					return "", pawl.RetryableError(errors.New("busy"))
				}
				return "done", nil
			})
			if _, err := run(t.Context(), b.Runner(b.agent("a", seen, again, flaky))); err != nil {
				t.Fatal(err)
			}
			want := "invoke_agent a\n  chat m\n    attempt !_OTHER\n  chat m\n    attempt !_OTHER\n  execute_tool flaky\n    attempt !_OTHER\n    attempt !_OTHER"
			if diff := cmp.Diff(sorted(b.shape(t)), sorted(want)); diff != "" {
				t.Errorf("middleware %v: got -, want +\n%s", seen, diff)
			}
		})
	}
}

// Words of a person, a model or a tool are recorded only if requested, and then without secrets.
func TestContentIsOptIn(t *testing.T) {
	const secret = "canary-key-73519"
	for _, content := range []bool{false, true} {
		for _, seen := range []bool{true, false} {
			red := new(redact.Redactor)
			if err := red.Add(secret); err != nil {
				t.Fatal(err)
			}
			b := newBench(t, telemetry.Options{Model: "m", Content: content, Redactor: red})
			echo := pawl.Func("echo", "canary", func(_ context.Context, in struct {
				Text  string `json:"text"`
				Token string `json:"token,omitempty"`
			}) (string, error) {
				return "canary result " + in.Text + in.Token, errors.New("canary failure " + secret)
			})
			echo.Input = []byte(`{"type":"object","properties":{"text":{"type":"string"},"token":{"type":"string","writeOnly":true}},"required":["text"]}`)
			a := b.agent("a", seen, script.New(script.Call("echo", `{"text":"canary `+secret+`","token":"canary-token-5"}`),
				script.Call("canary_name", `{}`), script.Fail(errors.New("canary "+secret))), echo)
			a.Instructions = "canary instructions"
			_, _ = run(t.Context(), b.Runner(a), llm.User("canary question "+secret))
			var all strings.Builder
			for _, s := range b.spans.Ended() {
				fmt.Fprintln(&all, s.Name(), s.Attributes(), s.Events(), s.Status())
			}
			fmt.Fprint(&all, b.metrics(t))
			got := all.String()
			if strings.Contains(got, secret) || strings.Contains(got, "canary-token-5") {
				t.Errorf("content %v, middleware %v: a secret is recorded:\n%s", content, seen, got)
			}
			if has := strings.Contains(got, "canary"); has != content {
				t.Errorf("content %v, middleware %v: content is recorded: %v\n%s", content, seen, has, got)
			}
			if content && seen && !(strings.Contains(got, "canary question") && strings.Contains(got, "canary instructions") && strings.Contains(got, "canary failure")) {
				t.Errorf("content was requested, and not all of it is recorded:\n%s", got)
			}
		}
	}
}

// A caller that stops ranging leaves no span open.
func TestARunThatIsBrokenOff(t *testing.T) {
	b := newBench(t, telemetry.Options{Model: "m"})
	a := b.agent("a", true, script.New(script.Call("look", `{}`), script.Say("done")), ok("look"))
	for e := range b.Runner(a).Stream(t.Context(), llm.User("go")) {
		if e.Kind == pawl.EventRequestStarted {
			break
		}
	}
	if got := b.shape(t); !strings.HasPrefix(got, "invoke_agent a !cancelled\n") {
		t.Errorf("got\n%s", got)
	}
}

// Without a Runner, the spans of requests and calls are below the span of the context.
func TestMiddlewareAlone(t *testing.T) {
	b := newBench(t, telemetry.Options{Model: "m"})
	a := b.agent("a", true, script.New(script.Call("look", `{}`), script.Say("done")), ok("look"))
	if _, err := a.Run(t.Context(), llm.User("go")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sorted(b.shape(t)), []string{"chat m", "chat m", "execute_tool look"}); diff != "" {
		t.Errorf("got -, want +\n%s", diff)
	}
}

// A tool may run an agent itself, whose keys equal the keys of the enclosing run. They are not
// confused.
func TestARunInsideOfATool(t *testing.T) {
	b := newBench(t, telemetry.Options{Model: "m"})
	inner := b.agent("inner", true, script.New(script.Call("look", `{}`), script.Say("done")), ok("look"))
	quiet := tool("quiet", pawl.EffectWrite, func(ctx context.Context) (string, error) {
		_,
			err := inner.Run(ctx, llm.User("go"))
		return "", err
	})
	told := tool("told", pawl.EffectWrite, func(ctx context.Context) (string, error) {
		_,
			err := run(ctx, b.Runner(inner))
		return "", err
	})
	a := b.agent("a", true, script.New(script.Together(script.Call("quiet", `{}`), script.Call("told", `{}`)), script.Say("done")), quiet, told)
	if _, err := run(t.Context(), b.Runner(a)); err != nil {
		t.Fatal(err)
	}
	want := `invoke_agent a
  chat m
  chat m
  execute_tool quiet
    chat m
    chat m
    execute_tool look
  execute_tool told
    invoke_agent inner
      chat m
      chat m
      execute_tool look`
	if diff := cmp.Diff(sorted(b.shape(t)), sorted(want)); diff != "" {
		t.Errorf("got -, want +\n%s", diff)
	}
}

// Without a tracer and a meter nothing is created, and nothing fails.
func TestNobodyIsTold(t *testing.T) {
	tel, err := telemetry.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	inner := &pawl.Agent{Name: "inner", Model: script.New(script.Call("look", `{}`), script.Say("done")),
		Tools: []pawl.Toolset{ok("look")}, Middleware: []pawl.Middleware{tel.Middleware()}}
	a := &pawl.Agent{Model: script.New(script.Call("inner", `{"task":"x"}`), script.Say("done")),
		Tools: []pawl.Toolset{inner.Tool("asks")}, Middleware: []pawl.Middleware{tel.Middleware()}}
	res, err := run(t.Context(), tel.Runner(a))
	if err != nil || res.Steps[0].Executions[0].Outcome != pawl.OutcomeOK || telemetry.Traceparent(res) != "" {
		t.Errorf("got %+v, %v", res, err)
	}
}
