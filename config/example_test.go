package config_test

import (
	"context"
	"fmt"

	"github.com/pawl-go/pawl/config"
	"github.com/pawl-go/pawl/llm"
)

// An agent may be written in Go too: the fields are the keys of a file.
func Example() {
	a := &config.Agent{
		Name:    "analyst",
		Model:   config.Models{{Name: "script:testdata/hello.json"}},
		Tools:   []config.Tool{{Set: "data"}},
		Approve: config.Approve{Deny: []string{"data_transform"}},
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
