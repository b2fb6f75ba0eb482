// Package speed has the job that pawl's speed is measured with, and the test that counts what it
// allocates. allocations.txt has a row for each kind of run. A change that makes a run dearer fails
// the test, on a busy machine too, because allocations do not depend on the time.
//
//	go test ./internal/test/speed -v        prints each count
//	go test ./internal/test/speed -update   writes the counts, with the reason in the commit
package speed

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// The texts of the job.
const (
	Instructions = "You are a careful assistant. Use the tools when they help, then answer in one short paragraph."
	Task         = "Find what changed under /a/b, and report it."
	Schema       = `{"type":"object","properties":{` +
		`"path":{"type":"string","description":"Path of the file or folder to look at"},` +
		`"query":{"type":"string","description":"What to look for"},` +
		`"limit":{"type":"integer","description":"How many results to return at most"}},` +
		`"required":["path","query","limit"],"additionalProperties":false}`
)

// Result is what each tool returns.
var Result = strings.Repeat("result-line 0123456789 abcdefgh\n", 8)

// Tool is a tool of the job. Both pawl and the loops written by hand call it.
type Tool struct {
	Name, Description string
	Run               func(args []byte) (string, error)
}

// Tools returns the n tools of the job. Each decodes and checks its arguments.
func Tools(n int) []Tool {
	tools := make([]Tool, n)
	for i := range tools {
		name := fmt.Sprintf("tool_%d", i)
		tools[i] = Tool{
			Name:        name,
			Description: fmt.Sprintf("Tool number %d: looks something up under a path and returns what it found.", i),
			Run:         look,
		}
	}
	return tools
}

func look(args []byte) (string, error) {
	var in struct {
		Path  string `json:"path"`
		Query string `json:"query"`
		Limit int    `json:"limit"`
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return "", err
	}
	if in.Path != "/a/b" || in.Limit != 10 {
		return "", fmt.Errorf("the arguments are not those of the job: %s", args)
	}
	return Result, nil
}

// Offered returns tools for pawl. effect is the effect of all of them.
func Offered(tools []Tool, effect pawl.Effect) []pawl.Toolset {
	var all []pawl.Toolset
	for _, t := range tools {
		all = append(all, &pawl.Tool{
			Name:        t.Name,
			Description: t.Description,
			Input:       json.RawMessage(Schema),
			Effect:      effect,
			Run: func(_ context.Context, call llm.ToolCall) (llm.ToolResult, error) {
				text, err := t.Run(call.Args)
				return llm.TextResult(text), err
			},
		})
	}
	return all
}

// History returns n messages of user and assistant in turn, before the task.
func History(n int) []llm.Message {
	msgs := make([]llm.Message, 0, n+1)
	for i := range n {
		text := fmt.Sprintf("message %d: %s", i, strings.Repeat("the quick brown fox jumps over the lazy dog ", 5))
		if i%2 == 0 {
			msgs = append(msgs, llm.User(text))
		} else {
			msgs = append(msgs, llm.Assistant(llm.Text{Text: text}))
		}
	}
	return msgs
}
