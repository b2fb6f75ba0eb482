package skill

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

//go:embed create.md
var createText string

// fields describes the arguments that skill_create and skill_update share.
const fields = `"description":{"type":"string","minLength":1,"maxLength":1000,"description":"What it is for, in a sentence: it is found and chosen by it."},` +
	`"instructions":{"type":"string","minLength":1,"maxLength":32000,"description":"How it is done."},` +
	`"tags":{"type":"array","items":{"type":"string"},"maxItems":20,"description":"Words to find it by."},` +
	`"tools":{"type":"array","items":{"type":"string"},"maxItems":50,"description":"Tools that it needs."},` +
	`"model":{"type":"string","description":"The model that does it best."},` +
	`"references":{"type":"array","items":{"type":"string"},"maxItems":20,"description":"Other skills that go with it."}`

const namePattern = `^[A-Za-z0-9][A-Za-z0-9 _.-]{0,63}$`

func (s *Set) createTool() *pawl.Tool {
	return &pawl.Tool{
		Name:        "skill_create",
		Description: strings.TrimSpace(createText),
		Input: json.RawMessage(`{"type":"object","properties":{` +
			`"name":{"type":"string","pattern":"` + namePattern + `","description":"Short and telling, such as release-notes."},` + fields +
			`},"required":["name","description","instructions"],"additionalProperties":false}`),
		Effect: pawl.EffectWrite,
		Serial: serial,
		Run:    toolrun.Func(s.create),
	}
}

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
	return kept(k, "Kept as the skill %s, version %d.")
}

func taken(name string) llm.ToolResult {
	return llm.ErrorResult(fmt.Sprintf("There is a skill %s already. Load it; improve it with skill_update, or choose another name.", name))
}

func kept(k store.Skill, words string) (llm.ToolResult, error) {
	data, err := json.Marshal(map[string]any{"id": k.Name, "version": k.Version})
	return llm.ToolResult{Parts: []llm.Part{llm.Text{Text: fmt.Sprintf(words, k.Name, k.Version)}}, Data: data}, err
}
