package mcp_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/internal/test/contract"
	"github.com/pawl-go/pawl/mcp"
	"github.com/pawl-go/pawl/store"
)

// An agent does the same as a tool of an MCP client.
func TestContract(t *testing.T) {
	contract.Play(t, "MCP", func(t *testing.T, s *contract.Scene) contract.Visit {
		eng := &durable.Engine{Journal: new(store.MemoryJournal)}
		a := s.Agent()
		service := &mcp.Service{Agents: []mcp.Offer{{Agent: a, Description: "Works.",
			Runner: func(string) pawl.Runner { return eng.Runner("run", a) }}}}
		c := asking(t, service)
		params := &sdk.CallToolParams{Name: s.Name}
		call := func() contract.Shown {
			res, err := c.CallTool(t.Context(), params)
			if err != nil {
				return contract.Shown{End: pawl.ClassFailed, Cause: err.Error()}
			}
			params.RequestState = res.RequestState
			return shownTool(t, eng, res)
		}
		return contract.Visit{
			Say: func(text string) contract.Shown {
				params.Arguments = map[string]any{"task": text}
				return call()
			},
			Reply: func(answers []contract.Answer) contract.Shown {
				params.InputResponses = sdk.InputResponseMap{}
				for _, answer := range answers {
					params.InputResponses[answer.Question.Digest] = &sdk.ElicitResult{Action: "accept",
						Content: map[string]any{"approve": answer.Approve}}
				}
				return call()
			},
		}
	})
}

// asking returns a client that answers the questions of its calls by further calls.
func asking(t *testing.T, s *mcp.Service) *sdk.ClientSession {
	t.Helper()
	h, err := s.Handler(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	options := &sdk.ClientOptions{
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
		ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return nil, nil
		},
	}
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, options).
		Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: web.URL, HTTPClient: web.Client()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// shownTool returns what a client sees of a result.
func shownTool(t *testing.T, eng *durable.Engine, res *sdk.CallToolResult) contract.Shown {
	t.Helper()
	shown := contract.Shown{End: pawl.ClassAnswered}
	for _, part := range res.Content {
		if text, ok := part.(*sdk.TextContent); ok {
			shown.Text += text.Text
		}
	}
	if res.StructuredContent != nil {
		b, err := json.Marshal(res.StructuredContent)
		if err != nil {
			t.Fatal(err)
		}
		shown.Output = b
	}
	switch {
	case res.NeedsInput():
		shown.End = pawl.ClassWaiting
		open, err := eng.Pending(t.Context(), "run")
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range open {
			shown.Questions = append(shown.Questions, contract.QuestionOf(&w))
		}
	case res.IsError:
		shown.End = pawl.ClassFailed
		shown.Cause = shown.Text
		shown.Calls = []string{shown.Text}
	}
	return shown
}
