package policy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/machine"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/provider/openai"
)

// reply is the body of the reply after n others: five calls three times, and then an answer.
func reply(n int, names [3]string, args string) []byte {
	message := map[string]any{"role": "assistant", "content": "Done."}
	if n < 3 {
		var calls []any
		for i := range 5 {
			calls = append(calls, map[string]any{"id": fmt.Sprintf("call_%d_%d", n, i), "type": "function",
				"function": map[string]any{"name": names[n], "arguments": strings.ReplaceAll(args, "#", fmt.Sprint(n*5+i))}})
		}
		message = map[string]any{"role": "assistant", "tool_calls": calls}
	}
	b, _ := json.Marshal(map[string]any{"id": "c", "object": "chat.completion", "model": "m",
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": "stop"}},
		"usage":   map[string]any{"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}})
	return b
}

// canned answers requests by the number of replies in them.
type canned [4][]byte

func (c *canned) body(req *http.Request) []byte {
	b, _ := io.ReadAll(req.Body)
	return c[min(3, bytes.Count(b, []byte(`"role":"assistant"`)))]
}

func (c *canned) RoundTrip(req *http.Request) (*http.Response, error) {
	b := c.body(req)
	return &http.Response{StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(b)), ContentLength: int64(len(b)), Request: req}, nil
}

func (c *canned) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(c.body(req))
}

// BenchmarkFlow measures what Flow adds to the CPU of runs of three steps with five calls each, as
// a ratio of interleaved runs. Over TLS the server counts, too.
func BenchmarkFlow(b *testing.B) {
	record := `[` + strings.Repeat(`{"id":"m1","sender":"ann@x.example","subject":"Budget","body":"See you next week at the usual place, and bring the numbers."},`, 8) + `{}]`
	tool := func(name string, effect pawl.Effect, result string) *pawl.Tool {
		return &pawl.Tool{Name: name, Effect: effect,
			Input: json.RawMessage(`{"type":"object","properties":{"to":{"type":"string"},"text":{"type":"string"},"query":{"type":"string"}}}`),
			Run:   func(context.Context, llm.ToolCall) (llm.ToolResult, error) { return llm.TextResult(result), nil }}
	}
	tools := []pawl.Toolset{tool("search", pawl.EffectRead, "Sunny, 21 degrees."), tool("list_mails", pawl.EffectRead, record), tool("send_mail", pawl.EffectWrite, "sent")}
	for _, job := range []struct {
		name  string
		names [3]string
		args  string
	}{
		{"reads", [3]string{"search", "search", "search"}, `{"query":"weather #"}`},
		{"a read, then writes", [3]string{"list_mails", "send_mail", "send_mail"}, `{"to":"bob#@x.example","text":"See you at ten."}`},
	} {
		c := new(canned)
		for n := range c {
			c[n] = reply(n, job.names, job.args)
		}
		s := httptest.NewUnstartedServer(c)
		s.EnableHTTP2 = true
		s.StartTLS()
		defer s.Close()
		words := ""
		for i := range 15 {
			words += fmt.Sprintf(" bob%d@x.example", i)
		}
		for _, carrier := range []struct {
			name string
			http http.RoundTripper
		}{{"no network", c}, {"TLS", s.Client().Transport}} {
			agents := [2]*pawl.Agent{}
			for i := range agents {
				o := &openai.Options{BaseURL: s.URL, Key: "k", HTTP: carrier.http}
				agents[i] = &pawl.Agent{Model: openai.NewChat("m", o), Tools: tools}
			}
			agents[1].Middleware = []pawl.Middleware{(&policy.Flow{}).Middleware()}
			b.Run(job.name+"/"+carrier.name, func(b *testing.B) {
				var used [2][]time.Duration
				for b.Loop() {
					for i, a := range agents {
						before := machine.CPU()
						for range 20 {
							if res, err := a.Run(b.Context(), llm.User("Write to"+words)); err != nil || res.Spent.Calls != 15 {
								b.Fatal(res, err)
							}
						}
						used[i] = append(used[i], machine.CPU()-before)
					}
				}
				for i := range used {
					slices.Sort(used[i])
				}
				without, with := used[0][len(used[0])/2], used[1][len(used[1])/2]
				b.ReportMetric(float64(without.Microseconds())/20, "µs/without")
				b.ReportMetric(float64(with.Microseconds())/20, "µs/with")
				b.ReportMetric(100*float64(with-without)/float64(without), "%/added")
			})
		}
	}
}
