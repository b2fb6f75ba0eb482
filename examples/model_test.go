package examples

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// begin model

// Keyword is a model without a network: it calls the tool whose name occurs in the question, and
// answers with the result. It shows all duties of a Model: fragments in order, and a finish reason
// on the last.
type Keyword struct{}

var _ llm.Model = Keyword{}

// Stream yields one reply. An error would be yielded in place of a fragment, and nothing after it.
func (Keyword) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		if err := context.Cause(ctx); err != nil {
			yield(llm.Delta{}, err)
			return
		}
		if len(req.Messages) == 0 {
			yield(llm.Delta{}, errors.New("keyword: nothing was asked"))
			return
		}
		last := req.Messages[len(req.Messages)-1]
		if last.Role != llm.RoleTool {
			for _, t := range req.Tools {
				if strings.Contains(last.Text(), t.Name) {
					call := llm.ToolCall{ID: "call_1", Name: t.Name, Args: []byte(`{}`)}
					_ = yield(llm.Delta{Part: call, Done: true}, nil) &&
						yield(llm.Delta{Finish: llm.FinishReasonToolCalls}, nil)
					return
				}
			}
		}
		var words []string
		for _, p := range last.Parts {
			if r, ok := p.(llm.ToolResult); ok {
				words = append(words, r.Text())
			}
		}
		for i, w := range words { // a fragment at a time; the first one opens the part
			if i > 0 {
				w = " " + w
			}
			if !yield(llm.Delta{Part: llm.Text{Text: w}}, nil) {
				return // the caller has heard enough
			}
		}
		usage := &llm.Usage{Input: len(req.Messages), Output: len(words)}
		yield(llm.Delta{Finish: llm.FinishReasonStop, Usage: usage}, nil)
	}
}

// end model

// Your own Model works with every tool, limit and middleware, because an agent uses this one
// method.
func Example_model() {
	clock := pawl.Func("clock", "Tells the time.", func(context.Context, struct{}) (string, error) {
		return "It is noon.", nil
	})
	agent := &pawl.Agent{Model: Keyword{}, Tools: []pawl.Toolset{clock}}
	res, err := agent.Run(context.Background(), llm.User("What does the clock say?"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Text())
	fmt.Println(res.Stop, res.Spent.Requests, "requests")
	// Output:
	// It is noon.
	// answer 2 requests
}
