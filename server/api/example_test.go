package api_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/server/api"
)

// The response to GET /v1/runs/invoice-7.
const response = `{"id":"invoice-7","agent":"clerk","state":"over","stop":"answer","answer":"It is paid."}`

func Example() {
	var run api.Run
	if err := json.Unmarshal([]byte(response), &run); err != nil {
		panic(err)
	}
	fmt.Println(run.State, run.Answer)
	// Output: over It is paid.
}

func ExampleReadTokens() {
	tokens, err := api.ReadTokens(strings.NewReader(`[{"name":"ci","token":"correct-horse-battery","scopes":["run","read"]}]`))
	fmt.Println(tokens[0].Name, tokens[0].Scopes, err)

	_, err = api.ReadTokens(strings.NewReader(`[{"name":"ci","token":"short","scopes":["run"]}]`))
	fmt.Println(err)
	// Output:
	// ci [run read] <nil>
	// token 1 ("ci"): the token has less than 16 bytes: it could be guessed
}
