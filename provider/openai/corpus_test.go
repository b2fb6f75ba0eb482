package openai_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/test/corpora"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/internal/test/wiretest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
)

var (
	chatReader      = &wiretest.Reader{Read: readChatAnswer, Error: errorText, Call: call, Noted: noted}
	responsesReader = &wiretest.Reader{Read: readResponsesAnswer, Error: errorText, Call: call, Noted: noted}
)

// call is a call in the form of the readers.
func call(c llm.ToolCall) string { return ofWire(c.ID) + " " + spaceless(c.Name, string(c.Args)) }

// ofWire returns an ID, or "" if it has the form that Response.Add gives to calls without one.
func ofWire(id string) string {
	if n, ok := strings.CutPrefix(id, "call_"); ok && len(n) < 4 && strings.Trim(n, "0123456789") == "" {
		return ""
	}
	return id
}

func noted(c pawltest.RecordedCall) string {
	var args string
	if json.Unmarshal(c.Args, &args) != nil && string(c.Args) != "null" {
		args = string(c.Args)
	}
	return ofWire(c.ID) + " " + spaceless(c.Name, args)
}

// spaceless removes the spaces from the arguments of tools that the API defines. Their arguments
// are objects, not strings, and the recorder spaced them. The arguments of functions must be the
// same byte for byte.
func spaceless(name, args string) string {
	var b bytes.Buffer
	if slices.Contains([]string{"local_shell_call", "shell_call", "apply_patch_call"}, name) && json.Compact(&b, []byte(args)) == nil {
		args = b.String()
	}
	return name + " " + args
}

// Every recorded answer decodes to what an independent reader finds in it.
func TestRecordedAnswers(t *testing.T) {
	soak.Sequential(t)
	corpora.Path(t, "provider-traffic")
	t.Run(chatWire.API, func(t *testing.T) { wiretest.Answers(t, chatWire, chatReader, 1000, nil) })
	t.Run(responsesWire.API, func(t *testing.T) {
		wiretest.Answers(t, responsesWire, responsesReader, 400, map[string]string{
			"vercel/ai/packages/xai/src/responses/__fixtures__/xai-x-search-tool.chunks.txt#0":               "the recorder lists xAI's own searches as calls; they are carried out already",
			"vercel/ai/packages/openai/src/responses/__fixtures__/openai-shell-container.1.json#0":           "the recorder lists commands run in the provider's container as calls",
			"vercel/ai/packages/openai/src/responses/__fixtures__/openai-shell-skills.1.chunks.txt#0":        "the recorder lists commands run in the provider's container as calls",
			"vercel/ai/packages/openai/src/responses/__fixtures__/parallel-tool-call-wrapper.1.chunks.txt#0": "the recorder lists the pseudo tool; the adapter lists the calls inside it",
		})
	})
}

// The negative control: the comparison detects wrong readings.
func TestComparisonFindsDifferences(t *testing.T) {
	wiretest.AnswersControl(t, chatWire, chatReader, `{"id":"c","model":"m","choices":[{"index":0,"finish_reason":"tool_calls","message":{"content":"I look.","tool_calls":[
		{"id":"a","type":"function","function":{"name":"look","arguments":"{\"at\": 1}"}}]}}],
		"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":2}}}`,
		pawltest.RecordedCall{ID: "a", Name: "look", Args: []byte(`"{\"at\": 1}"`)}, map[string]func(*llm.Response){
			"spaces": func(r *llm.Response) {
				r.Message.Parts[1] = llm.ToolCall{ID: "a", Name: "look", Args: []byte(`{"at":1}`)}
			},
		})
}
