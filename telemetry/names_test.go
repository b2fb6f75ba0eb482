package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/semconv/v1.41.0/genaiconv"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/observe"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/telemetry"
)

func (b *bench) metrics(t *testing.T) map[string]metricdata.Aggregation {
	t.Helper()
	var m metricdata.ResourceMetrics
	if err := b.reader.Collect(t.Context(), &m); err != nil {
		t.Fatal(err)
	}
	all := map[string]metricdata.Aggregation{}
	for _, s := range m.ScopeMetrics {
		for _, m := range s.Metrics {
			all[m.Name+" "+m.Unit] = m.Data
		}
	}
	return all
}

// Every name is a constant in the package of the conventions, begins with pawl, or is a name that
// the conventions' own repository has and the package does not.
func TestNamesAreThoseOfTheConventions(t *testing.T) {
	duration := genaiconv.ClientOperationDuration{}
	for _, test := range []struct {
		names      telemetry.Names
		cacheWrite attribute.Key
		metrics    []string
	}{
		{"", "gen_ai.usage.cache_write.input_tokens", []string{"gen_ai.execute_tool.duration s", "gen_ai.invoke_agent.duration s"}},
		{telemetry.Names2026, "gen_ai.usage.cache_write.input_tokens", []string{"gen_ai.execute_tool.duration s", "gen_ai.invoke_agent.duration s"}},
		{telemetry.Names1_41, semconv.GenAIUsageCacheCreationInputTokensKey, nil},
	} {
		t.Run(string(test.names), func(t *testing.T) {
			first := genaiconv.ClientOperationTimeToFirstChunk{}
			tokens := genaiconv.ClientTokenUsage{}
			metrics := append(test.metrics, duration.Name()+" "+duration.Unit(), first.Name()+" "+first.Unit(),
				tokens.Name()+" "+tokens.Unit())
			checkNames(t, test.names, test.cacheWrite, metrics)
		})
	}
	if _, err := telemetry.New(&telemetry.Options{Names: "1.20"}); err == nil || !strings.Contains(err.Error(), `want one of ["2026" "1.41"]`) {
		t.Errorf("unknown names: %v", err)
	}
}

// checkNames compares the names of spans and metrics with the names in the conventions.
func checkNames(t *testing.T, names telemetry.Names, cacheWrite attribute.Key, metrics []string) {
	b := newBench(t, telemetry.Options{Model: "m", Provider: "openai", Content: true, Names: names})
	warm := 0.5
	m := script.New(script.Call("look", `{}`),
		script.Turn{Parts: []llm.Part{llm.Text{Text: `{}`}},
			Usage: &llm.Usage{Input: 5, Output: 4, Reasoning: 1, CacheRead: 2, CacheWrite: 1}})
	named := modelFunc(func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			if yield(llm.Delta{Model: "m-1", ID: "id"}, nil) {
				m.Stream(ctx, req)(yield)
			}
		}
	})
	a := b.agent("a", true, named, ok("look"))
	a.Instructions, a.Output = "be brief", []byte(`{"type":"object"}`)
	a.Settings = llm.Settings{MaxTokens: 9, Temperature: &warm, TopP: &warm, StopSequences: []string{"x"}}
	a.Limits.Corrections = -1
	ctx := telemetry.WithRunID(t.Context(), "run-7")
	if _, err := run(ctx, b.Runner(a)); err != nil {
		t.Log(err)
	}
	got := map[string]map[string]bool{}
	for _, s := range b.spans.Ended() {
		op := attr(s, semconv.GenAIOperationNameKey)
		if got[op] == nil {
			got[op] = map[string]bool{}
		}
		for _, kv := range s.Attributes() {
			if !strings.HasPrefix(string(kv.Key), "pawl.") {
				got[op][string(kv.Key)] = true
			}
		}
	}
	set := func(keys ...attribute.Key) map[string]bool {
		m := map[string]bool{}
		for _, k := range keys {
			m[string(k)] = true
		}
		return m
	}
	usage := []attribute.Key{semconv.GenAIUsageInputTokensKey, semconv.GenAIUsageOutputTokensKey,
		semconv.GenAIUsageCacheReadInputTokensKey,
		cacheWrite, semconv.GenAIUsageReasoningOutputTokensKey}
	for i, s := range slices.Collect(b.only("chat m")) {
		if got, want := attr(s, semconv.GenAIResponseFinishReasonsKey), []string{`["tool_calls"]`, `["stop"]`}[i]; got != want {
			t.Errorf("reply %d has the finish reasons %s, want %s", i, got, want)
		}
	}
	want := map[string]map[string]bool{
		semconv.GenAIOperationNameInvokeAgent.Value.AsString(): set(append(usage, semconv.GenAIOperationNameKey,
			semconv.GenAIProviderNameKey,
			semconv.GenAIAgentNameKey, semconv.GenAIConversationIDKey)...),
		semconv.GenAIOperationNameChat.Value.AsString(): set(append(usage, semconv.GenAIOperationNameKey,
			semconv.GenAIProviderNameKey, semconv.GenAIRequestModelKey,
			semconv.GenAIConversationIDKey, semconv.GenAIRequestStreamKey, semconv.GenAIRequestMaxTokensKey,
			semconv.GenAIRequestTemperatureKey, semconv.GenAIRequestTopPKey,
			semconv.GenAIRequestStopSequencesKey, semconv.GenAIResponseIDKey, semconv.GenAIResponseModelKey,
			semconv.GenAIResponseFinishReasonsKey, semconv.GenAIResponseTimeToFirstChunkKey,
			semconv.GenAIInputMessagesKey, semconv.GenAIOutputMessagesKey,
			semconv.GenAISystemInstructionsKey)...),
		semconv.GenAIOperationNameExecuteTool.Value.AsString(): set(semconv.GenAIOperationNameKey,
			semconv.GenAIToolNameKey, semconv.GenAIToolTypeKey, semconv.GenAIToolCallIDKey,
			semconv.GenAIToolCallArgumentsKey, semconv.GenAIToolCallResultKey),
	}
	// depends on how the output is requested
	delete(got[semconv.GenAIOperationNameChat.Value.AsString()], string(semconv.GenAIOutputTypeKey))
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("attributes, got -, want +\n%s", diff)
	}
	measured := slices.Sorted(maps.Keys(b.metrics(t)))
	slices.Sort(metrics)
	if diff := cmp.Diff(measured, metrics); diff != "" {
		t.Errorf("metrics, got -, want +\n%s", diff)
	}
}

// For any run, the spans are exactly its runs, requests and calls. All are in one trace, all have
// ended, and each is below another.
func TestSpansAreRunsRequestsAndCalls(t *testing.T) {
	for seed := range uint64(150) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		b := newBench(t, telemetry.Options{Model: "m"})
		a := b.random(rnd, 2)
		runs, requests, calls := 0, 0, 0
		r := observe.Sync(b.Runner(a), func(e pawl.Event) {
			switch e.Kind {
			case pawl.EventRunStarted:
				runs++
			case pawl.EventRequestStarted:
				requests++
			case pawl.EventCallCompleted:
				calls++
			}
		})
		if _, err := run(t.Context(), r); err != nil && !strings.Contains(err.Error(), "scripted") {
			t.Fatalf("seed %d: %v", seed, err)
		}
		ids, ended := map[trace.SpanID]bool{}, b.spans.Ended()
		for _, s := range ended {
			ids[s.SpanContext().SpanID()] = true
		}
		for _, s := range ended {
			if s.SpanContext().TraceID() != ended[0].SpanContext().TraceID() ||
				s.Parent().IsValid() != ids[s.Parent().SpanID()] || s.EndTime().Before(s.StartTime()) {
				t.Errorf("seed %d: the span %s is not whole", seed, s.Name())
			}
		}
		if len(ended) != runs+requests+calls || len(b.spans.Started()) != len(ended) {
			t.Errorf("seed %d: %d spans of %d started, want %d runs + %d requests + %d calls\n%s", seed, len(ended), len(b.spans.Started()), runs, requests, calls, b.shape(t))
		}
	}
}

// random creates an agent with random behaviour and nested agents.
func (b *bench) random(rnd *rand.Rand, deep int) *pawl.Agent {
	names := []string{"read", "write", "broken", "nowhere"}
	a := b.agent(fmt.Sprintf("a%d", deep), rnd.IntN(3) > 0, nil, ok("read"),
		tool("write", pawl.EffectWrite, func(context.Context) (string, error) { return "", nil }),
		tool("broken", pawl.EffectWrite, func(context.Context) (string, error) { return "", errors.New("no") }))
	if deep > 0 {
		inner := b.random(rnd, deep-1)
		a.Tools = append(a.Tools, inner.Tool("asks"))
		names = append(names, inner.Name)
	}
	var turns []script.Turn
	for range rnd.IntN(4) {
		var calls []script.Turn
		for range 1 + rnd.IntN(4) {
			calls = append(calls, script.Call(names[rnd.IntN(len(names))], `{"task":"x"}`))
		}
		turns = append(turns, script.Together(calls...))
	}
	if rnd.IntN(5) > 0 {
		turns = append(turns, script.Say("done"))
	} else {
		turns = append(turns, script.Fail(errors.New("scripted")))
	}
	a.Model = script.New(turns...)
	return a
}
