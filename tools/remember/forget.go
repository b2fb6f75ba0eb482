package remember

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

func (s *Set) forgetTool() *pawl.Tool {
	return toolrun.Define(definitions, "forget", &pawl.Tool{
		Name:   "memory_forget",
		Effect: pawl.EffectIdempotent,
		Run:    toolrun.Func(s.forget),
	})
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
