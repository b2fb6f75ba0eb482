package pawl_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/observe"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/script"
)

func ExampleAgent_Run() {
	type City struct {
		Name string `json:"name"`
	}
	weather := pawl.Func("weather", "Current weather in a city.",
		func(ctx context.Context, c City) (string, error) { return "rain in " + c.Name, nil })
	agent := &pawl.Agent{
		Model: script.New( // replaces a provider, so that the example runs without a key
			script.Call("weather", City{"Oslo"}),
			script.Func(func(req *llm.Request) script.Turn { return script.Say("Yes: " + script.Results(req)[0].Text() + ".") }),
		),
		Tools: []pawl.Toolset{weather},
	}
	res, err := agent.Run(context.Background(), llm.User("Do I need an umbrella in Oslo?"))
	fmt.Println(res.Text(), res.Stop, err)
	fmt.Println(res.Spent.Requests, "requests,", res.Spent.Calls, "call")
	// Output:
	// Yes: rain in Oslo. answer <nil>
	// 2 requests, 1 call
}

func ExampleAgent_Stream() {
	agent := &pawl.Agent{
		Model: script.New(script.Together(script.Say("I look."), script.Call("clock", nil)), script.Say("It is noon.")),
		Tools: []pawl.Toolset{pawl.Func("clock", "The time.", func(context.Context, struct{}) (string, error) { return "12:00", nil })},
	}
	for e, err := range agent.Stream(context.Background(), llm.User("What time is it?")) {
		switch {
		case err != nil:
			fmt.Println(err)
		case e.Kind == pawl.EventText:
			fmt.Printf("%q\n", e.Text)
		case e.Kind == pawl.EventCallCompleted:
			fmt.Println(e.Execution.Call.Name, e.Execution.Outcome, e.Execution.Result.Text())
		case e.Kind == pawl.EventRunEnded:
			fmt.Println(e.Result.Stop)
		}
	}
	// Output:
	// "I look."
	// clock ok 12:00
	// "It is no"
	// "on."
	// answer
}

func ExampleBefore() {
	guard := pawl.Before(func(_ context.Context, call llm.ToolCall) (llm.ToolCall, error) {
		if strings.Contains(string(call.Args), ".env") {
			return call, pawl.BlockError("files with secrets are not read")
		}
		return call, nil
	})
	agent := &pawl.Agent{
		Model: script.New(script.Call("read", `{"path":".env"}`), script.Say("I may not.")),
		Tools: []pawl.Toolset{pawl.Func("read", "Read a file.", func(_ context.Context, in struct {
			Path string `json:"path"`
		}) (string, error) {
			return "the text of " + in.Path, nil
		})},
		Middleware: []pawl.Middleware{guard},
	}
	res, _ := agent.Run(context.Background(), llm.User("What is in .env?"))
	x := res.Steps[0].Executions[0]
	fmt.Println(x.Outcome, x.Result.Text())
	// Output:
	// blocked Blocked: files with secrets are not read
}

func ExamplePendingCall_Edit() {
	send := pawl.Func("send_money", "Send money.", func(_ context.Context, in struct {
		Amount int `json:"amount"`
	}) (string, error) {
		return fmt.Sprint("sent ", in.Amount), nil
	})
	agent := &pawl.Agent{
		Model: script.New(script.Call("send_money", `{"amount":900}`), script.Func(func(req *llm.Request) script.Turn {
			return script.Say(script.Results(req)[0].Text())
		})),
		Tools:      []pawl.Toolset{send},
		Middleware: []pawl.Middleware{pawl.Approve(policy.AskBeforeWrites)},
	}
	ctx := context.Background()
	res, _ := agent.Run(ctx, llm.User("Pay the rent.")) // the error is a *StopError
	w := res.Pending[0]
	fmt.Printf("may %s run with %s?\n", w.Call.Name, w.Call.Args)

	res, _ = agent.Resume(ctx, res, llm.DecisionMessage(w.Edit("ann", json.RawMessage(`{"amount":800}`))))
	fmt.Println(res.Text())
	// Output:
	// may send_money run with {"amount":900}?
	// (Not run as you asked: the approver changed the arguments to {"amount":800})
	// sent 800
}

func ExampleAgent_Resume() {
	remove := pawl.Func("remove", "Remove a file.", func(_ context.Context, in struct {
		Path string `json:"path"`
	}) (string, error) {
		return in.Path + " is gone", nil
	})
	agent := &pawl.Agent{
		Model: script.New(script.Call("remove", `{"path":"old.txt"}`), script.Func(func(req *llm.Request) script.Turn {
			return script.Say("Done: " + script.Results(req)[0].Text())
		})),
		Tools:      []pawl.Toolset{remove},
		Middleware: []pawl.Middleware{pawl.Approve(policy.AskBeforeWrites)},
	}
	ctx := context.Background()
	res, err := agent.Run(ctx, llm.User("Clean up."))
	fmt.Println(err)

	stored, _ := json.Marshal(res) // a Result is plain data: the process may end here

	var later pawl.Result
	_ = json.Unmarshal(stored, &later)
	for _, w := range later.Pending {
		fmt.Printf("may %s run with %s? %s\n", w.Call.Name, w.Call.Args, w.Why)
	}
	res, err = agent.Resume(ctx, &later, llm.DecisionMessage(later.Pending[0].Approve("ann")))
	fmt.Println(res.Stop, res.Text(), err)
	// Output:
	// pending: calls wait for an answer: remove; Resume with a Decision for each
	// may remove run with {"path":"old.txt"}? it may change the world
	// answer Done: old.txt is gone <nil>
}

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

// A message is sent to a run in progress.
func ExampleSteering() {
	var steering pawl.Steering
	read := pawl.Func("read_page", "Reads a page of the report.", func(ctx context.Context, in struct{ Page int }) (string, error) {
		if in.Page == 1 { // the user types in another goroutine
			if err := steering.Steer(ctx, llm.User("The first page is enough.")); err != nil {
				return "", err
			}
		}
		return fmt.Sprintf("page %d of 300", in.Page), nil
	})
	agent := &pawl.Agent{Tools: []pawl.Toolset{read}, Model: script.New(
		script.Call("read_page", `{"Page":1}`),
		script.Func(func(req *llm.Request) script.Turn {
			return script.Say("The user wrote: " + req.Messages[len(req.Messages)-1].Text())
		}))}
	ctx := pawl.WithRunOptions(context.Background(), pawl.RunOptions{Messages: &steering})
	res, err := agent.Run(ctx, llm.User("Summarise the report."))
	fmt.Println(res.Text(), err)
	// Output: The user wrote: The first page is enough. <nil>
}
