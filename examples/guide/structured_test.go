package guide

import (
	"context"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

type Invoice struct {
	Vendor string  `json:"vendor" jsonschema:"the company that sent it"`
	Total  float64 `json:"total" jsonschema:"the amount to pay"`
}

func Example_structured() {
	agent := &pawl.Agent{Instructions: "Extract the invoice.", Model: script.New( // or a real model
		script.Say(`{"vendor":"Acme","total":"twelve"}`),
		script.Say(`{"vendor":"Acme","total":12.5}`))}

	invoice, res, err := pawl.Into[Invoice](context.Background(), agent,
		llm.User("Invoice 17 of Acme: 12.50 EUR"))
	if err != nil {
		panic(err)
	}
	fmt.Printf("%+v\n", invoice)
	fmt.Println(res.Messages[2].Text()) // what the model read about its first answer

	// Output:
	// {Vendor:Acme Total:12.5}
	// The answer does not fit its schema:
	// - field total: expected number, got string "twelve"
	// An answer of the right form, with your own values: {"total":1,"vendor":"text"}
	// Give the whole answer again, corrected: one JSON value, and nothing before or after it.
}
