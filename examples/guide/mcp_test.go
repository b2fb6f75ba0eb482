package guide

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/mcp"
	"github.com/pawl-go/pawl/script"
)

type Sum struct{ A, B int }

func Example_mcp() {
	ctx := context.Background()
	// An MCP server with a Go function.
	add := pawl.Func("add", "Adds two numbers.", func(_ context.Context, s Sum) (int, error) { return s.A + s.B, nil })
	add.Effect = pawl.EffectPure
	service := &mcp.Service{Name: "sums", Version: "1", Tools: []pawl.Toolset{add}}
	handler, err := service.Handler(ctx, nil)
	if err != nil {
		panic(err)
	}
	web := httptest.NewServer(handler)
	defer web.Close()

	// An agent that uses it.
	sums, err := mcp.New(mcp.Server{Name: "sums", URL: web.URL, Trust: true}, nil)
	if err != nil {
		panic(err)
	}
	defer sums.Close()
	agent := &pawl.Agent{Tools: []pawl.Toolset{sums},
		Model: script.New(script.Call("sums_add", Sum{2, 3}), script.Say("It is 5."))}
	res, err := agent.Run(ctx, llm.User("What is 2 and 3?"))
	if err != nil {
		panic(err)
	}
	fmt.Println(res.Steps[0].Executions[0].Result.Text())
	fmt.Println(res.Text())

	// Output:
	// 5
	// It is 5.
}
