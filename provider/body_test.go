package provider_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/internal/test/wiretest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/anthropic"
	"github.com/pawl-go/pawl/provider/gemini"
	"github.com/pawl-go/pawl/provider/openai"
)

// bodyWire is an adapter whose bodies in a run are compared with its body for each request alone.
type bodyWire struct {
	open   func(h http.RoundTripper) llm.Model
	encode func(*llm.Request) ([]byte, error)
	call   string // a reply with two calls, of ids that end in %d
	answer string
}

var bodyWires = map[string]bodyWire{
	"openai": {
		func(h http.RoundTripper) llm.Model { return openai.New("m", &openai.Options{Key: "k", HTTP: h}) },
		openai.EncodeResponses,
		`{"status":"completed","output":[{"type":"reasoning","id":"rs","summary":[],"encrypted_content":"x%[1]d"},{"type":"function_call","call_id":"a%[1]d","name":"look","arguments":"{\"n\":%[1]d}"},{"type":"local_shell_call","call_id":"b%[1]d","id":"l","action":{"type":"exec"},"status":"completed"},{"type":"function_call","call_id":"c%[1]d","name":"see","arguments":"{}"}]}`,
		`{"status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done"}]}]}`,
	},
	"openai-chat": {
		func(h http.RoundTripper) llm.Model { return openai.NewChat("m", &openai.Options{Key: "k", HTTP: h}) },
		openai.EncodeChat,
		`{"choices":[{"finish_reason":"tool_calls","message":{"content":"so","tool_calls":[{"id":"a%[1]d","function":{"name":"look","arguments":"{\"n\":%[1]d}"}},{"id":"b%[1]d","function":{"name":"see","arguments":"{}"}}]}}]}`,
		`{"choices":[{"finish_reason":"stop","message":{"content":"done"}}]}`,
	},
	"anthropic": {
		func(h http.RoundTripper) llm.Model { return anthropic.New("m", &anthropic.Options{Key: "k", HTTP: h}) },
		anthropic.EncodeMessages,
		`{"type":"message","stop_reason":"tool_use","content":[{"type":"text","text":"so"},{"type":"tool_use","id":"same","name":"look","input":{"n":%[1]d}},{"type":"tool_use","id":"b%[1]d","name":"see","input":{}}]}`,
		`{"type":"message","stop_reason":"end_turn","content":[{"type":"text","text":"done"}]}`,
	},
	"anthropic-gateway": { // its cache marks move
		gateway, encodeGateway,
		`{"type":"message","stop_reason":"tool_use","content":[{"type":"text","text":"so"},{"type":"tool_use","id":"same","name":"look","input":{"n":%[1]d}},{"type":"tool_use","id":"b%[1]d","name":"see","input":{}}]}`,
		`{"type":"message","stop_reason":"end_turn","content":[{"type":"text","text":"done"}]}`,
	},
	"gemini": {
		func(h http.RoundTripper) llm.Model { return gemini.New("m", &gemini.Options{Key: "k", HTTP: h}) },
		gemini.EncodeGenerate,
		`{"candidates":[{"finishReason":"STOP","content":{"parts":[{"text":"so"},{"functionCall":{"name":"look","args":{"n":%[1]d}}},{"functionCall":{"id":"b%[1]d","name":"see","args":{}},"thoughtSignature":"x"}]}}]}`,
		`{"candidates":[{"finishReason":"STOP","content":{"parts":[{"text":"done"}]}}]}`,
	},
}

func gateway(h http.RoundTripper) llm.Model {
	return anthropic.New("m", &anthropic.Options{BaseURL: "http://gateway.test", HTTP: h})
}

// encodeGateway returns the body that a new Model sends for req outside of a run.
func encodeGateway(req *llm.Request) (body []byte, err error) {
	send := func(r *http.Request) (*http.Response, error) {
		body, err = io.ReadAll(r.Body)
		return wiretest.Reply(200, `{"type":"message","stop_reason":"end_turn","content":[{"type":"text","text":"done"}]}`), err
	}
	for _, failed := range gateway(wiretest.Transport(send)).Stream(context.Background(), req) {
		if failed != nil {
			return nil, failed
		}
	}
	return body, err
}

// compared sends each body of a model to its server, and compares it with the body of the request
// alone.
type compared struct {
	llm.Model
	t       *testing.T
	wire    bodyWire
	rounds  int
	request *llm.Request
	bodies  int
	later   []func() // check the bodies that the RoundTripper reads after the run
}

func (c *compared) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	c.request = req
	return c.Model.Stream(ctx, req)
}

func (c *compared) RoundTrip(r *http.Request) (*http.Response, error) {
	got, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if r.ContentLength != int64(len(got)) {
		c.t.Errorf("request %d: a length of %d, want %d", c.bodies, r.ContentLength, len(got))
	}
	again, err := r.GetBody()
	if err != nil {
		return nil, err
	}
	n := c.bodies
	c.later = append(c.later, func() {
		late, err := io.ReadAll(again)
		if err != nil || string(late) != string(got) || again.Close() != nil {
			c.t.Errorf("request %d, read after the run: %v, %q; want %q", n, err, late, got)
		}
	})
	alone := *c.request
	if alone.Model == "" {
		alone.Model = "m"
	}
	want, err := c.wire.encode(&alone)
	if d := cmp.Diff(string(want), string(got)); d != "" || err != nil {
		c.t.Errorf("request %d: %v (-alone +sent):\n%s", c.bodies, err, d)
	}
	if c.bodies++; c.bodies > c.rounds {
		return wiretest.Reply(200, c.wire.answer), nil
	}
	return wiretest.Reply(200, fmt.Sprintf(c.wire.call, c.bodies)), nil
}

// TestBodies compares the bodies of a run with the body of each request alone, for many changes
// between the requests. A RoundTripper may read a body again, and after the run.
func TestBodies(t *testing.T) {
	look := &pawl.Tool{Name: "look", Description: "Looks.", Run: func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
		return llm.ToolResult{Parts: []llm.Part{llm.Text{Text: "seen \"it\""}, llm.Media{MIME: "image/png", Data: []byte("png")}}}, nil
	}}
	see := &pawl.Tool{Name: "see", Run: func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
		return llm.ErrorResult("there is nothing"), nil
	}}
	change := func(at int, change func(*llm.Request)) func(int, *llm.Request) {
		return func(n int, r *llm.Request) {
			if n == at {
				change(r)
			}
		}
	}
	history := []llm.Message{llm.User("hello"), llm.Assistant(llm.Text{Text: "good day"}), llm.User("look"), llm.User("twice")}
	for name, c := range map[string]struct {
		limits pawl.Limits
		mend   func(n int, r *llm.Request) // request n, before it is sent
		steer  string
		again  bool // each request is sent once more, with another message
	}{
		"nothing":    {},
		"last round": {limits: pawl.Limits{Rounds: 2}},
		"a message":  {steer: "and quickly"},
		"again":      {again: true},
		"another":    {mend: change(3, func(r *llm.Request) { r.Model = "gemini-3-pro-preview" })},
		"no tools":   {mend: change(3, func(r *llm.Request) { r.Tools = r.Tools[:1] })},
		"an option":  {mend: change(2, func(r *llm.Request) { r.Settings.MaxTokens = 77 })},
		"a forgotten": {mend: change(3, func(r *llm.Request) {
			r.Messages = append(slices.Clone(r.Messages[:1]), r.Messages[3:]...)
		})},
		"a rewritten": {mend: change(3, func(r *llm.Request) {
			r.Messages = slices.Clone(r.Messages)
			r.Messages[1] = llm.User("something else")
		})},
		"a wish": {mend: change(3, func(r *llm.Request) {
			r.Output = json.RawMessage(`{"type":"object","properties":{"x":{"type":"string"}},"patternProperties":{"^a":{"type":"string"}}}`)
		})},
		"more of the user's": {mend: func(_ int, r *llm.Request) { r.Messages = append(slices.Clip(r.Messages), llm.User("remember")) }},
		"an instruction":     {mend: func(_ int, r *llm.Request) { r.Messages = append(slices.Clip(r.Messages), llm.System("remember")) }},
	} {
		for wire, w := range bodyWires {
			t.Run(name+"/"+wire, func(t *testing.T) {
				m := &compared{t: t, wire: w, rounds: 4}
				m.Model = w.open(m)
				var steering pawl.Steering
				agent := &pawl.Agent{Instructions: "You look.", Model: m, Tools: []pawl.Toolset{look, see}, Limits: c.limits}
				agent.Middleware = []pawl.Middleware{{Model: func(next llm.Model) llm.Model {
					return mending{next, c.again, func(r *llm.Request) {
						if c.mend != nil {
							c.mend(m.bodies+1, r)
						}
						if c.steer != "" && m.bodies == 1 {
							if err := steering.Steer(t.Context(), llm.User(c.steer)); err != nil {
								t.Error(err)
							}
						}
					}}
				}}}
				ctx := pawl.WithRunOptions(t.Context(), pawl.RunOptions{Messages: &steering})
				res, err := runtest.Ended(agent.Run(ctx, history...))
				if err != nil {
					t.Fatal(err)
				}
				for _, check := range m.later {
					check()
				}
				if m.bodies < 3 || c.limits.Rounds == 0 && !strings.Contains(res.Text(), "done") {
					t.Errorf("%d requests, %q", m.bodies, res.Text())
				}
			})
		}
	}
}

// mending is a Model whose requests are changed in a copy.
type mending struct {
	llm.Model
	again bool
	mend  func(*llm.Request)
}

func (m mending) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	r := *req
	m.mend(&r)
	// Claude from Opus 4.8 on accepts instructions as a turn of their own, but only after a user
	// turn.
	if m.again {
		r.Model = "claude-opus-4-8"
		r.Messages = append(slices.Clip(r.Messages), llm.System("Be sure."))
		for range m.Model.Stream(ctx, &r) {
		}
		r.Messages = append(slices.Clip(r.Messages), llm.User("Are you sure?"))
	}
	return m.Model.Stream(ctx, &r)
}
