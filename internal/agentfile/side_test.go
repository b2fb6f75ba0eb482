package agentfile_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/llm"
)

// none is a transport that sends nothing.
type none func(*http.Request)

func (f none) RoundTrip(r *http.Request) (*http.Response, error) {
	f(r)
	return nil, errors.New("nothing is sent")
}

// The side model is the named model, none, or the agent's own.
func TestSideModel(t *testing.T) {
	for _, test := range []struct{ line, name, finding string }{
		{"", "gpt-6.1-terra", ""},
		{"side: {model: {name: openai:gpt-6-luna, key_env: K}}", "gpt-6-luna", ""},
		{"side: {model: none}", "", ""},
		{"side: {model: {name: openai:gpt-6-luna, key_env: OTHER}}", "", "side.model.key_env"},
		{"side: {model: nonsense}", "", "side.model"},
	} {
		file, err := agentfile.Parse("agent.yaml", []byte("agent: a\nmodel: {name: openai:gpt-6.1-terra, key_env: K}\n"+test.line+"\n"), nil)
		var built *agentfile.Built
		sent := ""
		if err == nil {
			built, err = file.Agents[0].Build(t.Context(), &agentfile.Options{HTTP: none(func(r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				sent = string(b)
			}), Getenv: func(name string) string { return map[string]string{"K": "k"}[name] }})
		}
		if test.finding != "" {
			if f := agentfile.FindingsOf(err); len(f) != 1 || f[0].Path != test.finding {
				t.Errorf("%s: got %v", test.line, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", test.line, err)
		}
		defer built.Close()
		if built.Window < 100_000 {
			t.Errorf("%s: window %d", test.line, built.Window)
		}
		if test.name == "" {
			res, err := (&pawl.Agent{Model: built.Side}).Run(t.Context(), llm.User("title?"))
			if err != nil || res.Text() != "" {
				t.Errorf("%s: got %q, %v", test.line, res.Text(), err)
			}
			continue
		}
		_, _ = (&pawl.Agent{Model: built.Side}).Run(t.Context(), llm.User("title?"))
		if !strings.Contains(sent, `"`+test.name+`"`) {
			t.Errorf("%s: sent %s", test.line, sent)
		}
	}
}
