package agentfile_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/llm"
)

// The guards of a file ask their model and the moderation endpoint, before the agent's policies.
// The first request of Explain is the agent's.
func TestGuards(t *testing.T) {
	var mu sync.Mutex
	var paths []string
	note := func(who string) {
		mu.Lock()
		defer mu.Unlock()
		paths = append(paths, who)
	}
	seen := func() (all []string) { // who was asked since the last look
		mu.Lock()
		defer mu.Unlock()
		all, paths = paths, nil
		return all
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		answer := `{"action":"allow","text":""}`
		var ask struct{ Model string }
		_ = json.Unmarshal(body, &ask)
		switch {
		case strings.HasSuffix(r.URL.Path, "/moderations"):
			note("moderation")
			fmt.Fprintf(w, `{"results":[{"flagged":%v,"categories":{"violence":true}}]}`, strings.Contains(string(body), "war"))
			return
		case ask.Model == "judge":
			note("judge")
			if !strings.Contains(string(body), "No poems.") {
				t.Errorf("the judge was sent %s", body)
			}
			if strings.Contains(string(body), "poem about") {
				answer = `{"action":"stop","text":"it wants a poem"}`
			}
		default:
			note("agent")
			answer = "fine"
		}
		text, _ := json.Marshal(answer)
		fmt.Fprintf(w, `{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":%s}}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`, text)
	}))
	defer server.Close()
	file, err := agentfile.Parse("agent.yaml", []byte(strings.ReplaceAll(`
agent: a
model: {name: openai-chat:m, base_url: SERVER}
guards:
  - {moderation: {name: openai:omni, base_url: SERVER}, check: [output]}
  - {name: judge, model: {name: openai-chat:judge, base_url: SERVER}, rules: No poems., check: [input]}
`, "SERVER", server.URL+"/v1")), nil)
	if err != nil {
		t.Fatal(err)
	}
	a := file.Agents[0]
	again, err := agentfile.Parse("agent.yaml", a.YAML(), nil)
	if err != nil || string(again.Agents[0].YAML()) != string(a.YAML()) {
		t.Errorf("%v: %s", err, a.YAML())
	}
	built, err := a.Build(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer built.Close()
	x, err := a.Explain(t.Context(), nil, "hello")
	if got := seen(); err != nil || !strings.Contains(string(x.Body), `"m"`) || len(got) != 0 {
		t.Errorf("%+v, %v, %v", x, err, got)
	}
	// The second task is last: its guard stops the agent's request, which may still arrive later.
	for _, test := range []struct{ task, want string }{{"hello", ""}, {"a poem about war", "guard judge stopped the input: it wants a poem"}} {
		res, err := built.Agent.Run(t.Context(), llm.User(test.task))
		if got := seen(); test.want == "" && (err != nil || res.Text() != "fine" || len(got) != 3 || got[2] != "moderation") ||
			test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, %v", test.task, err, got)
		}
	}
}
