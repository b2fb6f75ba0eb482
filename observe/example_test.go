package observe_test

import (
	"context"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/observe"
	"github.com/pawl-go/pawl/script"
)

// Sync calls a function for each event of each run.
func Example() {
	agent := &pawl.Agent{Model: script.New(script.Say("Hello."))}
	watched := observe.Sync(agent, func(e pawl.Event) {
		if e.Kind == pawl.EventRunEnded {
			fmt.Println(e.Result.Text())
		}
	})
	for range watched.Stream(context.Background(), llm.User("Hi.")) {
	}
	// Output:
	// Hello.
}
