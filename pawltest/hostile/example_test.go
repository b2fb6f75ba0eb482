package hostile_test

import (
	"context"
	"fmt"
	"regexp"

	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/pawltest/hostile"
)

// Play a few behaviours to pawl over one API. To test another runtime, replace hostile.Agent with
// it, or point it at a Server.
func Example() {
	rows, err := hostile.Play(context.Background(), hostile.Agent(adapters), hostile.Behaviours(), &hostile.PlayOptions{
		APIs: []string{pawltest.Chat}, Only: regexp.MustCompile("^(unknown-tool|args-cut|tool-panics)$")})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range rows {
		fmt.Printf("%-14s %-56s passed: %v\n", r.ID, r.Title, r.Passed())
	}
	// Output:
	// unknown-tool   calls a tool that does not exist                         passed: true
	// args-cut       stops in the middle of the arguments, and says that it is done passed: true
	// tool-panics    calls a tool that panics                                 passed: true
}
