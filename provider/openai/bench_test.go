package openai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/openai"
)

func longRequest(messages int) *llm.Request {
	req := &llm.Request{Model: "m", Messages: []llm.Message{llm.System(strings.Repeat("You are careful. ", 20))}}
	for i := range messages / 4 {
		id := fmt.Sprintf("call_%d", i)
		req.Messages = append(req.Messages, llm.User(strings.Repeat("Do the next thing, \"please\".\n", 8)),
			llm.Assistant(llm.ToolCall{ID: id, Name: "t1", Args: []byte(`{"path":"/a/b","limit":10,"query":"some words"}`)}),
			llm.Results(llm.ToolResult{CallID: id, Parts: []llm.Part{llm.Text{Text: strings.Repeat(`{"row":1,"text":"some words of a result"}`, 6)}}}),
			llm.Assistant(llm.Text{Text: strings.Repeat("It is done. ", 20)}))
	}
	for i := range 10 {
		req.Tools = append(req.Tools, tool(fmt.Sprintf("t%d", i)))
	}
	return req
}

// send does the work of a Model with a request and a stored answer, without a network.
func send(b *testing.B, m *openai.Model, req *llm.Request) {
	b.ReportAllocs()
	for b.Loop() {
		res := new(llm.Response)
		for d, err := range m.Stream(context.Background(), req) {
			if err == nil {
				err = res.Add(d)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkRequest(b *testing.B) {
	for _, n := range []int{4, 48, 200} {
		req := longRequest(n)
		req.Whole = true
		b.Run(fmt.Sprintf("responses/%d", n), func(b *testing.B) {
			send(b, local(answer(response())), req)
		})
		b.Run(fmt.Sprintf("chat/%d", n), func(b *testing.B) {
			send(b, localChat(answer(whole("stop", `{"content":"hi"}`))), req)
		})
		// the same bytes, written by reflection
		b.Run(fmt.Sprintf("encoding-json/%d", n), func(b *testing.B) {
			body, _ := openai.EncodeChat(req)
			var v struct {
				Model    string `json:"model"`
				Messages []struct {
					Role      string  `json:"role"`
					Content   *string `json:"content"`
					ToolCalls []struct {
						ID, Type string
						Function struct{ Name, Arguments string }
					} `json:"tool_calls,omitempty"`
					ID string `json:"tool_call_id,omitempty"`
				} `json:"messages"`
				Tools []json.RawMessage `json:"tools"`
			}
			json.Unmarshal(body, &v)
			b.ReportAllocs()
			for b.Loop() {
				json.Marshal(v)
			}
		})
	}
}

func answer(body string) transport {
	return func(r *http.Request) (*http.Response, error) { return reply(200, body), nil }
}

func BenchmarkReply(b *testing.B) {
	var items, calls, pieces, evs []string
	for i := range 5 {
		args := `{\"path\":\"/a/b\",\"limit\":10,\"query\":\"` + strings.Repeat("some words of text ", 3) + `\"}`
		items = append(items, fmt.Sprintf(`{"type":"function_call","id":"fc_%d","call_id":"call_%d","name":"t1","arguments":"%s","status":"completed"}`, i, i, args))
		calls = append(calls, fmt.Sprintf(`{"id":"call_%d","type":"function","function":{"name":"t1","arguments":"%s"}}`, i, args))
		pieces = append(pieces, fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":"call_%d","type":"function","function":{"name":"t1","arguments":""}}]}`, i, i))
		evs = append(evs, fmt.Sprintf(`{"type":"response.output_item.added","sequence_number":1,"output_index":%d,"item":{"type":"function_call","id":"fc_%d","call_id":"call_%d","name":"t1","arguments":""}}`, i, i, i))
		for j := range 8 {
			piece := args[j*len(args)/8 : (j+1)*len(args)/8]
			piece = strings.ReplaceAll(strings.ReplaceAll(piece, `\`, ``), `"`, `\"`)
			pieces = append(pieces, fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":"%s"}}]}`, i, piece))
			evs = append(evs, fmt.Sprintf(`{"type":"response.function_call_arguments.delta","sequence_number":1,"item_id":"fc_%d","output_index":%d,"delta":"%s"}`, i, i, piece))
		}
		evs = append(evs, fmt.Sprintf(`{"type":"response.function_call_arguments.done","output_index":%d,"arguments":"%s"}`, i, args), fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, i, items[i]))
	}
	req := user("go")
	all := *req
	all.Whole = true
	b.Run("responses/whole", func(b *testing.B) { send(b, local(answer(response(items...))), &all) })
	b.Run("responses/streamed", func(b *testing.B) { send(b, local(answer(events(append(evs, done)...))), req) })
	b.Run("chat/whole", func(b *testing.B) {
		send(b, localChat(answer(whole("tool_calls", `{"content":null,"tool_calls":[`+strings.Join(calls, ",")+`]}`))), &all)
	})
	b.Run("chat/streamed", func(b *testing.B) { send(b, localChat(answer(deltas("tool_calls", pieces...))), req) })
}

// BenchmarkArguments shows that the cost of a large call is linear in its size.
func BenchmarkArguments(b *testing.B) {
	for _, kib := range []int{16, 64, 256} {
		var ds []string
		for range kib << 10 / 64 {
			ds = append(ds, `{"tool_calls":[{"index":0,"function":{"arguments":"`+strings.Repeat("x", 64)+`"}}]}`)
		}
		first := `{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":\""}}]}`
		body := deltas("tool_calls", append(append([]string{first}, ds...), `{"tool_calls":[{"index":0,"function":{"arguments":"\"}"}}]}`)...)
		b.Run(fmt.Sprintf("%dKiB", kib), func(b *testing.B) {
			b.SetBytes(int64(kib << 10))
			send(b, localChat(answer(body)), user("go"))
		})
	}
}
