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
		// an error means that the page was closed
		_ = uistream.Write(w, agent.Stream(r.Context(), msg), uistream.Options{})
	})
	// end write

	w := httptest.NewRecorder()
	body := `{"id":"c","messages":[{"id":"u","role":"user","parts":[{"type":"text","text":"How is the weather?"}]}]}`
	mux.ServeHTTP(w, httptest.NewRequest("POST", "/api/chat", strings.NewReader(body)))
	fmt.Println(strings.Contains(w.Body.String(), `{"delta":"It rains","id":"1.0","type":"text-delta"}`))
	// Output: true
}
