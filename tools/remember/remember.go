package remember

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// maxContent is the maximum length of a memory. A longer text belongs into a document.
const maxContent = 2000

type rememberArgs struct{ Content string }

func (s *Set) remember(ctx context.Context, scope store.Scope, a rememberArgs) (llm.ToolResult, error) {
	text := strings.TrimSpace(a.Content)
	if text == "" || len(text) > 4*maxContent {
		return llm.ErrorResult("content must be one sentence that says something"), nil
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

type forgetArgs struct{ ID string }

func (s *Set) forget(ctx context.Context, scope store.Scope, a forgetArgs) (llm.ToolResult, error) {
	m, err := s.db.Memory(ctx, scope, a.ID)
	if err == nil {
		err = s.db.ForgetMemory(ctx, scope, a.ID)
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		return llm.ErrorResult(fmt.Sprintf("Nothing is remembered as %q. memory_list shows the ids.", a.ID)), nil
	case err != nil:
		return llm.ToolResult{}, err
	}
	return llm.TextResult("Forgotten: " + m.Text), nil
}
