package find_test

import (
	"context"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/tools/find"
)

// With many tools, the model is offered tool_search, and the rest on demand.
func Example() {
	var set pawl.Toolsets
	for i := range 25 {
		set = append(set, &pawl.Tool{Name: fmt.Sprintf("tool_%d", i), Passive: true})
	}
	tools, _ := find.OnDemand(set, nil).Tools(context.Background())
	fmt.Println(tools[0].Name, tools[1].Deferred, len(tools))
	// Output:
	// tool_search true 26
}
