package telemetry_test

import (
	"context"
	"fmt"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/telemetry"
)

func Example() {
	spans := tracetest.NewInMemoryExporter() // an exporter to a collector, elsewhere
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	tel, err := telemetry.New(&telemetry.Options{Tracer: provider, Provider: "openai", Model: "gpt-5-mini"})
	if err != nil {
		panic(err)
	}

	weather := pawl.Func("weather", "Current weather in a city.", func(_ context.Context, in struct {
		City string `json:"city"`
	}) (string, error) {
		return "rain in " + in.City, nil
	})
	agent := &pawl.Agent{Name: "forecaster", Model: script.New(script.Call("weather", `{"city":"Oslo"}`), script.Say("Take an umbrella.")),
		Tools: []pawl.Toolset{weather}, Middleware: []pawl.Middleware{tel.Middleware()}}
	for _, err := range tel.Runner(agent).Stream(context.Background(), pawl.User("Do I need an umbrella in Oslo?")) {
		if err != nil {
			panic(err)
		}
	}
	for _, s := range spans.GetSpans() {
		fmt.Println(s.Name)
	}
	// Output:
	// chat gpt-5-mini
	// execute_tool weather
	// chat gpt-5-mini
	// invoke_agent forecaster
}
