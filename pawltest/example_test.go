package pawltest_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/script"
)

// A provider on loopback that answers from a script and refuses invalid requests as a provider
// does.
func Example() {
	provider, err := pawltest.NewSimulator(script.New(script.Say("Rain, all day.")), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer provider.Close()
	ask := func(body string) {
		res, err := http.Post(provider.URL+"/responses", "application/json", strings.NewReader(body))
		if err != nil {
			fmt.Println(err)
			return
		}
		defer res.Body.Close()
		answer, _ := io.ReadAll(res.Body)
		fmt.Println(res.StatusCode, bytes.Contains(answer, []byte("Rain, all day.")))
	}
	ask(`{"model":"any","input":"How is the weather in Oslo?"}`)
	ask(`{"model":"any","input":[{"type":"function_call_output","call_id":"call_1","output":"rain"}]}`)
	for _, r := range provider.Received() {
		fmt.Println(len(r.Request.Messages), r.Violations)
	}
	http.DefaultClient.CloseIdleConnections()
	// Output:
	// 200 true
	// 400 false
	// 1 []
	// 1 [/input/0: a result for "call_1", but no call of the reply before it has that id]
}

func ExampleCheck() {
	for _, v := range pawltest.Check(pawltest.Chat, []byte(`{"messages":[
		{"role":"user","content":"How is the weather in Oslo?"},
		{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"weather","arguments":"{}"}}]},
		{"role":"user","content":"Never mind."}]}`)) {
		fmt.Println(v)
	}
	// Output:
	// /messages/1/tool_calls/0: the call "a" has no result before the next user message
}
