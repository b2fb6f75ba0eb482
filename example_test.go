package pawl_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
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
