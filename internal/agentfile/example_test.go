package agentfile_test

import (
	"context"
	"fmt"

	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/llm"
)

// An agent may be written in Go too: the fields are the keys of a file.
func Example() {
	a := &agentfile.Agent{
		Name:    "analyst",
		Model:   agentfile.Models{{Name: "script:testdata/hello.json"}},
		Tools:   []agentfile.Tool{{Set: "data"}},
		Approve: agentfile.Approve{Deny: []string{"data_transform"}},
	}
	built, err := a.Build(context.Background(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer built.Close()
	res, err := built.Agent.Run(context.Background(), llm.User("Who are you?"))
	fmt.Println(res.Text(), err)
	// Output: The analyst. <nil>
}
