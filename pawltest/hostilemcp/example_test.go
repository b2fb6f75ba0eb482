package hostilemcp_test

import (
	"context"
	"fmt"

	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/pawltest/hostilemcp"
)

func Example() {
	b := hostilemcp.Find(hostilemcp.Behaviours(), "sessions-expired")
	client := hostilemcp.Agent(pawltest.Chat, open) // any function that calls the tool
	rows, err := hostilemcp.Play(context.Background(), client, []hostilemcp.Behaviour{*b})
	if err != nil {
		panic(err)
	}
	fmt.Println("the server", b.Title)
	fmt.Println("wrong:", rows[0].Wrong)
	// Output:
	// the server forgets the session between two calls
	// wrong: []
}
