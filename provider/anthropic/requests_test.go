package anthropic_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/internal/test/wiretest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/provider/anthropic"
)

// The wire for the proofs of wiretest.
var messagesWire = &wiretest.Wire{API: pawltest.Anthropic, Provider: "anthropic", Encode: anthropic.EncodeMessages,
	Decode: anthropic.DecodeMessages, Excluded: excluded,
	Open: func(h http.RoundTripper) llm.Model {
		return anthropic.New("claude-sonnet-4-5", &anthropic.Options{BaseURL: anthropic.DefaultBaseURL, Key: "k", HTTP: h, Retries: -1})
	}}

// excluded returns the reason why a recorded exchange does not concern the adapter. "" means that
// it does.
func excluded(e *pawltest.Exchange) string {
	switch {
	case strings.HasSuffix(e.Path, "/count_tokens"):
		return "another endpoint: counts tokens"
	case e.Streaming && strings.HasPrefix(e.Path, "/model/"):
		return "frames of Bedrock's event stream"
	}
	return ""
}

// Every recorded request keeps its meaning when it is read and encoded again.
func TestRecordedRequests(t *testing.T) {
	soak.Sequential(t)
	wiretest.Requests(t, messagesWire, &spelling)
}

// list returns v as a list of objects.
func list(v any) (all []map[string]any) {
	l, _ := v.([]any)
	for _, v := range l {
		if o, ok := v.(map[string]any); ok {
			all = append(all, o)
		}
	}
	return all
}

// blocks returns content that is a string as a list of blocks.
func blocks(v any) any {
	if s, ok := v.(string); ok {
		if strings.TrimSpace(s) == "" {
			return nil
		}
		return []any{map[string]any{"type": "text", "text": s}}
	}
	return v
}

var spelling = wiretest.Spelling{
	Known:    []string{"model", "system", "messages", "tools", "tool_choice", "stream", "max_tokens", "temperature", "top_p", "stop_sequences", "output_config", "output_format"},
	Verbatim: []string{"input_schema", "schema", "input"},
	Dropped: map[string]string{
		"messages[].content[].cache_control*":      "the adapter sets the breakpoints; Options.NoCache leaves them to the caller's options",
		"system[].cache_control*":                  "the same",
		"messages[].content[].content[].type":      "search results and references to tools have no neutral form; a server's own tools give them by themselves",
		"messages[].content[].content[].tool_name": "the same",
		"messages[].content[].file_id":             "files for a container are given to it by the provider's options or by its own tools",
		"messages[].content[].tool.*":              "tools that are added in the middle of a conversation have no neutral form: they are offered, or not",
		"messages[].content[].type":                "the same",
		"messages[].role":                          "turns of one side that follow each other are one; and messages that add tools",
		"tools[].defer_loading":                    "a tool that is loaded by searching is offered by the options, with the search",
		"tools[].input_schema*":                    "schemas go in the API's dialect; what it cannot say is reported, and held to here (internal/dialect)",
		"tools[].strict":                           "pawl checks the arguments itself, against the tool's own schema; strict is the dialect's matter",
	},
	Otherwise: map[string]string{
		"_structured_tool_call": "not all providers take names that begin with _, so it is mapped, and mapped back",
	},
	Options: func(body, options map[string]any) {
		var hosted []any
		for _, tool := range list(body["tools"]) {
			if kind, ok := tool["type"].(string); ok && kind != "custom" {
				hosted = append(hosted, tool)
			}
		}
		if hosted != nil {
			options["tools"] = hosted
		}
	},
	Spell: func(body map[string]any) {
		if body["stream"] == false {
			delete(body, "stream")
		}
		if c, ok := body["tool_choice"].(map[string]any); ok && c["disable_parallel_tool_use"] == false {
			delete(c, "disable_parallel_tool_use")
		}
		if c, ok := body["tool_choice"].(map[string]any); ok && (c["type"] == "auto" && len(c) == 1 || len(list(body["tools"])) == 0) {
			delete(body, "tool_choice")
		}
		for _, tool := range list(body["tools"]) {
			if tool["type"] == "custom" {
				delete(tool, "type")
			}
			if tool["description"] == "" {
				delete(tool, "description")
			}
		}
		body["system"] = blocks(body["system"])
		for _, m := range list(body["messages"]) {
			m["content"] = blocks(m["content"])
			for _, b := range list(m["content"]) {
				if b["type"] == "tool_result" {
					b["content"] = blocks(b["content"])
					if b["is_error"] == false {
						delete(b, "is_error")
					}
				}
			}
		}
	},
}

var streams = []string{
	stream("tool_use", opens(0, `{"type":"thinking","thinking":""}`), adds(0, `{"type":"thinking_delta","thinking":"Hm."}`), adds(0, `{"type":"signature_delta","signature":"s=="}`), closes(0),
		opens(1, `{"type":"text","text":""}`), adds(1, `{"type":"text_delta","text":"Ä \u00e4\ud83d\ude00"}`), closes(1), `{"type":"ping"}`,
		opens(2, `{"type":"tool_use","id":"a","name":"look","input":{}}`), adds(2, `{"type":"input_json_delta","partial_json":""}`), adds(2, `{"type":"input_json_delta","partial_json":"{\"at\":"}`),
		adds(2, `{"type":"input_json_delta","partial_json":"1}"}`), closes(2), opens(3, `{"type":"tool_use","id":"b","name":"look","input":{}}`), closes(3)),
	stream("max_tokens", opens(0, `{"type":"tool_use","id":"a","name":"look","input":{}}`), adds(0, `{"type":"input_json_delta","partial_json":"{\"at\":"}`)),
	stream("end_turn", opens(0, `{"type":"text","text":""}`), opens(1, `{"type":"text","text":""}`), adds(0, `{"type":"text_delta","text":"a"}`), adds(0, `{"type":"text_delta","text":"\u00e4 \"}}"}`),
		adds(1, `{"type":"text_delta","text":"b"}`), adds(0, `{"type":"text_delta","text":""}`), adds(0, `{"type":"text_delta","text":"c","citation":{"n":1}}`), adds(0, `{"type":"text_delta","text":"e","citation":{"n":1}}`),
		adds(0, `{"type":"text_delta","text":null}`), adds(0, `{"type":"text_delta","text":{"a":"b"}}`), adds(0, `{"type":"text_delta","text":"g"}`), closes(0), closes(1),
		opens(2, `{"type":"tool_use","id":"a","name":"look","input":{}}`), adds(2, `{"type":"input_json_delta","partial_json":"{"}`), adds(2, `{"type":"input_json_delta","partial_json":{"at":1}}`), closes(2),
		opens(2, `{"type":"text","text":""}`), adds(2, `{"type":"text_delta","text":"h"}`), adds(2, `{"type":"input_json_delta","partial_json":"i"}`), adds(2, `{"type":"text_delta","text":"j"}`), closes(2)),
	stream("end_turn", opens(0, `{"type":"text","text":""}`), adds(0, `{"type":"text_delta","text":"a"}`), closes(0), adds(0, `{"type":"text_delta","text":"b"}`)),
	events(begin, opens(0, `{"type":"tool_use","id":"a","name":"look","input":{}}`), adds(0, `{"type":"input_json_delta","partial_json":"{}"}`), closes(0), `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`),
}

// A stream is the same reply in all fragmentations. A cut stream is that reply or an error, and
// has no additional call. A stream with an event lost or doubled has the same calls, or is an
// error. The arguments of
// a call are stated once, so the stream cannot show all losses.
func TestStreamsInPieces(t *testing.T) {
	soak.Sequential(t)
	wiretest.Streams(t, messagesWire, streams...)
	t.Run("lost", func(t *testing.T) { wiretest.Lost(t, messagesWire, messagesFrames, "anthropic-wire.md", "losses") })
}

func TestStreamsInPiecesFindsFaults(t *testing.T) {
	wiretest.StreamsControl(t, messagesWire, streams[0])
}

func TestRequestsThatLoseAreFound(t *testing.T) {
	const request = `{"model":"claude-opus-4-8","max_tokens":9,"system":"s","messages":[{"role":"user","content":"u"},
		{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s=="},{"type":"tool_use","id":"toolu_1","name":"f","input":{"x":1}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"42","is_error":true}]}],
		"tools":[{"name":"f","input_schema":{"type":"object","properties":{}}},{"type":"web_search_20250305","name":"web_search"}],"metadata":{"user_id":"u"}}`
	for _, drop := range []string{`,"signature":"s=="`, `,"is_error":true`, `,\{"name":"web_search"[^}]*\}`, `,"metadata":\{"user_id":"u"\}`, `"x":1`} {
		wiretest.RequestsControl(t, messagesWire, &spelling, request, drop)
	}
}
