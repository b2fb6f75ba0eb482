package uistream_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/server/uistream"
)

// An endpoint for useChat in an application.
func ExampleWrite() {
	agent := &pawl.Agent{Name: "clerk", Model: script.New(script.Say("It rains."))}
	mux := http.NewServeMux()
	// begin write
	mux.HandleFunc("POST /api/chat", func(w http.ResponseWriter, r *http.Request) {
		var in uistream.Request
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || len(in.Messages) == 0 {
			http.Error(w, "the body is no request of useChat", http.StatusBadRequest)
			return
		}
		msg, err := in.Messages[len(in.Messages)-1].LLM()
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		// the error of the run or of the connection: an application logs it
		_ = uistream.Write(w, agent.Stream(r.Context(), msg), uistream.Options{})
	})
	// end write

	w := httptest.NewRecorder()
	body := `{"id":"c","messages":[{"id":"u","role":"user","parts":[{"type":"text","text":"How is the weather?"}]}]}`
	mux.ServeHTTP(w, httptest.NewRequest("POST", "/api/chat", strings.NewReader(body)))
	fmt.Println(strings.Contains(w.Body.String(), `{"delta":"It rains","id":"1.0","type":"text-delta"}`))
	// Output: true
}

// An endpoint for AG-UI clients in an application.
func ExampleRunInput() {
	agent := &pawl.Agent{Name: "clerk", Model: script.New(script.Say("It rains."))}
	mux := http.NewServeMux()
	// begin agui
	mux.HandleFunc("POST /agui", func(w http.ResponseWriter, r *http.Request) {
		var in uistream.RunInput
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || len(in.Messages) == 0 {
			http.Error(w, "the body is no RunAgentInput", http.StatusBadRequest)
			return
		}
		msg, err := in.Messages[len(in.Messages)-1].LLM()
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		// an error means that the client has disconnected
		_ = uistream.Write(w, agent.Stream(r.Context(), msg), in.Options())
	})
	// end agui

	w := httptest.NewRecorder()
	body := `{"threadId":"t","runId":"r","protocolVersion":"1.0","messages":[{"id":"u","role":"user","content":"How is the weather?"}]}`
	mux.ServeHTTP(w, httptest.NewRequest("POST", "/agui", strings.NewReader(body)))
	fmt.Println(strings.Contains(w.Body.String(), `{"delta":"It rains","messageId":"r.1","type":"TEXT_MESSAGE_CONTENT"}`))
	// Output: true
}
