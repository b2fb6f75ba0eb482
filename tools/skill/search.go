package skill

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

type searchArgs struct {
	Query string
	Limit float64
}

func (s *Set) search(ctx context.Context, a searchArgs) (llm.ToolResult, error) {
	limit := 5
	if a.Limit >= 1 {
		limit = int(min(a.Limit, 50))
	}
	found := map[string]store.Skill{}
	var stored []string
	if s.db != nil {
		scope, err := s.whose(ctx)
		if err != nil && (!errors.Is(err, errNoScope) || len(s.folders.list) == 0) {
			return llm.ToolResult{}, err
		}
		if err == nil {
			hits, err := s.db.SearchSkills(ctx, scope, store.Query{Text: a.Query, Limit: limit})
			if err != nil {
				return llm.ToolResult{}, err
			}
			for _, h := range hits {
				found[h.Name] = h.Skill
				stored = append(stored, h.Name)
			}
		}
	}
	inFolders := s.folders.search(a.Query)
	for _, name := range inFolders {
		found[name] = s.folders.find(name).Skill // the name of a folder takes precedence
	}
	ranked := store.Fuse(stored, inFolders)
	if len(ranked) == 0 {
		return llm.TextResult(fmt.Sprintf("No skill has words of %q.", a.Query)), nil
	}
	var b strings.Builder
	for _, r := range ranked[:min(limit, len(ranked))] {
		k := found[r.ID]
		fmt.Fprintf(&b, "%s: %s", k.Name, strings.Join(strings.Fields(k.Description), " "))
		if len(k.Tags) > 0 {
			fmt.Fprintf(&b, " [%s]", strings.Join(k.Tags, ", "))
		}
		if k.By != "" {
			fmt.Fprintf(&b, " (by %s)", k.By)
		}
		b.WriteByte('\n')
	}
	return llm.TextResult(strings.TrimSuffix(b.String(), "\n")), nil
}
