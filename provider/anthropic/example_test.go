package anthropic_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/anthropic"
)

// The server replaces Anthropic's. For Anthropic itself, use nil options and a key in the
// environment.
func Example() {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, `data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`+"\n\n"+
			`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Take an umbrella."}}`+"\n\n"+
			`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}`+"\n\n"+`data: {"type":"message_stop"}`+"\n\n")
	}))
	defer srv.Close()
	carrier := &http.Transport{}
	defer carrier.CloseIdleConnections()

	m := anthropic.New("claude-sonnet-5-5", &anthropic.Options{BaseURL: srv.URL, HTTP: carrier})
	req := &llm.Request{Messages: []llm.Message{llm.User("Do I need an umbrella in Oslo?")}}
	for d, err := range m.Stream(context.Background(), req) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if t, ok := d.Part.(llm.Text); ok {
			fmt.Print(t.Text)
		}
	}
	// Output: Take an umbrella.
}

// EncodeMessages shows the body that would be sent.
func ExampleEncodeMessages() {
	options := json.RawMessage(`{"cache_control":{"type":"ephemeral"}}`)
	body, err := anthropic.EncodeMessages(&llm.Request{Model: "claude-sonnet-5-5", Whole: true,
		Messages: []llm.Message{llm.User("hi")},
		Settings: llm.Settings{MaxTokens: 100, Options: map[string]json.RawMessage{"anthropic": options}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(strings.Replace(string(body), `,"messages"`, ",\n\"messages\"", 1))
	// Output:
	// {"model":"claude-sonnet-5-5","max_tokens":100,
	// "messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],"cache_control":{"type":"ephemeral"}}
}
