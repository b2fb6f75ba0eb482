package remember

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

type listArgs struct {
	Query, After string
	Limit        float64
}

func (s *Set) list(ctx context.Context, scope store.Scope, a listArgs) (llm.ToolResult, error) {
	limit := 20
	if a.Limit >= 1 {
		limit = int(min(a.Limit, 100))
	}
	var list []store.Memory
	more := false
	if strings.TrimSpace(a.Query) != "" {
		hits, err := s.db.SearchMemories(ctx, scope, store.Query{Text: a.Query, Limit: limit})
		if err != nil {
			return llm.ToolResult{}, err
		}
		for _, h := range hits {
			list = append(list, h.Memory)
		}
	} else {
		var err error
		if list, err = s.db.Memories(ctx, scope, store.Page{After: a.After, Limit: limit + 1}); err != nil {
			return llm.ToolResult{}, err
		}
		if more = len(list) > limit; more {
			list = list[:limit]
		}
	}
	if len(list) == 0 {
		if a.Query != "" {
			return llm.TextResult(fmt.Sprintf("Nothing is remembered that has words of %q.", a.Query)), nil
		}
		return llm.TextResult("Nothing is remembered."), nil
	}
	var b strings.Builder
	for _, m := range list {
		fmt.Fprintf(&b, "%s  %s  %s\n", m.ID, m.Created.Format(time.DateOnly), strings.Join(strings.Fields(m.Text), " "))
	}
	if more {
		fmt.Fprintf(&b, "[there is more; go on with after %q]\n", list[len(list)-1].ID)
	}
	return llm.TextResult(strings.TrimSuffix(b.String(), "\n")), nil
}
