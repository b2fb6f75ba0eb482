package anthropic_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/llm"
)

// The container of the last reply is sent with the options of the request for it: skills need no
// beta header, and stay in a conversation.
func TestContainerOptions(t *testing.T) {
	const skills = `"skills":[{"type":"anthropic","skill_id":"pptx","version":"latest"}]`
	used := llm.Reasoning{Opaque: &llm.Opaque{Provider: "anthropic", Data: json.RawMessage(`{"container":"c_1"}`)}}
	first := []llm.Message{llm.User("Make slides.")}
	later := append(first, llm.Assistant(llm.Text{Text: "Made."}, used), llm.User("More."))
	for _, test := range []struct {
		name, container string // the option; "" means none
		messages        []llm.Message
		want            string // "" means none
	}{
		{"skills", `{` + skills + `}`, first, `"container":{` + skills + `}`},
		{"skills, later", `{` + skills + `}`, later, `"container":{"id":"c_1",` + skills + `}`},
		{"skills with spaces, later", ` { ` + skills + ` } `, later, `"container":{"id":"c_1", ` + skills + ` }`},
		{"skills of another container", `{"id":"c_9",` + skills + `}`, later, `"container":{"id":"c_9",` + skills + `}`},
		{"an empty object", `{}`, later, `"container":{"id":"c_1"}`},
		{"another container", `"c_9"`, later, `"container":"c_9"`},
		{"none", "", later, `"container":"c_1"`},
		{"none yet", "", first, ""},
	} {
		req := &llm.Request{Model: "claude-opus-4-8", Messages: test.messages}
		if test.container != "" {
			req.Settings.Options = map[string]json.RawMessage{"anthropic": json.RawMessage(`{"container":` + test.container + `}`)}
		}
		body := encode(t, req)
		if n := strings.Count(body, `"container"`); n > 1 || (n == 1) != (test.want != "") || !strings.Contains(body, test.want) {
			t.Errorf("%s: got %s, want %s", test.name, body, test.want)
		}
	}
}
