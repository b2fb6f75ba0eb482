package skill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

const namePattern = `^[A-Za-z0-9][A-Za-z0-9 _.-]{0,63}$`

// serial makes calls that change skills run in call order.
func serial(json.RawMessage) string { return "skills" }

type createArgs struct {
	Name, Description, Instructions, Model string
	Tags, Tools, References                []string
}

func (s *Set) create(ctx context.Context, a createArgs) (llm.ToolResult, error) {
	scope, err := s.whose(ctx)
	if err != nil {
		return llm.ToolResult{}, err
	}
	if s.folders.find(a.Name) != nil {
		return taken(a.Name), nil
	}
	k := store.Skill{Name: a.Name, Description: a.Description, Text: a.Instructions, Tags: a.Tags, Tools: a.Tools,
		Model: a.Model, References: a.References}
	if v := pawl.InvocationFrom(ctx); v != nil {
		k.By = v.Agent
	}
	k, err = s.db.PutSkill(ctx, scope, k)
	if errors.Is(err, store.ErrConflict) {
		return taken(a.Name), nil
	}
	if err != nil {
		return llm.ToolResult{}, err
	}
	return stored(k, "Stored as the skill %s, version %d.")
}

func taken(name string) llm.ToolResult {
	return llm.ErrorResult(fmt.Sprintf("There is a skill %s already. Load it; improve it with skill_update, or choose another name.", name))
}

func stored(k store.Skill, words string) (llm.ToolResult, error) {
	return toolrun.Result(fmt.Sprintf(words, k.Name, k.Version), map[string]any{"id": k.Name, "version": k.Version})
}
