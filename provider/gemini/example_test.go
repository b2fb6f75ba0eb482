package gemini_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/gemini"
)

// The server replaces Google's. For Gemini itself, use nil options and a key in the environment.
func Example() {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, `data: {"candidates":[{"content":{"role":"model","parts":[{"text":"Take an "}]}}]}`+"\r\n\r\n"+
			`data: {"candidates":[{"content":{"role":"model","parts":[{"text":"umbrella."}]},"finishReason":"STOP"}]}`+"\r\n\r\n")
	}))
	defer srv.Close()

	m := gemini.New("gemini-3.8-flash", &gemini.Options{BaseURL: srv.URL})
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

// EncodeGenerate shows the body that would be sent. The name of the model is part of the address.
func ExampleEncodeGenerate() {
	body, err := gemini.EncodeGenerate(&llm.Request{Model: "gemini-3.8-flash",
		Messages: []llm.Message{llm.System("Be brief."), llm.User("hi")}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(strings.Replace(string(body), `,"contents"`, ",\n\"contents\"", 1))
	// Output:
	// {"systemInstruction":{"parts":[{"text":"Be brief."}]},
	// "contents":[{"role":"user","parts":[{"text":"hi"}]}]}
}
