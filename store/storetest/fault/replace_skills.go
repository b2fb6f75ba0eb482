package fault

import (
	"context"

	"github.com/pawl-go/pawl/store"
)

// skillStore has a name that is no method of the interface, unlike Skills.
type skillStore = store.Skills

// skills is a store.Skills whose methods a fault replaces.
type skills struct {
	skillStore
	onPutSkill     func(ctx context.Context, sc store.Scope, k store.Skill) (store.Skill, error)
	onSkill        func(ctx context.Context, sc store.Scope, name string, version int) (store.Skill, error)
	onSkills       func(ctx context.Context, sc store.Scope, p store.Page) ([]store.Skill, error)
	onRenameSkill  func(ctx context.Context, sc store.Scope, name, to string) error
	onDeleteSkill  func(ctx context.Context, sc store.Scope, name string) error
	onSearchSkills func(ctx context.Context, sc store.Scope, q store.Query) ([]store.SkillHit, error)
}

// plantSkills returns db with a fault. replace sets the methods that have it.
func plantSkills(db store.Skills, replace func(f *skills)) store.Skills {
	f := &skills{
		skillStore:     db,
		onPutSkill:     db.PutSkill,
		onSkill:        db.Skill,
		onSkills:       db.Skills,
		onRenameSkill:  db.RenameSkill,
		onDeleteSkill:  db.DeleteSkill,
		onSearchSkills: db.SearchSkills,
	}
	replace(f)
	return f
}

func (f *skills) PutSkill(ctx context.Context, sc store.Scope, k store.Skill) (store.Skill, error) {
	return f.onPutSkill(ctx, sc, k)
}

func (f *skills) Skill(ctx context.Context, sc store.Scope, name string, version int) (store.Skill, error) {
	return f.onSkill(ctx, sc, name, version)
}

func (f *skills) Skills(ctx context.Context, sc store.Scope, p store.Page) ([]store.Skill, error) {
	return f.onSkills(ctx, sc, p)
}

func (f *skills) RenameSkill(ctx context.Context, sc store.Scope, name, to string) error {
	return f.onRenameSkill(ctx, sc, name, to)
}

func (f *skills) DeleteSkill(ctx context.Context, sc store.Scope, name string) error {
	return f.onDeleteSkill(ctx, sc, name)
}

func (f *skills) SearchSkills(ctx context.Context, sc store.Scope, q store.Query) ([]store.SkillHit, error) {
	return f.onSearchSkills(ctx, sc, q)
}
