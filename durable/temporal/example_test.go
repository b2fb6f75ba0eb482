package temporal_test

import (
	"context"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/temporal"
	"github.com/pawl-go/pawl/script"
)

// A worker reports an agent that it cannot run when the agent is added. docs/temporal.md shows a
// whole worker, which needs a cluster.
func Example() {
	// And Client: client.Dial(client.Options{DataConverter: temporal.Converter(blobs)}).
	eng := &temporal.Engine{Blobs: temporal.Dir("blobs")}
	w := eng.Worker(nil)

	weather := pawl.Func("weather", "Current weather in a city.", func(_ context.Context, in struct{ City string }) (string, error) {
		return "rain in " + in.City, nil
	})
	agent := &pawl.Agent{Model: script.New(script.Say("Take it.")), Tools: []pawl.Toolset{weather}}
	fmt.Println(w.Add(context.Background(), "weather", agent))

	agent = &pawl.Agent{Model: agent.Model, Parallel: pawl.Parallel{FailFast: true}}
	fmt.Println(w.Add(context.Background(), "fast", agent))
	// Output:
	// <nil>
	// agent fast: Parallel.FailFast is not there on Temporal
}
