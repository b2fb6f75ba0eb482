package remember

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

// maxContent is the maximum length of a memory. A longer text belongs into a document.
const maxContent = 2000

func (s *Set) rememberTool() *pawl.Tool {
	return toolrun.Define(definitions, "remember", &pawl.Tool{
		Name:   "remember",
		Effect: pawl.EffectIdempotent,
		Run:    toolrun.Func(s.remember),
	})
}

type rememberArgs struct{ Content string }

func (s *Set) remember(ctx context.Context, a rememberArgs) (llm.ToolResult, error) {
	text := strings.TrimSpace(a.Content)
	if text == "" || len(text) > 4*maxContent {
		return llm.ErrorResult("content must be one sentence that says something"), nil
	}
	scope, err := s.whose(ctx)
	if err != nil {
		return llm.ToolResult{}, err
	}
	source := "said in a conversation"
	if v := pawl.InvocationFrom(ctx); v != nil {
		source = v.Agent
	}
	m, added, err := s.db.AddMemory(ctx, scope, store.Memory{Text: text, Source: source})
	if err != nil {
		return llm.ToolResult{}, err
	}
	words := "Remembered as %s."
	if !added {
		words = "That is known already, as %s."
	}
	data, err := json.Marshal(map[string]any{"id": m.ID, "new": added})
	return llm.ToolResult{Parts: []llm.Part{llm.Text{Text: fmt.Sprintf(words, m.ID)}}, Data: data}, err
}
