package mcp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/mcp"
	"github.com/pawl-go/pawl/script"
)

// The tools of a server are called like any others.
func Example() {
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return testServer() },
		&sdk.StreamableHTTPOptions{Stateless: true}))
	defer web.Close()

	server, err := mcp.New(mcp.Server{Name: "demo", URL: web.URL, Include: []string{"echo"}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	model := script.New(
		script.Call("demo_echo", `{"text":"over there"}`),
		script.Func(func(req *llm.Request) script.Turn { return script.Say("It says: " + script.Results(req)[0].Text()) }),
	)
	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{server}}
	res, err := agent.Run(context.Background(), llm.User("What does it say?"))
	fmt.Println(res.Text(), err)
	// Output: It says: over there <nil>
}
