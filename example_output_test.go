package pawl_test

import (
	"context"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/observe"
	"github.com/pawl-go/pawl/script"
)

type Verdict struct {
	Sentiment string `json:"sentiment" jsonschema:"positive, negative or mixed"`
	Score     int    `json:"score" jsonschema:"from 1 to 5"`
}

// An answer as a Go value. The model's first answer does not fit the schema. The model gets the
// reason and answers again.
func ExampleInto() {
	agent := &pawl.Agent{Model: script.New( // in place of openai.New("gpt-6.1-terra", nil)
		script.Say(`{"sentiment":"mixed","score":"three or so"}`),
		script.Say("```json\n{\"sentiment\":\"mixed\",\"score\":3}\n```"),
	)}
	ctx := context.Background()
	// begin into
	v, res, err := pawl.Into[Verdict](ctx, agent, llm.User("Judge: it works, mostly."))
	// end into
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%+v\n", v)
	fmt.Println(res.Messages[2].Text())
	// Output:
	// {Sentiment:mixed Score:3}
	// The answer does not fit its schema:
	// - field score: expected integer, got string "three or so"
	// An answer of the right form, with your own values: {"score":1,"sentiment":"text"}
	// Give the whole answer again, corrected: one JSON value, and nothing before or after it.
}

// A partial answer while the model writes it.
func ExamplePartial() {
	agent := &pawl.Agent{Output: pawl.SchemaFor[Verdict](), Model: script.New(script.Say(`{"sentiment":"positive","score":5}`))}
	var form observe.Partial[Verdict]
	for e, err := range agent.Stream(context.Background(), llm.User("Judge: it works.")) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if v, ok := form.Add(e); ok {
			fmt.Printf("%s: %+v\n", e.Kind, v)
		}
	}
	// Output:
	// text: {Sentiment: Score:0}
	// text: {Sentiment:positive Score:0}
	// text: {Sentiment:positive Score:5}
	// run_ended: {Sentiment:positive Score:5}
}
