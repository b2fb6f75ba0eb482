// Package plays has first replies of providers that are complete or not, in the words of each API,
// and a provider that plays them. The tests of the adapters, of the command and of the server ask
// what comes of them.
package plays

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"github.com/pawl-go/pawl/pawltest"
)

// Play is a first reply of a provider, and what must come of it.
type Play struct {
	API    string // as pawltest names it
	Word   string // that ends the reply; for Responses the status, or status:reason
	Vendor bool   // at the provider's own host only; other servers may use any words
	// Complete means that the provider says that the reply is complete: its call is executed, and
	// its text is the answer.
	Complete bool
	// Continued means that the provider continues a text when it is asked to.
	Continued bool
}

// All are the endings that providers document, and some that they may document tomorrow. The
// complete ones are the controls.
var All = []Play{
	{API: pawltest.Responses, Word: "incomplete:max_messages"},
	{API: pawltest.Responses, Word: "incomplete:steered"},
	{API: pawltest.Responses, Word: "incomplete"},
	{API: pawltest.Responses, Word: "incomplete:tomorrow"},
	{API: pawltest.Responses, Word: "incomplete:max_output_tokens"},
	{API: pawltest.Responses, Word: "incomplete:content_filter"},
	{API: pawltest.Responses, Word: "completed:max_output_tokens"},
	{API: pawltest.Responses, Word: "tomorrow"},
	{API: pawltest.Responses, Word: "failed"},
	{API: pawltest.Responses, Word: "cancelled"},
	{API: pawltest.Responses, Word: "completed", Complete: true},

	{API: pawltest.Gemini, Word: "CONTINUATION", Continued: true},
	{API: pawltest.Gemini, Word: "OTHER"},
	{API: pawltest.Gemini, Word: "LANGUAGE"},
	{API: pawltest.Gemini, Word: "TOMORROW"},
	{API: pawltest.Gemini, Word: "MAX_TOKENS"},
	{API: pawltest.Gemini, Word: "SAFETY"},
	{API: pawltest.Gemini, Word: "STOP", Complete: true},

	{API: pawltest.Anthropic, Word: "compaction"},
	{API: pawltest.Anthropic, Word: "pause_turn"},
	{API: pawltest.Anthropic, Word: "tomorrow"},
	{API: pawltest.Anthropic, Word: "max_tokens"},
	{API: pawltest.Anthropic, Word: "model_context_window_exceeded"},
	{API: pawltest.Anthropic, Word: "refusal"},
	{API: pawltest.Anthropic, Word: "end_turn", Complete: true},

	{API: pawltest.Chat, Word: "tomorrow", Vendor: true},
	{API: pawltest.Chat, Word: "length"},
	{API: pawltest.Chat, Word: "content_filter"},
	{API: pawltest.Chat, Word: "stop", Complete: true},
	{API: pawltest.Chat, Word: "yesterday", Complete: true}, // of another server
}

// The call and the text of the first reply of a play, and the text of all later replies.
const (
	Tool = "file_write"
	Path = "out.txt"
	Text = "The first half"
	Done = "done"

	playArgs = `{"path":"` + Path + `","content":"half of the te"}`
)

// Stage is a provider that plays. A request names the play, because its conversation has a text
// that Stage.Line returns. It is safe for concurrent use.
type Stage struct {
	mu   sync.Mutex
	seen map[string]int // requests by line
}

// Line returns the user's text for a play: the first reply has a call or a text, and the provider
// streams its replies or sends them whole. name is different for each run.
func (p Play) Line(call, stream bool, name string) string {
	form := map[bool]string{true: "call", false: "text"}[call]
	if !stream {
		form += " whole"
	}
	return fmt.Sprintf("Write. <play %s %s %s %s>", p.API, p.Word, name, form)
}

var playLine = regexp.MustCompile(`<play (\S+) (\S+) (\S+) (call|text)( whole)?>`)

// Requests returns the number of requests of a play.
func (s *Stage) Requests(line string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[playLine.FindString(line)]
}

// RoundTrip answers a request without a network.
func (s *Stage) RoundTrip(r *http.Request) (*http.Response, error) {
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	reply, kind := s.answer(string(body))
	header := http.Header{"Content-Type": {kind}}
	return &http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(strings.NewReader(reply)),
		ContentLength: int64(len(reply))}, nil
}

// ServeHTTP answers a request over a network.
func (s *Stage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	reply, kind := s.answer(string(body))
	w.Header().Set("Content-Type", kind)
	io.WriteString(w, reply)
}

// answer returns the reply to a request and its media type.
func (s *Stage) answer(body string) (reply, kind string) {
	m := playLine.FindStringSubmatch(strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(body))
	if m == nil {
		return `{"error":{"message":"the request names no play"}}`, "application/json"
	}
	s.mu.Lock()
	if s.seen == nil {
		s.seen = map[string]int{}
	}
	s.seen[m[0]]++
	n := s.seen[m[0]]
	s.mu.Unlock()

	p := Play{API: m[1], Word: m[2]}
	call := m[4] == "call"
	text := Text
	if n > 1 {
		p.Word = map[string]string{pawltest.Responses: "completed", pawltest.Gemini: "STOP", pawltest.Anthropic: "end_turn",
			pawltest.Chat: "stop"}[p.API]
		call = false
		text = Done
	}
	if m[5] != "" {
		return p.whole(call, text), "application/json"
	}
	return p.stream(call, text), "text/event-stream"
}

// whole returns a reply as one body.
func (p Play) whole(call bool, text string) string {
	switch p.API {
	case pawltest.Chat:
		message := `"content":` + quote(text)
		if call {
			message = `"content":null,"tool_calls":[` + chatPlayCall() + `]`
		}
		return `{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant",` + message +
			`},"finish_reason":` + quote(p.Word) + `}],"usage":{"prompt_tokens":5,"completion_tokens":5,"total_tokens":10}}`
	case pawltest.Responses:
		return p.response(call, text)
	case pawltest.Anthropic:
		block := `{"type":"text","text":` + quote(text) + `}`
		if call {
			block = `{"type":"tool_use","id":"t1","name":"` + Tool + `","input":` + playArgs + `}`
		}
		return `{"id":"m","type":"message","role":"assistant","model":"x","content":[` + block + `],"stop_reason":` + quote(p.Word) +
			`,"usage":{"input_tokens":5,"output_tokens":5}}`
	}
	part := `{"text":` + quote(text) + `}`
	if call {
		part = `{"functionCall":{"name":"` + Tool + `","args":` + playArgs + `}}`
	}
	return `{"candidates":[{"content":{"role":"model","parts":[` + part + `]},"finishReason":` + quote(p.Word) +
		`,"index":0,"continuationToken":"b3BhcXVl"}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":5,"totalTokenCount":10}}`
}

// response returns a response object of the Responses API.
func (p Play) response(call bool, text string) string {
	status, reason, _ := strings.Cut(p.Word, ":")
	details := "null"
	if reason != "" {
		details = `{"reason":` + quote(reason) + `}`
	}
	return `{"id":"r","object":"response","status":` + quote(status) + `,"incomplete_details":` + details +
		`,"output":[` + responsePlayItem(call, text) + `],"usage":{"input_tokens":5,"output_tokens":5,"total_tokens":10}}`
}

// stream returns a reply as a stream of events.
func (p Play) stream(call bool, text string) string {
	switch p.API {
	case pawltest.Chat:
		delta := `"content":` + quote(text)
		if call {
			delta = `"content":null,"tool_calls":[` + chatPlayCall() + `]`
		}
		return events(`{"id":"x","choices":[{"index":0,"delta":{"role":"assistant",`+delta+`},"finish_reason":null}]}`,
			`{"id":"x","choices":[{"index":0,"delta":{},"finish_reason":`+quote(p.Word)+`}]}`, `[DONE]`)
	case pawltest.Responses:
		status, _, _ := strings.Cut(p.Word, ":")
		return events(`{"type":"response.created","response":{"id":"r","status":"in_progress","output":[]}}`,
			`{"type":"response.output_item.done","output_index":0,"item":`+responsePlayItem(call, text)+`}`,
			`{"type":`+quote(endEvent(status))+`,"response":`+p.response(call, text)+`}`)
	case pawltest.Anthropic:
		block := `{"type":"text","text":` + quote(text) + `}`
		if call {
			block = `{"type":"tool_use","id":"t1","name":"` + Tool + `","input":` + playArgs + `}`
		}
		return events(`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"usage":{"input_tokens":5,"output_tokens":1}}}`,
			`{"type":"content_block_start","index":0,"content_block":`+block+`}`, `{"type":"content_block_stop","index":0}`,
			`{"type":"message_delta","delta":{"stop_reason":`+quote(p.Word)+`},"usage":{"output_tokens":5}}`, `{"type":"message_stop"}`)
	}
	return events(p.whole(call, text))
}

// endEvent returns the type of the event that ends a stream with a status.
func endEvent(status string) string {
	switch status {
	case "incomplete", "failed", "cancelled":
		return "response." + status
	}
	return "response.completed"
}

func chatPlayCall() string {
	return `{"index":0,"id":"c1","type":"function","function":{"name":"` + Tool + `","arguments":` + quote(playArgs) + `}}`
}

func responsePlayItem(call bool, text string) string {
	if call {
		return `{"type":"function_call","id":"f1","call_id":"c1","name":"` + Tool + `","arguments":` + quote(playArgs) + `,"status":"completed"}`
	}
	return `{"type":"message","id":"m1","role":"assistant","status":"completed","content":[{"type":"output_text","text":` + quote(text) + `,"annotations":[]}]}`
}

func quote(s string) string {
	b, _ := json.Marshal(s) // no error is possible
	return string(b)
}

// events frames each text as the data of one event.
func events(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		b.WriteString("data: " + d + "\n\n")
	}
	return b.String()
}
