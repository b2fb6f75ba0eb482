package agentfile_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/internal/test/tooltest"
	"github.com/pawl-go/pawl/llm"
)

// A server that repeats the header of its request does not bring the secret in it to the model, nor
// into the record of the run, in plain and in base64, also as the last result of a run. A header
// without a variable is no secret, and is the control.
func TestEchoedSecrets(t *testing.T) {
	const secret = "sk-7c3f0a-very-secret"
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := r.Header.Get("Authorization") + r.Header.Get("X-Plain")
		fmt.Fprintf(w, "%s %s", got, base64.StdEncoding.EncodeToString([]byte(got)))
	}))
	defer web.Close()
	address := strings.TrimPrefix(web.URL, "http://")

	for _, terminal := range []string{"", "terminal_tools: [echo]\n"} {
		dir := t.TempDir()
		write := func(name, text string) {
			tooltest.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
		}
		write("turns.json", `{"turns":[{"message":{"role":"assistant","parts":[{"type":"tool_call","id":"1","name":"echo","args":{}}]},"finish":"tool_calls"},
{"message":{"role":"assistant","parts":[{"type":"text","text":"Done."}]},"finish":"stop"}]}`)
		write("agent.yaml", "agent: helper\nmodel: script:turns.json\nhttp_allow: [\""+address+"\"]\n"+terminal+
			"tools: [{http: {name: echo, description: Repeats., method: GET, url: \""+web.URL+"\", "+
			"headers: {Authorization: \"Bearer ${HTTP_TOK}\", X-Plain: \" plain-value\"}}}]\n")
		env := func(name string) string {
			if name == "HTTP_TOK" {
				return secret
			}
			return environment(name)
		}

		f, err := agentfile.Load(filepath.Join(dir, "agent.yaml"), &agentfile.LoadOptions{Getenv: env})
		tooltest.Must(t, err)
		built, err := f.Agents[0].Build(t.Context(), &agentfile.Options{Getenv: env})
		tooltest.Must(t, err)
		res, err := built.Agent.Run(t.Context(), llm.User("Go."))
		tooltest.Must(t, err)
		built.Close()
		record, err := json.Marshal(res)
		tooltest.Must(t, err)

		for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte("Bearer " + secret))[:24]} {
			if strings.Contains(string(record), form) {
				t.Errorf("terminal %t: the record has %s: %s", terminal != "", form, record)
			}
		}
		if !strings.Contains(string(record), "plain-value") || !strings.Contains(string(record), "[redacted]") {
			t.Errorf("terminal %t: the record has no echo: %s", terminal != "", record)
		}
	}
}
