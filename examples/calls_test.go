package examples

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/observe"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/provider/catalog"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/script"
)

// The snippets of docs/calls.md.

// begin effect

type Search struct {
	Words string `json:"words" jsonschema:"what to look for"`
	Limit int    `json:"limit,omitempty" jsonschema:"how many hits at most"`
}

func searchTool(find func(ctx context.Context, words string, limit int) ([]string, error)) *pawl.Tool {
	t := pawl.Func("search", "Finds pages.", func(ctx context.Context, in Search) ([]string, error) {
		hits, err := find(ctx, in.Words, in.Limit)
		if err != nil {
			// the connection to the index failed, not the query: a retry may work
			return nil, pawl.RetryableError(err)
		}
		return hits, nil
	})
	t.Effect = pawl.EffectRead   // it may be repeated, run in parallel, and start early
	t.Timeout = 10 * time.Second // for one attempt; 0 means 60 s
	t.MaxResult = 8 << 10        // bytes for the model; 0 means 32 KiB

	// calls with the same key run one after another
	t.Serial = func(json.RawMessage) string { return "index" }

	return t
}

// end effect

func Example_repaired() {
	t := searchTool(func(_ context.Context, words string, limit int) ([]string, error) {
		return []string{fmt.Sprintf("%s %d", words, limit)}, nil
	})
	// begin repaired
	x := pawl.Toolsets{t}.Execute(context.Background(), llm.ToolCall{ID: "c", Name: "search",
		Args: json.RawMessage("```json\n{'words': 'pawl', limit: '3',}\n```")})
	fmt.Println(x.Outcome, x.Result.Text())
	fmt.Println(string(x.Call.Args))
	for _, r := range x.Repairs {
		fmt.Println("-", r)
	}
	x = pawl.Toolsets{t}.Execute(context.Background(), llm.ToolCall{ID: "c", Name: "search", Args: json.RawMessage(`{"word":"pawl"}`)})
	fmt.Println(x.Outcome)
	fmt.Println(x.Result.Text())
	// end repaired

	// Output:
	// ok ["pawl 3"]
	// {"limit":3,"words":"pawl"}
	// - removed a code fence
	// - replaced single quotes
	// - quoted the name limit
	// - removed a trailing comma
	// - limit: read the text "3" as the number 3
	// invalid
	// The arguments of search do not fit its schema:
	// - missing required field "words"
	// - unknown field "word" (did you mean "words"?)
	// Arguments of the right form, with your own values: {"words":"text"}
}

type payment struct {
	To    string `json:"to"`
	Euros int    `json:"euros"`
}

func pay() *pawl.Tool {
	return pawl.Func("pay", "Pays a bill.", func(_ context.Context, in payment) (string, error) {
		return fmt.Sprintf("paid %d to %s", in.Euros, in.To), nil
	})
}

func Example_approval() {
	model := script.New(script.Call("pay", `{"to":"Anna","euros":70}`), script.Say("Done."))
	// begin approval
	pay := pay()
	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{pay}, Middleware: []pawl.Middleware{
		// and asks before other writes
		policy.Rules{Deny: []string{"*_delete"}, Allow: []string{"effect:idempotent"}}.Middleware(),
		// an error denies
		policy.Approve(pay, func(_ context.Context, in payment) (pawl.Approval, error) {
			if in.Euros > 1000 {
				return pawl.Approval{Verdict: pawl.VerdictDeny, Reason: "too much for a program"}, nil
			}
			// The strictest of all policies counts.
			return pawl.Approval{Verdict: pawl.VerdictAllow}, nil
		}),
	}}
	ctx := context.Background()
	_, err := agent.Run(ctx, llm.User("Pay Anna 70."))
	var stop *pawl.StopError
	if !errors.As(err, &stop) || stop.Reason != pawl.StopPending {
		panic(err)
	}
	// The run can wait for days, and resume in another process.
	kept, err := json.Marshal(stop.Result)
	if err != nil {
		panic(err)
	}

	var stored pawl.Result
	if err := json.Unmarshal(kept, &stored); err != nil {
		panic(err)
	}
	fmt.Println(stored.Stop, stored.Pending[0].Call.Name, string(stored.Pending[0].Call.Args))
	res, err := agent.Resume(ctx, &stored, llm.DecisionMessage(stored.Pending[0].Edit("tom", json.RawMessage(`{"to":"Anna","euros":7}`))))
	// end approval
	fmt.Println(res.Stop, res.Steps[0].Executions[0].Result.Text(), err)
	// Output:
	// pending pay {"to":"Anna","euros":70}
	// answer (Not run as you asked: the approver changed the arguments to {"to":"Anna","euros":7})
	// paid 7 to Anna <nil>
}

func Example_limits() {
	model := script.New(script.Loop(script.Func(func(req *llm.Request) script.Turn {
		if req.Choice.Mode == llm.ToolNone { // the last request of the run asks for an answer
			return script.Say("I found three.")
		}
		return script.Call("search", `{"words":"a"}`)
	})))
	n := 0
	search := searchTool(func(context.Context, string, int) ([]string, error) {
		n++
		return []string{fmt.Sprint(n)}, nil
	})
	// begin limits
	price := catalog.Price{Input: 1.25, Output: 10} // US dollars per million tokens
	agent := &pawl.Agent{
		Model: price.Of(model), // models of provider.Open already have a price
		Tools: []pawl.Toolset{search},
		Limits: pawl.Limits{
			Rounds: 3,               // steps whose calls are executed; 0 means 20
			Calls:  50,              // in all, nested calls and calls of nested agents included
			Cost:   0.50,            // US dollars
			Time:   2 * time.Minute, // of this Run or Resume
		},
	}
	res, err := agent.Run(context.Background(), llm.User("Find it."))
	fmt.Println(err)
	// end limits
	fmt.Println(res.Limit, res.Spent.Requests)
	// Output:
	// limit: the rounds are used up; the model was asked to answer; raise Limits.Rounds and Resume
	// rounds 4
}

func Example_stopped() {
	model := script.New(script.Call("pay", `{"to":"Anna","euros":7}`))
	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{pay()}, Middleware: []pawl.Middleware{
		pawl.Approve(policy.AskBeforeWrites)}}
	// begin stopped
	res, err := agent.Run(context.Background(), llm.User("Pay Anna 7."))
	var stop *pawl.StopError
	switch {
	case err == nil:
		fmt.Println(res.Text())
	case errors.As(err, &stop) && stop.Reason == pawl.StopPending:
		fmt.Println("may it run?", stop.Result.Pending[0].Call.Name)
	default: // a limit, a cancelled context, a model that repeats itself, a failure
		panic(err)
	}
	fmt.Println(err)
	// end stopped
	// Output:
	// may it run? pay
	// pending: calls wait for an answer: pay; Resume with a Decision for each
}

func Example_observers() {
	model := script.New(script.Call("pay", `{"to":"Anna","euros":7}`), script.Say("Anna has 7. My key is sk-verysecret."))
	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{pay()}}
	// begin observers
	var secrets redact.Redactor
	if err := secrets.Add("sk-verysecret", os.Getenv("OPENAI_API_KEY")); err != nil {
		panic(err)
	}
	var runner pawl.Runner = agent
	// The innermost runner: all others see the redacted events.
	runner = redact.Runner(runner, &secrets)
	// Sync calls the function in step with the run.
	runner = observe.Sync(runner, func(e pawl.Event) {
		if e.Kind == pawl.EventCallCompleted {
			fmt.Println(e.Execution.Call.Name, e.Execution.Outcome)
		}
	})

	// asynchronous, for slow observers
	runner = observe.Async(runner, []pawl.EventKind{pawl.EventRunEnded}, func(e pawl.Event) {

		fmt.Println(e.Result.Stop, e.Result.Spent.Calls)
	})
	for e, err := range runner.Stream(context.Background(), llm.User("Pay Anna 7.")) {
		if err != nil {
			panic(err)
		}
		if e.Kind == pawl.EventRunEnded {
			fmt.Println(e.Result.Text())
		}
	}
	// end observers
	// Unordered output:
	// pay ok
	// answer 1
	// Anna has 7. My key is [redacted].
}
