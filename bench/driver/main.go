// Command driver does the benchmark's job with pawl: an agent with ten tools over one of four APIs,
// measured by the same harness as the loops written by hand. Command compare builds it.
package main

import (
	"context"
	"encoding/json"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/anthropic"
	"github.com/pawl-go/pawl/provider/gemini"
	"github.com/pawl-go/pawl/provider/openai"
	"peerbench/harness"
)

func main() {
	harness.Main(map[string]func(*harness.Env) (harness.Run, error){
		"pawl-chat": driver(func(model, url string) llm.Model {
			return openai.NewChat(model, &openai.Options{BaseURL: url, Key: key})
		}),
		"pawl-responses": driver(func(model, url string) llm.Model {
			return openai.New(model, &openai.Options{BaseURL: url, Key: key})
		}),
		"pawl-anthropic": driver(func(model, url string) llm.Model {
			return anthropic.New(model, &anthropic.Options{BaseURL: url, Key: key})
		}),
		"pawl-gemini": driver(func(model, url string) llm.Model {
			return gemini.New(model, &gemini.Options{BaseURL: url, Key: key})
		}),
	})
}

const key = "sk-mock"

// driver returns a function that makes one run: Agent.Run for whole replies, Agent.Stream,
// drained, for streamed replies. The agent has pawl's defaults, except for the tools, the limit
// on rounds, and the watch for repeated calls, because this job consists of them.
func driver(open func(model, url string) llm.Model) func(*harness.Env) (harness.Run, error) {
	return func(e *harness.Env) (harness.Run, error) {
		agent := &pawl.Agent{
			Instructions: e.System,
			Model:        open(e.Model, e.BaseURL),
			Limits:       pawl.Limits{Rounds: e.MaxIter, LoopThreshold: -1},
		}
		for _, t := range e.Tools {
			agent.Tools = append(agent.Tools, &pawl.Tool{
				Name: t.Name, Description: t.Desc, Input: json.RawMessage(harness.SchemaJSON),
				Run: func(_ context.Context, call llm.ToolCall) (llm.ToolResult, error) {
					s, err := e.CallJSON(t.Name, call.Args)
					return llm.TextResult(s), err
				},
			})
		}
		messages := func() []llm.Message {
			msgs := make([]llm.Message, 0, len(e.History)+1)
			for _, m := range e.History {
				if m.Role == "assistant" {
					msgs = append(msgs, llm.Assistant(llm.Text{Text: m.Text}))
				} else {
					msgs = append(msgs, llm.User(m.Text))
				}
			}
			return append(msgs, llm.User(e.Task))
		}
		if e.Stream {
			return func(ctx context.Context) (string, error) {
				return answer(pawl.Collect(agent.Stream(ctx, messages()...), nil))
			}, nil
		}
		return func(ctx context.Context) (string, error) {
			return answer(agent.Run(ctx, messages()...))
		}, nil
	}
}

func answer(res *pawl.Result, err error) (string, error) {
	if err != nil {
		return "", err
	}
	return res.Text(), nil
}
