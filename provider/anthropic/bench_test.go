package anthropic_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/anthropic"
)

func conversation(rounds int) []llm.Message {
	messages := []llm.Message{llm.System("You are a helpful assistant."), llm.User("What is the weather in these cities?")}
	for i := range rounds {
		id := fmt.Sprintf("toolu_%08d", i)
		messages = append(messages, llm.Assistant(llm.Text{Text: "I look."}, llm.ToolCall{ID: id, Name: "weather", Args: raw(`{"city":"Oslo","days":3,"units":"metric"}`)}),
			llm.Results(llm.ToolResult{CallID: id, Parts: []llm.Part{llm.Text{Text: `{"city":"Oslo","forecast":["rain","rain","sun"]}`}}}))
	}
	return messages
}

// The cost of a request up to the network.
func BenchmarkRequest(b *testing.B) {
	m := anthropic.New("claude-sonnet-4-5", &anthropic.Options{BaseURL: "https://api.anthropic.com", Key: "k",
		HTTP: transport(func(r *http.Request) (*http.Response, error) {
			io.Copy(io.Discard, r.Body)
			return reply(200, whole1), nil
		})})
	for _, rounds := range []int{2, 24, 100} {
		req := &llm.Request{Messages: conversation(rounds), Tools: []*llm.ToolSpec{tool("weather"), tool("other")}, Whole: true}
		b.Run(fmt.Sprint(2*rounds), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, err := range m.Stream(b.Context(), req) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// The cost of a reply from the network on, with the cost of a small request.
func BenchmarkReply(b *testing.B) {
	words := []string{opens(0, `{"type":"text","text":""}`)}
	for range 40 {
		words = append(words, adds(0, `{"type":"text_delta","text":" words of"}`))
	}
	words = append(words, closes(0), opens(1, `{"type":"tool_use","id":"toolu_1","name":"f","input":{}}`))
	for range 10 {
		words = append(words, adds(1, `{"type":"input_json_delta","partial_json":" "}`))
	}
	words = append(words, adds(1, `{"type":"input_json_delta","partial_json":"{\"x\":1}"}`), closes(1))
	for name, body := range map[string]string{
		"whole":    whole("tool_use", `{"type":"text","text":"`+strings.Repeat(" words of", 40)+`"}`, `{"type":"tool_use","id":"toolu_1","name":"f","input":{"x":1}}`),
		"streamed": stream("tool_use", words...),
	} {
		m := anthropic.New("m", &anthropic.Options{BaseURL: "http://local.test",
			HTTP: transport(func(*http.Request) (*http.Response, error) { return reply(200, body), nil })})
		req := user("hi")
		req.Whole = name == "whole"
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := llm.Complete(b.Context(), m, req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
