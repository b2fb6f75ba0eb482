package provider_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawl-go/pawl/llm"
)

// No body has an escape that is half of a UTF-16 pair, neither itself nor in the arguments that it
// has as a string: APIs refuse it, and with it each later request of the conversation. The
// conversation keeps what it has, and whole pairs stay.
func TestHalvesInRequests(t *testing.T) {
	const (
		alone = `\ud83d`
		low   = `x\uDE00`
		pair  = `\ud83d\ude00`
		plain = `\\ud83d` // six characters
	)
	for _, text := range []string{alone, low, pair, plain, alone + pair + alone, `\ud83d\u0041`, plain + low, `\\` + alone} {
		quoted := `"` + text + `"`
		args := []byte(`{"s":` + quoted + `,` + quoted + `:[` + quoted + `]}`)
		schema := json.RawMessage(`{"type":"object","properties":{"s":{"type":"string","description":` + quoted + `}}}`)
		for name, wire := range bodyWires {
			req := &llm.Request{
				Model: "m",
				Tools: []*llm.ToolSpec{{Name: "look", Description: "Looks.", Input: schema}},
				Messages: []llm.Message{
					llm.User("look"),
					llm.Assistant(llm.ToolCall{ID: "1", Name: "look", Args: args}),
					llm.Results(llm.ToolResult{CallID: "1", Parts: []llm.Part{llm.Text{Text: string(args)}}}),
				},
			}
			before := string(args)
			body, err := wire.encode(req)
			if err != nil {
				t.Errorf("%s: %s: %v", name, text, err)
				continue
			}
			if string(args) != before {
				t.Errorf("%s: %s: the conversation has changed to %s", name, text, args)
			}
			if !jsontext.Value(body).IsValid() {
				t.Errorf("%s: %s: the body is refused: %s", name, text, body)
			}

			sent := argumentsIn(t, body)
			if !jsontext.Value(sent).IsValid() {
				t.Errorf("%s: %s: the arguments are refused: %s", name, text, sent)
			}
			want := whole(t, text)
			var got struct{ S string }
			if err := json.Unmarshal(sent, &got); err != nil || got.S != want {
				t.Errorf("%s: %s: got %q, %v; want %q", name, text, got.S, err, want)
			}
		}
	}
}

// whole returns the string that text is in JSON, with U+FFFD for each half.
func whole(t *testing.T, text string) string {
	t.Helper()
	var s string
	if err := json.Unmarshal([]byte(`"`+text+`"`), &s); err != nil {
		t.Fatal(err)
	}
	return string(utf16.Decode(utf16.Encode([]rune(s))))
}

// argumentsIn returns the arguments of the call in a body, as the server reads them.
func argumentsIn(t *testing.T, body []byte) []byte {
	t.Helper()
	var found []byte
	var search func(v any)
	search = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, inner := range v {
				value, _ := json.Marshal(inner)
				text, isText := inner.(string)
				_, isObject := inner.(map[string]any)
				switch {
				case key == "arguments" && isText:
					found = []byte(text)
				case (key == "input" || key == "args") && isObject:
					found = value
				default:
					search(inner)
				}
			}
		case []any:
			for _, inner := range v {
				search(inner)
			}
		}
	}
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatal(err)
	}
	search(v)
	if !strings.HasPrefix(string(found), "{") {
		t.Fatalf("no arguments in %s", body)
	}
	return found
}
