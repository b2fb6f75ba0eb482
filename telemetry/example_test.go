package telemetry_test

import (
	"context"
	"fmt"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/telemetry"
)

func Example() {
	spans := tracetest.NewInMemoryExporter() // an exporter to a collector, elsewhere
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	weather := pawl.Func("weather", "Current weather in a city.", func(_ context.Context, in struct {
		City string `json:"city"`
	}) (string, error) {
		return "rain in " + in.City, nil
	})
	agent := &pawl.Agent{Name: "forecaster", Tools: []pawl.Toolset{weather},
		Model: script.New(script.Call("weather", `{"city":"Oslo"}`), script.Say("Take an umbrella."), script.Say("You are welcome."))}
	ctx := context.Background()

	// begin trace
	tel, err := telemetry.New(&telemetry.Options{Tracer: tracer, Provider: "openai", Model: "gpt-6.1-terra"})
	if err != nil {
		panic(err)
	}
	agent.Middleware = append(agent.Middleware, tel.Middleware())
	var res *pawl.Result
	for e, err := range tel.Runner(agent).Stream(ctx, llm.User("Do I need an umbrella in Oslo?")) {
		if err != nil {
			panic(err)
		}
		res = e.Result // the result in run_ended
	}
	// end trace

	// begin link
	// res may have been stored
	ctx = telemetry.LinkTo(ctx, telemetry.Resumed, telemetry.Traceparent(res))
	// end link
	for _, err := range tel.Runner(agent).Stream(ctx, append(res.Messages, llm.User("Thanks."))...) {
		if err != nil {
			panic(err)
		}
	}
	for _, s := range spans.GetSpans() {
		fmt.Println(s.Name, len(s.Links))
	}
	// Output:
	// chat gpt-6.1-terra 0
	// execute_tool weather 0
	// chat gpt-6.1-terra 0
	// invoke_agent forecaster 0
	// chat gpt-6.1-terra 0
	// invoke_agent forecaster 1
}
