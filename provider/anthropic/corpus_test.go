package anthropic_test

import (
	"encoding/json"
	"testing"

	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/internal/test/wiretest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
)

var reader = &wiretest.Reader{Read: read, Error: errorText,
	Call:  func(c llm.ToolCall) string { return c.ID + " " + c.Name + " " + wiretest.Canonical(c.Args) },
	Noted: func(c pawltest.RecordedCall) string { return c.ID + " " + c.Name + " " + wiretest.Canonical(c.Args) },
	Kept: func(p llm.Part) []string {
		r, ok := p.(llm.Reasoning)
		if !ok || r.Opaque == nil {
			return nil
		}
		var b struct{ Type, Container string }
		if err := json.Unmarshal(r.Opaque.Data, &b); err != nil {
			return []string{"no JSON: " + string(r.Opaque.Data)}
		}
		if b.Container != "" {
			b.Type = "container " + b.Container
		}
		return []string{b.Type}
	}}

// Every recorded answer decodes to what an independent reader finds in it.
func TestRecordedAnswers(t *testing.T) {
	soak.Sequential(t)
	wiretest.Answers(t, messagesWire, reader, 300, map[string]string{
		"vercel/ai/packages/anthropic/src/__fixtures__/anthropic-programmatic-tool-calling.1.json#0": "the recorder lists calls that code in the server's container made, and whose results it has",
	})
}

// The negative control: the comparison detects wrong readings.
func TestComparisonFindsDifferences(t *testing.T) {
	wiretest.AnswersControl(t, messagesWire, reader, `{"type":"message","id":"m","model":"c","stop_reason":"tool_use","content":[
		{"type":"thinking","thinking":"Hm.","signature":"s"},{"type":"text","text":"I look."},{"type":"tool_use","id":"a","name":"look","input":{"at": 1}}],
		"usage":{"input_tokens":10,"output_tokens":5,"cache_read_input_tokens":4,"cache_creation_input_tokens":3,"output_tokens_details":{"thinking_tokens":2}}}`,
		pawltest.RecordedCall{ID: "a", Name: "look", Args: []byte(`{"at":1}`)}, map[string]func(*llm.Response){
			"reasoning":   func(r *llm.Response) { r.Message.Parts[0] = llm.Reasoning{Text: "Hm!"} },
			"signature":   func(r *llm.Response) { r.Message.Parts[0] = llm.Reasoning{Text: "Hm."} },
			"cache write": func(r *llm.Response) { r.Usage.CacheWrite = 0 },
		})
}
