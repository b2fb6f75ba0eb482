package remember

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

//go:embed forget.md
var forgetText string

func (s *Set) forgetTool() *pawl.Tool {
	return &pawl.Tool{
		Name:        "memory_forget",
		Description: strings.TrimSpace(forgetText),
		Input:       json.RawMessage(`{"type":"object","properties":{"id":{"type":"string","minLength":1,"description":"As memory_list shows it."}},"required":["id"],"additionalProperties":false}`),
		Effect:      pawl.EffectIdempotent,
		Run:         toolrun.Func(s.forget),
	}
}

type forgetArgs struct{ ID string }

func (s *Set) forget(ctx context.Context, a forgetArgs) (llm.ToolResult, error) {
	scope, err := s.whose(ctx)
	if err != nil {
		return llm.ToolResult{}, err
	}
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
