package redact_test

import (
	"context"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/script"
)

// A Redactor replaces secrets in any form that it knows of.
func Example() {
	var r redact.Redactor
	if err := r.Add("sk-123456789"); err != nil {
		fmt.Println(err)
	}
	fmt.Println(r.String("the key is sk-123456789"))
	// Output:
	// the key is [redacted]
}
func ExampleRunner() {
	a := &pawl.Agent{Model: script.New(script.Say("the key is sk-12345678, keep it"))}
	var secrets redact.Redactor
	secrets.Add("sk-12345678")
	for e, err := range redact.Runner(a, &secrets).Stream(context.Background(), llm.User("what is the key?")) {
		if err == nil && e.Kind == pawl.EventRunEnded {
			fmt.Println(e.Result.Text())
		}
	}
	// Output: the key is [redacted], keep it
}
