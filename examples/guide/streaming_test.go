package guide

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// chat streams the events of a run to a browser as server-sent events.
func chat(agent *pawl.Agent) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for e, err := range agent.Stream(r.Context(), llm.User(r.FormValue("q"))) {
			if err != nil {
				return // run_ended has the reason
			}
			switch e.Kind {
			case pawl.EventText, pawl.EventCallReady, pawl.EventCallCompleted, pawl.EventRunEnded:
				data, err := json.Marshal(e)
				if err != nil {
					return
				}
				fmt.Fprintf(w, "event: %s\ndata: %s\n\n", e.Kind, data)
				_ = http.NewResponseController(w).Flush()
			}
		}
	}
}

func Example_streaming() {
	model := script.New(script.Loop(script.Say("Rain until noon.")))
	server := httptest.NewServer(chat(&pawl.Agent{Model: model})) // or http.ListenAndServe
	defer server.Close()

	res, err := http.Get(server.URL + "?q=How+is+the+weather")
	if err != nil {
		panic(err)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	fmt.Printf("%.127s…\n", body)

	// Output:
	// event: text
	// data: {"event":"text","run":"run","step":1,"seq":4,"index":0,"text":"Rain unt"}
	//
	// event: text
	// data: {"event":"text",…
}
