package guide

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store/sqlite"
)

type Bill struct {
	Number int `json:"number"`
}

// process stands for one life of the program: it opens the journal and runs the agent.
func process(path string, msgs ...llm.Message) (*pawl.Result, error) {
	db, err := sqlite.Open(path, nil)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	pay := pawl.Func("pay", "Pays a bill.", func(_ context.Context, b Bill) (string, error) {
		fmt.Println("paying bill", b.Number)
		return "paid", nil
	})
	agent := &pawl.Agent{
		Model: script.New(script.Loop(script.Func(func(req *llm.Request) script.Turn {
			if len(script.Results(req)) == 0 {
				return script.Call("pay", Bill{7})
			}
			return script.Say("Bill 7 is paid.")
		}))),
		Tools:      []pawl.Toolset{pay},
		Middleware: []pawl.Middleware{pawl.Approve(policy.AskBeforeWrites)},
	}
	engine := &durable.Engine{Journal: db}
	return engine.Runner("bill-7", agent).Run(context.Background(), msgs...)
}

func Example_durable() {
	dir, err := os.MkdirTemp("", "durable")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "pawl.db")

	_, err = process(path, llm.User("Pay bill 7."))
	var stop *pawl.StopError
	if !errors.As(err, &stop) {
		panic(err)
	}
	fmt.Println(err)

	// A week later the program starts again, with the answer of a person.
	res, err := process(path, llm.DecisionMessage(stop.Result.Pending[0].Approve("anna")))
	if err != nil {
		panic(err)
	}
	fmt.Println(res.Text())
	// The run is complete: another start returns its result, and pays nothing.
	if res, err = process(path); err != nil {
		panic(err)
	}
	fmt.Println(res.Text())

	// Output:
	// pending: calls wait for an answer: pay; Resume with a Decision for each
	// paying bill 7
	// Bill 7 is paid.
	// Bill 7 is paid.
}
