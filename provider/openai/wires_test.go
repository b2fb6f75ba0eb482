package openai_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/internal/test/wiretest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/provider/openai"
)

// The two wires for the proofs of wiretest.
var (
	chatWire = &wiretest.Wire{API: pawltest.Chat, Provider: "openai-chat", Encode: openai.EncodeChat,
		Decode: openai.DecodeChat, Excluded: excluded,
		Open: func(h http.RoundTripper) llm.Model { return openai.NewChat("m", known(h)) }}
	responsesWire = &wiretest.Wire{API: pawltest.Responses, Provider: "openai", Encode: openai.EncodeResponses,
		Decode: openai.DecodeResponses, Excluded: excluded,
		Open: func(h http.RoundTripper) llm.Model { return openai.New("m", known(h)) }}
)

func known(h http.RoundTripper) *openai.Options {
	return &openai.Options{BaseURL: openai.DefaultBaseURL, Key: "k", HTTP: h, Retries: -1}
}

// excluded returns the reason why a recorded exchange does not concern the adapter. "" means that
// it does.
func excluded(e *pawltest.Exchange) string {
	switch {
	case strings.HasSuffix(e.Path, "/input_tokens"):
		return "another endpoint: counts tokens"
	case strings.HasSuffix(e.Path, "/compact"):
		return "another endpoint: compacts a conversation"
	case strings.Contains(e.Path, "/bin/content-type/"):
		return "not the API: a server that echoes requests"
	}
	return ""
}

const look = `{"index":0,"id":"a","type":"function","function":{"name":"look","arguments":"{\"at\":"}}`

var (
	chatStreams = []string{
		deltas("tool_calls", `{"role":"assistant","content":"I look."}`, `{"tool_calls":[`+look+`]}`, `{"tool_calls":[{"index":0,"function":{"arguments":"1,\"to\":\"x\"}"}}]}`,
			`{"tool_calls":[{"index":1,"id":"b","function":{"name":"look","arguments":"{\"at\":2}"}}]}`),
		deltas("stop", `{"reasoning_content":"Hm."}`, `{"content":"Ä"}`, `{"content":" \u00e4\ud83d\ude00."}`),
		deltas("tool_calls", `{"tool_calls":[{"id":"a","function":{"name":"look","arguments":"{}"}}]}`, `{"tool_calls":[{"id":"b","function":{"name":"look","arguments":""}}]}`, `{"tool_calls":[{"function":{"arguments":"{\"at\":1}"}}]}`),
		deltas("length", `{"content":"I"}`, `{"tool_calls":[`+look+`]}`),
		": PROCESSING\n\n" + deltas("function_call", `{"function_call":{"name":"look","arguments":"{\"at\":"}}`, `{"function_call":{"arguments":"1}"}}`),
	}
	responsesStreams = []string{
		events(`{"type":"response.created","response":{"id":"r","status":"in_progress","output":[]}}`,
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs","summary":[]}}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs","summary":[],"encrypted_content":"gA="}}`,
			`{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":"fc","call_id":"a","name":"look","arguments":""}}`,
			`{"type":"response.function_call_arguments.delta","output_index":1,"delta":"{\"at\":"}`,
			`{"type":"response.function_call_arguments.delta","output_index":1,"delta":"1}"}`,
			`{"type":"response.function_call_arguments.done","output_index":1,"arguments":"{\"at\":1}"}`,
			`{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","id":"fc","call_id":"a","name":"look","arguments":"{\"at\":1}"}}`,
			`{"type":"response.completed","response":{"id":"r","status":"completed","output":[],"usage":{"input_tokens":3,"output_tokens":4}}}`),
		events(`{"type":"response.output_item.added","output_index":0,"item":{"type":"message"}}`, `{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"Ä"}`,
			`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]}}`),
	}
)

// A stream is the same reply in all fragmentations. A cut stream is that reply or an error, and
// has no additional call. A stream with an event lost or doubled has the same calls, or is an
// error; Chat Completions states arguments once, so it cannot show all losses.
func TestStreamsInPieces(t *testing.T) {
	soak.Sequential(t)
	t.Run(chatWire.API, func(t *testing.T) { wiretest.Streams(t, chatWire, chatStreams...) })
	t.Run(chatWire.API+"/lost", func(t *testing.T) {
		wiretest.Lost(t, chatWire, chatFrames, "openai-wire.md", "losses of Chat Completions")
	})
	t.Run(responsesWire.API, func(t *testing.T) { wiretest.Streams(t, responsesWire, responsesStreams...) })
	t.Run(responsesWire.API+"/lost", func(t *testing.T) {
		wiretest.Lost(t, responsesWire, responsesFrames, "openai-wire.md", "losses of Responses")
	})
}

func TestStreamsInPiecesFindsFaults(t *testing.T) {
	wiretest.StreamsControl(t, chatWire, chatStreams[0])
	wiretest.StreamsControl(t, responsesWire, responsesStreams[0])
}
