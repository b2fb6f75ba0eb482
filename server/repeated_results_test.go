package server_test

import (
	"fmt"
	"strings"
	"testing"
)

// Clients repeat the result of a call. On Chat Completions, Responses and Messages, as on AG-UI,
// the first result counts, for a run that waits and for a conversation that the client sends whole.
func TestRepeatedResults(t *testing.T) {
	const (
		chatTools      = `"tools":[{"type":"function","function":{"name":"locate"}}]`
		responsesTools = `"tools":[{"type":"function","name":"locate","parameters":{"type":"object"}}]`
		messagesTools  = `"max_tokens":100,"tools":[{"name":"locate","input_schema":{"type":"object"}}]`
	)
	chatResult := func(id, text string) string {
		return fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":%q}`, id, text)
	}
	responsesResult := func(id, text string) string {
		return fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":%q}`, id, text)
	}
	messagesResult := func(id, text string) string {
		return fmt.Sprintf(`{"type":"tool_result","tool_use_id":%q,"content":%q}`, id, text)
	}

	for _, own := range []bool{true, false} {
		for _, texts := range [][]string{{"Rome"}, {"Rome", "Rome"}, {"Rome", "Oslo"}, {"Rome", "Rome", "Rome"}} {
			name := fmt.Sprintf("%q, of a run %t", texts, own)
			t.Run("chat, "+name, func(t *testing.T) {
				v := serve(t, nil)
				var first, second struct {
					Choices []struct {
						Message struct {
							Content   string
							ToolCalls []struct{ ID string } `json:"tool_calls"`
						}
					}
				}
				id := "theirs"
				if own {
					v.do("POST", "/v1/chat/completions",
						`{"model":"clerk","messages":[{"role":"user","content":"locate me"}],`+chatTools+`}`, 200, &first)
					id = first.Choices[0].Message.ToolCalls[0].ID
				}
				messages := []string{
					`{"role":"user","content":"locate me"}`,
					`{"role":"assistant","tool_calls":[{"id":"` + id + `","type":"function","function":{"name":"locate","arguments":"{}"}}]}`,
				}
				for _, text := range texts {
					messages = append(messages, chatResult(id, text))
				}
				v.do("POST", "/v1/chat/completions",
					`{"model":"clerk","messages":[`+strings.Join(messages, ",")+`],`+chatTools+`}`, 200, &second)
				if got := second.Choices[0].Message.Content; got != "Done: Rome" {
					t.Errorf("got %q", got)
				}
			})

			t.Run("responses, "+name, func(t *testing.T) {
				v := serve(t, nil)
				var first, second struct {
					Output []struct {
						CallID  string `json:"call_id"`
						Content []struct{ Text string }
					}
				}
				id := "theirs"
				if own {
					v.do("POST", "/v1/responses", `{"model":"clerk","input":"locate me",`+responsesTools+`}`, 200, &first)
					id = first.Output[0].CallID
				}
				items := []string{
					`{"role":"user","content":"locate me"}`,
					`{"type":"function_call","call_id":"` + id + `","name":"locate","arguments":"{}"}`,
				}
				for _, text := range texts {
					items = append(items, responsesResult(id, text))
				}
				v.do("POST", "/v1/responses",
					`{"model":"clerk","input":[`+strings.Join(items, ",")+`],`+responsesTools+`}`, 200, &second)
				if got := second.Output[0].Content[0].Text; got != "Done: Rome" {
					t.Errorf("got %q", got)
				}
			})

			// A client may repeat a result within a message, or in a message of its own.
			for _, between := range []string{`,`, `]},{"role":"user","content":[`} {
				t.Run(fmt.Sprintf("messages, %s, %d", name, len(between)), func(t *testing.T) {
					v := serve(t, nil)
					var first, second struct{ Content []struct{ ID, Text string } }
					id := "theirs"
					if own {
						v.do("POST", "/v1/messages",
							`{"model":"clerk","messages":[{"role":"user","content":"locate me"}],`+messagesTools+`}`, 200, &first)
						id = first.Content[0].ID
					}
					var results []string
					for _, text := range texts {
						results = append(results, messagesResult(id, text))
					}
					v.do("POST", "/v1/messages", `{"model":"clerk","messages":[{"role":"user","content":"locate me"},`+
						`{"role":"assistant","content":[{"type":"tool_use","id":"`+id+`","name":"locate","input":{}}]},`+
						`{"role":"user","content":[`+strings.Join(results, between)+`]}],`+messagesTools+`}`, 200, &second)
					if got := second.Content[0].Text; got != "Done: Rome" {
						t.Errorf("got %q", got)
					}
				})
			}
		}
	}
}
