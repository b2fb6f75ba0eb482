package mcp_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/internal/test/answertest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/mcp"
	"github.com/pawl-go/pawl/store"
)

// Answers of an MCP client have the outcomes of the table: each is in a call that has the state of
// the call with the question.
func TestAnswerTable(t *testing.T) {
	answertest.Play(t, "MCP", func(t *testing.T, n int, within time.Duration) (all []*answertest.Run) {
		eng, ctx := &durable.Engine{Journal: new(store.MemoryJournal)}, context.Background()
		s := &mcp.Service{}
		var tills []*answertest.Till
		for i := range n {
			tills = append(tills, answertest.NewTill(t))
			a := tills[i].Agent(5+i, within)
			s.Agents = append(s.Agents, mcp.Offer{Agent: a, Description: "Pays.",
				Runner: func(string) pawl.Runner { return eng.Runner(a.Name, a) }})
		}
		h, err := s.Handler(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		web := httptest.NewServer(h)
		t.Cleanup(web.Close)
		c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"},
			&sdk.ClientOptions{MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
				ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
					return nil, nil
				}}).
			Connect(ctx, &sdk.StreamableClientTransport{Endpoint: web.URL, HTTPClient: web.Client()}, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		t.Cleanup(func() {
			for _, till := range tills {
				till.Let()
			}
		})
		states := map[string]string{} // by the digest of the question
		for i, offer := range s.Agents {
			id, till := offer.Agent.Name, tills[i]
			call := func(state string, in sdk.InputResponseMap) (*sdk.CallToolResult, string) {
				res, err := c.CallTool(ctx, &sdk.CallToolParams{Name: id, Arguments: map[string]any{"task": fmt.Sprint("pay ", i)},
					RequestState: state, InputResponses: in})
				switch {
				case err != nil:
					return nil, err.Error()
				case res.NeedsInput() || !res.IsError:
					return res, answertest.Taken
				}
				return res, answertest.WordOf(res.Content[0].(*sdk.TextContent).Text)
			}
			open := func() []pawl.PendingCall {
				all, err := eng.Pending(ctx, id)
				if err != nil {
					t.Error(err)
				}
				return all
			}
			res, _ := call("", nil)
			if res == nil || !res.NeedsInput() || len(open()) != 1 {
				t.Fatalf("it does not ask: %+v", res)
			}
			question := open()[0]
			states[question.Digest] = res.RequestState
			begun, calls := make(chan struct{}), new(sync.WaitGroup)
			all = append(all, &answertest.Run{Question: question, Till: till,
				Answer: func(to answertest.To, d llm.Decision) string {
					state, word, started := states[d.Digest], make(chan string, 1), till.Begun
					if to.Lost {
						state = "invented"
					}
					select {
					case <-till.Open: // the call ends at once
						started = nil
					default:
					}
					calls.Go(func() {
						_, w := call(state, sdk.InputResponseMap{d.Digest: &sdk.ElicitResult{Action: "accept",
							Content: map[string]any{"approve": d.Approve}}})
						word <- w
					})
					select {
					case w := <-word:
						return w
					case <-started:
						close(begun)
						return answertest.Taken
					}
				},
				Begin: func() { <-begun },
				End:   func() int { till.Let(); calls.Wait(); return len(open()) }})
		}
		return all
	})
}
