package storetest

import (
	"context"
	"strings"

	"github.com/pawl-go/pawl/store"
)

func skillParts() []part[store.Skills] {
	return []part[store.Skills]{
		{"life", skillLife},
		{"lists", skillLists},
		{"scopes", func(s *suite[store.Skills]) { s.scopes(skillItems(s.db)) }},
		{"property", func(s *suite[store.Skills]) { s.property(skillItems(s.db)) }},
		{"bad input", skillBad},
	}
}

func skillItems(db store.Skills) items {
	return items{
		kind: "skill",
		put: func(ctx context.Context, sc store.Scope, name, words string) error {
			old, err := db.Skill(ctx, sc, name, 0)
			if err != nil && !isAbsent(err) {
				return err
			}
			return only(db.PutSkill(ctx, sc, store.Skill{Name: name, Text: words, Description: words,
				Version: old.Version}))
		},
		remove: db.DeleteSkill,
		get: func(ctx context.Context, sc store.Scope, name string) (string, error) {
			k, err := db.Skill(ctx, sc, name, 0)
			return k.Text, err
		},
		list: func(ctx context.Context, sc store.Scope) ([]string, error) {
			return wordsOf(func(k store.Skill) string { return k.Description })(db.Skills(ctx, sc, store.Page{}))
		},
		find: func(ctx context.Context, sc store.Scope, q store.Query) ([]string, error) {
			return wordsOf(func(h store.SkillHit) string { return h.Description })(db.SearchSkills(ctx, sc, q))
		},
	}
}

func skillLife(s *suite[store.Skills]) {
	k := must(s.db.PutSkill(s.ctx, alice, store.Skill{Name: "brew", Description: "Makes coffee.",
		Text: "Grind, pour, wait.", Tags: []string{"kitchen"}, Tools: []string{"kettle"}, Model: "m",
		References: []string{"tea"}, By: "alice"}))
	if k.Version != 1 {
		s.Errorf("a new skill has version %d", k.Version)
	}
	_, err := s.db.PutSkill(s.ctx, alice, store.Skill{Name: "brew", Text: "x"})
	s.is(err, store.ErrConflict, "a second one of that name")
	k.Text = "Grind finely, pour, wait."
	k2 := must(s.db.PutSkill(s.ctx, alice, k))
	if k2.Version != 2 || !k2.Created.Equal(k.Created) {
		s.Errorf("changed it is %+v", k2)
	}
	_, err = s.db.PutSkill(s.ctx, alice, k)
	s.is(err, store.ErrConflict, "a change to an old version")
	_, err = s.db.PutSkill(s.ctx, alice, store.Skill{Name: "none", Text: "x", Version: 3})
	s.is(err, store.ErrNotFound, "a change to none")
	if first := must(s.db.Skill(s.ctx, alice, "brew", 1)); first.Text != "Grind, pour, wait." {
		s.Errorf("version 1 is %+v", first)
	}
	s.same(k2, must(s.db.Skill(s.ctx, alice, "brew", 0)))
	must(s.db.PutSkill(s.ctx, bob, store.Skill{Name: "brew", Text: "Bob's way"}))
	if list := must(s.db.Skills(s.ctx, alice, store.Page{})); len(list) != 1 || list[0].Version != 2 ||
		list[0].Text != "" {
		s.Errorf("listed as %+v", list)
	}
	for _, q := range []string{"finely", "kitchen", "coffee", "brew"} {
		if hits := must(s.db.SearchSkills(s.ctx, alice, store.Query{Text: q})); len(hits) != 1 ||
			hits[0].Version != 2 || hits[0].Text != "" {
			s.Errorf("%s finds %+v", q, hits)
		}
	}
	must(s.db.PutSkill(s.ctx, alice, store.Skill{Name: "tea", Text: "Steep."}))
	s.is(s.db.RenameSkill(s.ctx, alice, "brew", "tea"), store.ErrConflict, "a name that another has")
	s.is(s.db.RenameSkill(s.ctx, alice, "none", "some"), store.ErrNotFound, "renaming none")
	s.ok(s.db.RenameSkill(s.ctx, alice, "brew", "espresso"))
	if k := must(s.db.Skill(s.ctx, alice, "espresso", 1)); k.Text != "Grind, pour, wait." || k.By != "alice" {
		s.Errorf("after the renaming version 1 is %+v", k)
	}
	if a, b := must(s.db.SearchSkills(s.ctx, alice, store.Query{Text: "espresso"})),
		must(s.db.SearchSkills(s.ctx, alice, store.Query{Text: "brew"})); len(a) != 1 || len(b) != 0 {
		s.Errorf("its new name finds %v, its old one %v", a, b)
	}
	s.ok(s.db.RenameSkill(s.ctx, alice, "espresso", "brew"))
	s.ok(s.db.DeleteSkill(s.ctx, alice, "brew"))
	_, err = s.db.Skill(s.ctx, alice, "brew", 1)
	s.is(err, store.ErrNotFound, "an old version of a deleted skill")
	if must(s.db.Skill(s.ctx, bob, "brew", 0)).Text != "Bob's way" {
		s.Errorf("Bob's skill went with Alice's")
	}
}

func skillLists(s *suite[store.Skills]) {
	for _, name := range []string{"c", "a", "b"} {
		must(s.db.PutSkill(s.ctx, alice, store.Skill{Name: name, Text: "x"}))
	}
	for _, row := range []struct {
		page store.Page
		want string
	}{
		{store.Page{}, "a b c"},
		{store.Page{Limit: 2}, "a b"},
		{store.Page{After: "a"}, "b c"},
	} {
		got := must(wordsOf(func(k store.Skill) string { return k.Name })(s.db.Skills(s.ctx, alice, row.page)))
		if is := strings.Join(got, " "); is != row.want {
			s.Errorf("%+v: %q, want %q", row.page, is, row.want)
		}
	}
}

func skillBad(s *suite[store.Skills]) {
	s.refused(only(s.db.PutSkill(s.ctx, alice, store.Skill{Name: "k"})), "an empty skill")
	s.refused(only(s.db.PutSkill(s.ctx, alice, store.Skill{Text: "x"})), "a skill without a name")
	s.refused(only(s.db.Skills(s.ctx, store.Scope{User: "\xff"}, store.Page{})), "a user that is no UTF-8")
	if _, err := s.db.PutSkill(s.ended(), alice, store.Skill{Name: "k", Text: "x"}); err == nil {
		s.Errorf("a skill was taken under a context that has ended")
	}
}
