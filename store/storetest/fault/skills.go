package fault

import (
	"context"
	"errors"
	"slices"

	"github.com/pawl-go/pawl/pawltest/mutant"
	"github.com/pawl-go/pawl/store"
)

// Skills returns the faults that storetest.TestSkills finds.
func Skills() []mutant.Mutant[store.Skills] {
	return []mutant.Mutant[store.Skills]{
		ofSkills("drops the tags", "life", func(f *skills) {
			next := f.onPutSkill
			f.onPutSkill = func(ctx context.Context, sc store.Scope, k store.Skill) (store.Skill, error) {
				k.Tags = nil
				return next(ctx, sc, k)
			}
		}),
		ofSkills("drops the author", "life", func(f *skills) {
			next := f.onPutSkill
			f.onPutSkill = func(ctx context.Context, sc store.Scope, k store.Skill) (store.Skill, error) {
				k.By = ""
				return next(ctx, sc, k)
			}
		}),
		ofSkills("changes any version", "life", func(f *skills) {
			next, db := f.onPutSkill, f.skillStore
			f.onPutSkill = func(ctx context.Context, sc store.Scope, k store.Skill) (store.Skill, error) {
				old, err := db.Skill(ctx, sc, k.Name, 0)
				if err == nil {
					k.Version = old.Version
				}
				return next(ctx, sc, k)
			}
		}),
		ofSkills("returns the newest of any version", "life", func(f *skills) {
			next := f.onSkill
			f.onSkill = func(ctx context.Context, sc store.Scope, name string, version int) (store.Skill, error) {
				return next(ctx, sc, name, 0)
			}
		}),
		ofSkills("lists texts", "life", func(f *skills) {
			next := f.onSkills
			f.onSkills = func(ctx context.Context, sc store.Scope, p store.Page) ([]store.Skill, error) {
				all, err := next(ctx, sc, p)
				for i := range all {
					all[i].Text = "text"
				}
				return all, err
			}
		}),
		ofSkills("finds nothing", "life", func(f *skills) {

			f.onSearchSkills = func(ctx context.Context, sc store.Scope, q store.Query) ([]store.SkillHit, error) {
				return nil, nil
			}
		}),
		ofSkills("renames nothing", "life", func(f *skills) {
			db := f.skillStore
			f.onRenameSkill = func(ctx context.Context, sc store.Scope, name, to string) error {
				_, err := db.Skill(ctx, sc, name, 0)
				return err
			}
		}),
		ofSkills("renames over another skill", "life", func(f *skills) {
			next := f.onRenameSkill
			f.onRenameSkill = func(ctx context.Context, sc store.Scope, name, to string) error {
				err := next(ctx, sc, name, to)
				if errors.Is(err, store.ErrConflict) {
					return nil
				}
				return err
			}
		}),
		ofSkills("renames the newest version only", "life", func(f *skills) {
			db := f.skillStore
			f.onRenameSkill = func(ctx context.Context, sc store.Scope, name, to string) error {
				k, err := db.Skill(ctx, sc, name, 0)
				if err != nil {
					return err
				}
				if _, taken := db.Skill(ctx, sc, to, 0); taken == nil {
					return store.ErrConflict
				}
				if err := db.DeleteSkill(ctx, sc, name); err != nil {
					return err
				}
				k.Name, k.Version = to, 0
				_, err = db.PutSkill(ctx, sc, k)
				return err
			}
		}),
		ofSkills("keeps a deleted skill", "life", func(f *skills) {
			db := f.skillStore
			f.onDeleteSkill = func(ctx context.Context, sc store.Scope, name string) error {
				_, err := db.Skill(ctx, sc, name, 0)
				return err
			}
		}),
		ofSkills("ignores where a page begins", "lists", func(f *skills) {
			next := f.onSkills
			f.onSkills = func(ctx context.Context, sc store.Scope, p store.Page) ([]store.Skill, error) {
				p.After = ""
				return next(ctx, sc, p)
			}
		}),
		ofSkills("lists in reverse", "lists", func(f *skills) {
			next := f.onSkills
			f.onSkills = func(ctx context.Context, sc store.Scope, p store.Page) ([]store.Skill, error) {
				all, err := next(ctx, sc, p)
				slices.Reverse(all)
				return all, err
			}
		}),
		ofSkills("ignores the thread in searches", "scopes", func(f *skills) {
			next := f.onSearchSkills
			f.onSearchSkills = func(ctx context.Context, sc store.Scope, q store.Query) ([]store.SkillHit, error) {
				sc.Thread = ""
				return next(ctx, sc, q)
			}
		}),
		ofSkills("deletes skills of other users", "property", func(f *skills) {
			next := f.onDeleteSkill
			f.onDeleteSkill = func(ctx context.Context, sc store.Scope, name string) error {
				err := next(ctx, sc, name)
				if errors.Is(err, store.ErrNotFound) {
					return next(ctx, wider(sc), name)
				}
				return err
			}
		}),
		ofSkills("takes an empty skill", "bad input", func(f *skills) {
			next := f.onPutSkill
			f.onPutSkill = func(ctx context.Context, sc store.Scope, k store.Skill) (store.Skill, error) {
				if k.Text == "" {
					k.Text = "x"
				}
				return next(ctx, sc, k)
			}
		}),
	}
}

func ofSkills(name, part string, replace func(f *skills)) mutant.Mutant[store.Skills] {
	return mutant.Mutant[store.Skills]{
		Name:  name,
		Part:  part,
		Plant: func(db store.Skills) store.Skills { return plantSkills(db, replace) },
	}
}
