package llm_test

import (
	"encoding/json"
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
func ExampleRepair() {
	msgs := []llm.Message{
		llm.User("Clean up."),
		llm.Assistant(llm.ToolCall{ID: "c1", Name: "remove", Args: json.RawMessage(`{"path":"old.txt"}`)}),
		// here the process ended
		llm.User("Are you there?"),
		llm.Assistant(llm.Text{Text: "I am."}),
	}
	healed, mends := llm.Repair(msgs)
	for _, m := range mends {
		fmt.Printf("message %d: %s: %s\n", m.Message, m.Text, m.Action)
	}
	fmt.Println(len(healed), healed[2].Role)
	// Output:
	// message 1: call "c1" has no result: it is answered with an error that says so
	// 5 tool
}

func ExampleMessage_MarshalJSON() {
	reply := llm.Assistant(llm.Text{Text: "I look."}, llm.ToolCall{ID: "c1", Name: "weather", Args: json.RawMessage(`{"city":"Oslo"}`)})
	b, err := json.MarshalIndent(reply, "", "  ")
	fmt.Println(string(b), err)
	// Output:
	// {
	//   "role": "assistant",
	//   "parts": [
	//     {
	//       "type": "text",
	//       "text": "I look."
	//     },
	//     {
	//       "type": "tool_call",
	//       "id": "c1",
	//       "name": "weather",
	//       "args": {
	//         "city": "Oslo"
	//       }
	//     }
	//   ]
	// } <nil>
}
