package openai_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/openai"
)

// The server replaces any server that speaks Chat Completions. For OpenAI itself, use nil options
// and a key in the environment.
func Example() {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"Take an "}}]}`+"\n\n"+
			`data: {"choices":[{"index":0,"delta":{"content":"umbrella."},"finish_reason":"stop"}]}`+"\n\n"+"data: [DONE]\n\n")
	}))
	defer srv.Close()

	m := openai.NewChat("qwen3:4b", &openai.Options{BaseURL: srv.URL + "/v1"})
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

// EncodeChat shows the body that would be sent.
func ExampleEncodeChat() {
	body, err := openai.EncodeChat(&llm.Request{Model: "gpt-6.1-terra", Whole: true, Messages: []llm.Message{llm.User("hi")}})
	fmt.Println(string(body), err)
	// Output: {"model":"gpt-6.1-terra","messages":[{"role":"user","content":"hi"}]} <nil>
}
