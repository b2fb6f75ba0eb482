package guide

import (
	"context"
	"fmt"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/observe"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/telemetry"
)

func Example_observability() {
	spans := tracetest.NewInMemoryExporter() // or an OTLP exporter
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	tel, err := telemetry.New(&telemetry.Options{Tracer: tracer, Provider: "openai", Model: "gpt-6.1-terra"})
	if err != nil {
		panic(err)
	}
	weather := pawl.Func("weather", "Current weather in a city.",
		func(_ context.Context, in struct{ City string }) (string, error) { return "rain", nil })
	agent := &pawl.Agent{Name: "forecaster", Tools: []pawl.Toolset{weather},
		Middleware: []pawl.Middleware{tel.Middleware()},
		Model:      script.New(script.Call("weather", `{"City":"Oslo"}`), script.Say("Take an umbrella."))}

	// A callback for each event, in step with the run.
	run := observe.Sync(tel.Runner(agent), func(e pawl.Event) {
		if e.Kind == pawl.EventCallCompleted {
			fmt.Println("event:", e.Kind, e.Execution.Call.Name, e.Execution.Outcome)
		}
	})
	if _, err := pawl.Collect(run.Stream(context.Background(), llm.User("Umbrella?")), func(pawl.Event) {}); err != nil {
		panic(err)
	}
	for _, s := range spans.GetSpans() {
		fmt.Println("span: ", s.Name)
	}

	// Output:
	// event: call_completed weather ok
	// span:  chat gpt-6.1-terra
	// span:  execute_tool weather
	// span:  chat gpt-6.1-terra
	// span:  invoke_agent forecaster
}
