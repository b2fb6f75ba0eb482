package derivation_test

import (
	"encoding/json"
	"fmt"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/llm/derivation"
)

// A call pays the account of a bill. The user did not say its address. The document that the user
// named has it.
func Example() {
	read := llm.ToolCall{ID: "1", Name: "file_read", Args: json.RawMessage(`{"path":"bill.txt"}`)}
	bill := llm.TextResult("Please send 70 EUR to billing@shop.example.")
	bill.CallID = read.ID
	pay := llm.ToolCall{ID: "2", Name: "pay", Args: json.RawMessage(`{"to":"billing@shop.example"}`)}
	transcript := derivation.Transcript{Messages: []llm.Message{
		llm.User("Pay the bill in bill.txt."),
		llm.Assistant(read),
		llm.Results(bill),
		llm.Assistant(pay),
	}}

	to := derivation.Value{Arg: "to", Value: "billing@shop.example", Ground: derivation.User}
	fmt.Println(transcript.Check(pay, []derivation.Value{to}))

	to.Ground = derivation.Document
	to.Call = read.ID
	to.Name = "bill.txt"
	fmt.Println(transcript.Check(pay, []derivation.Value{to}))
	// Output:
	// pay: to "billing@shop.example": the ground "user" does not hold
	// <nil>
}
