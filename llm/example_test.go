package llm_test

import (
	"fmt"

	"github.com/pawl-go/pawl/llm"
)

// A history whose call was never answered is repaired before it is sent.
func Example() {
	history := []llm.Message{
		llm.User("Is it raining in Oslo?"),
		llm.Assistant(llm.ToolCall{ID: "c1", Name: "weather", Args: []byte(`{"city":"Oslo"}`)}),
		llm.User("And in Bergen?"),
		llm.Assistant(llm.Text{Text: "One moment."}),
	}
	repaired, what := llm.Repair(history)
	fmt.Println(len(history), len(repaired))
	fmt.Println(what[0].Code)
	// Output:
	// 4 5
	// no_result
}
