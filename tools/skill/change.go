package skill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

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
	// A skill of a folder would hide the new one.
	if s.folders.find(a.Name) != nil {
		return taken(a.Name), nil
	}

	k := store.Skill{
		Name:        a.Name,
		Description: a.Description,
		Text:        a.Instructions,
		Tags:        a.Tags,
		Tools:       a.Tools,
		Model:       a.Model,
		References:  a.References,
	}
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
	return llm.ErrorResult(fmt.Sprintf("There is a skill %s already. Load it; improve it with skill_update, "+
		"or choose another name.", name))
}

func stored(k store.Skill, words string) (llm.ToolResult, error) {
	return toolrun.Result(fmt.Sprintf(words, k.Name, k.Version), map[string]any{"id": k.Name, "version": k.Version})
}

// updateArgs holds the new values. Nil means unchanged.
type updateArgs struct {
	ID                                     string
	Name, Description, Instructions, Model *string
	Tags, Tools, References                *[]string
}

func (s *Set) update(ctx context.Context, a updateArgs) (llm.ToolResult, error) {
	if s.folders.find(a.ID) != nil {
		return llm.ErrorResult(fmt.Sprintf("The skill %s comes with the program and cannot be changed. "+
			"Make one of your own under another name.", a.ID)), nil
	}
	scope, err := s.whose(ctx)
	if err != nil {
		return llm.ToolResult{}, err
	}
	k, err := s.db.Skill(ctx, scope, a.ID, 0)
	if errors.Is(err, store.ErrNotFound) {
		return missing(a.ID), nil
	}
	if err != nil {
		return llm.ToolResult{}, err
	}

	changed := a.apply(&k)
	// The name is the key in the store. So a rename is a change of its own, which may find the name
	// taken.
	if a.Name != nil && *a.Name != k.Name {
		err := s.rename(ctx, scope, k.Name, *a.Name)
		if errors.Is(err, store.ErrConflict) {
			return taken(*a.Name), nil
		}
		if err != nil {
			return llm.ToolResult{}, err
		}
		k.Name = *a.Name
		if len(changed) == 0 {
			return stored(k, "The skill is now called %s, version %d.")
		}
		changed = append(changed, "name")
	}
	if len(changed) == 0 {
		return llm.ErrorResult("Nothing would change: give at least one field that differs."), nil
	}

	k, err = s.db.PutSkill(ctx, scope, k)
	if errors.Is(err, store.ErrConflict) {
		return llm.ErrorResult("The skill was changed concurrently. Load it again, then decide."), nil
	}
	if err != nil {
		return llm.ToolResult{}, err
	}
	return stored(k, "Changed "+strings.Join(changed, ", ")+". The skill %s has version %d now.")
}

// apply sets the fields of k that are given and differ, except for its name, and returns their
// names.
func (a *updateArgs) apply(k *store.Skill) (changed []string) {
	for _, f := range []struct {
		name  string
		value any // a pointer; nil means not given
		to    any
	}{
		{"description", a.Description, &k.Description},
		{"instructions", a.Instructions, &k.Text},
		{"tags", a.Tags, &k.Tags},
		{"tools", a.Tools, &k.Tools},
		{"model", a.Model, &k.Model},
		{"references", a.References, &k.References},
	} {
		given := reflect.ValueOf(f.value)
		if given.IsNil() {
			continue
		}
		to := reflect.ValueOf(f.to).Elem()
		if !reflect.DeepEqual(to.Interface(), given.Elem().Interface()) {
			to.Set(given.Elem())
			changed = append(changed, f.name)
		}
	}
	return changed
}

// rename renames a stored skill. The error is store.ErrConflict if the name is in use.
func (s *Set) rename(ctx context.Context, scope store.Scope, from, to string) error {
	if s.folders.find(to) != nil {
		return store.ErrConflict
	}
	return s.db.RenameSkill(ctx, scope, from, to)
}
