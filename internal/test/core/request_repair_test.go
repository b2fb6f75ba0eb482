package core_test

import (
	"context"
	"iter"
	"slices"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// healing is a model that repairs its requests, as adapters do.
type healing struct {
	llm.Model
	rules llm.HistoryRules
	seen  func(ctx context.Context, req, sent *llm.Request, mends []llm.Repaired)
}

func (m healing) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	sent, mends := m.rules.RepairRequest(req)
	m.seen(ctx, req, sent, mends)
	return m.Model.Stream(ctx, sent)
}

// Every request is checked before it is sent: the transcript of the run, the changes of a
// middleware and the additional rules of the API.
func TestRequestsAreRepaired(t *testing.T) {
	thought := llm.Reasoning{Text: "hm", Opaque: &llm.Opaque{Provider: "anthropic", Data: []byte(`{"type":"thinking"}`)}}
	one := []llm.Message{llm.User("go"), llm.Assistant(call("a", "active", "{}")), llm.Results(answer("a", "1")),
		llm.Assistant(text("hi")), llm.User("on")}
	for name, test := range map[string]struct {
		msgs   []llm.Message
		api    string
		change func(*llm.Request)
		want   string // the code of each repair, in the three requests
	}{
		"nothing":             {one, "anthropic", nil, "||"},
		"a result is lost":    {one, "openai-chat", func(r *llm.Request) { r.Messages = slices.Delete(slices.Clone(r.Messages), 3, 4) }, "no_result|no_result|no_result"},
		"a stray is added":    {one, "gemini", func(r *llm.Request) { r.Messages = append(r.Messages, llm.Results(answer("z", ""))) }, "no_call|no_call|no_call"},
		"the head is cut off": {one, "gemini", func(r *llm.Request) { r.Messages = r.Messages[2:] }, "start|start|start"},
		"the model first":     {one[3:], "gemini", nil, "start|start|start"},
		"and may be":          {one[3:], "openai-chat", nil, "||"},
		"thought last":        {append(slices.Clone(one[:3]), llm.Assistant(text("hi"), thought), llm.User("on")), "anthropic", nil, "reply_end|reply_end|reply_end"},
	} {
		for _, instructions := range []string{"", "Be brief."} {
			got, n := "", 0
			m := healing{script.New(script.Loop(script.Func(func(*llm.Request) script.Turn {
				if n++; n == 3 {
					return script.Say("done")
				}
				return script.Together(script.Call("active", `{}`), script.Call("active", `{}`))
			}))), rulesOf(test.api), func(ctx context.Context, req, sent *llm.Request, mends []llm.Repaired) {
				if (len(mends) == 0) != (req == sent) || rulesOf(test.api).Check(sent.Messages) != nil {
					t.Errorf("%s: what is sent has faults: %v", name, rulesOf(test.api).Check(sent.Messages))
				}
				if n > 0 {
					got += "|"
				}
				for _, f := range mends {
					got += string(f.Code)
				}
				broken := &llm.Request{Messages: []llm.Message{llm.User("go"), llm.Assistant(call("a", "x", "{}"))}}
				if _, mends := rulesOf(test.api).RepairRequest(broken); len(mends) != 1 {
					t.Errorf("%s: another request in the same context is not healed: %v", name, mends)
				}
			}}
			a := &pawl.Agent{Instructions: instructions, Tools: []pawl.Toolset{says("active", "did")},
				Middleware: []pawl.Middleware{{Model: func(inner llm.Model) llm.Model {
					return changed{inner, test.change, instructions != ""}
				}}}, Model: m}
			if res, err := a.Run(t.Context(), test.msgs...); err != nil || res.Stop != pawl.StopAnswer {
				t.Fatalf("%s: %v, %+v", name, err, res)
			}
			if got != test.want {
				t.Errorf("%s, instructions %q: got mends %q, want %q", name, instructions, got, test.want)
			}
		}
	}
}

// changed is a middleware that sends another request than it received.
type changed struct {
	llm.Model
	change func(*llm.Request)
	leads  bool // with instructions, which stay first
}

func (m changed) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	if m.change == nil {
		return m.Model.Stream(ctx, req)
	}
	c := *req
	if !m.leads {
		c.Messages = append([]llm.Message{llm.System("s")}, req.Messages...)
	}
	m.change(&c)
	return m.Model.Stream(ctx, &c)
}
