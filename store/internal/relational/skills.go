package relational

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/store"
)

const (
	skillColumns = "n, name, version, description, body, more, created, updated"
	ofSkill      = " from skills where tenant = ? and USER = ? and thread = ? and name = ?"
	newestSkill  = "select " + skillColumns + ofSkill + " and newest"
)

// moreOfSkill holds the fields of a skill that no query uses separately.
type moreOfSkill struct {
	Tags       []string `json:"tags,omitzero"`
	Tools      []string `json:"tools,omitzero"`
	Model      string   `json:"model,omitzero"`
	References []string `json:"references,omitzero"`
	By         string   `json:"by,omitzero"`
}

// skillRow is a skill with the number of its row.
type skillRow struct {
	n int64
	store.Skill
}

func scanSkillRow(r Row) (k skillRow, err error) {
	var text string
	var more moreOfSkill
	if err = r.Scan(&k.n, &k.Name, &k.Version, &k.Description, &k.Text, &text, (*timeField)(&k.Created),
		(*timeField)(&k.Updated)); err != nil {
		return k, err
	}
	err = json.Unmarshal([]byte(text), &more)
	k.Tags = more.Tags
	k.Tools = more.Tools
	k.Model = more.Model
	k.References = more.References
	k.By = more.By
	return k, err
}

func scanSkill(r Row) (store.Skill, error) {
	k, err := scanSkillRow(r)
	return k.Skill, err
}

func scanSummary(r Row) (store.Skill, error) {
	k, err := scanSkillRow(r)
	k.Text = ""
	return k.Skill, err
}

func (db *DB) changeSkills(ctx context.Context, s store.Scope, fn func(tx Conn) error) error {
	return db.backend.Change(ctx, Item{Kind: "skills", Scope: s}, fn)
}

// PutSkill stores a new skill, or a change to its newest version.
func (db *DB) PutSkill(ctx context.Context, s store.Scope, k store.Skill) (store.Skill, error) {
	if err := valid(s, k.Name); err != nil {
		return k, err
	}
	if strings.TrimSpace(k.Text) == "" {
		return k, errors.New("the skill has no text")
	}
	more, err := json.Marshal(moreOfSkill{k.Tags, k.Tools, k.Model, k.References, k.By})
	if err != nil {
		return k, err
	}
	db.plain(&k.Description, &k.Text)
	now := db.backend.Now()
	err = db.changeSkills(ctx, s, func(tx Conn) error {
		old, err := one(ctx, tx, "skill "+k.Name, scanSkillRow, newestSkill, s.Tenant, s.User, s.Thread, k.Name)
		switch {
		case errors.Is(err, store.ErrNotFound) && k.Version == 0:
			k.Created = now
		case err != nil:
			return err
		case k.Version == 0:
			return fmt.Errorf("there is a skill %s already: %w", k.Name, store.ErrConflict)
		case k.Version != old.Version:
			return fmt.Errorf("skill %s has version %d, not %d: %w", k.Name, old.Version, k.Version, store.ErrConflict)
		default:
			k.Created = old.Created
			if err := outdate(ctx, tx, old); err != nil {
				return err
			}
		}
		k.Version++

		n, err := number(ctx, tx, "skill", `insert into skills
			(tenant, USER, thread, name, version, newest, description, body, more, created, updated)
			values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) returning n`,
			s.Tenant, s.User, s.Thread, k.Name, k.Version, true, k.Description, k.Text, string(more),
			stamp(k.Created), stamp(now))
		if err != nil {
			return err
		}
		return db.backend.PutWords(ctx, tx, skills, s, []int64{n}, []string{wordsOfSkill(k)})
	})
	k.Created = moment(stamp(k.Created))
	k.Updated = moment(stamp(now))
	return k, err
}

// outdate records that a version of a skill is no longer the newest. No search finds it then.
func outdate(ctx context.Context, tx Conn, old skillRow) error {
	if _, err := tx.Exec(ctx, "delete from skills_words where WORDROW = ?", old.n); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, "update skills set newest = ? where n = ?", false, old.n)
	return err
}

// Skill returns a version of a skill. Version 0 means the newest.
func (db *DB) Skill(ctx context.Context, s store.Scope, name string, version int) (store.Skill, error) {
	if err := valid(s, name); err != nil {
		return store.Skill{}, err
	}
	return one(ctx, db.backend.Read(), "skill "+name, scanSkill,
		"select "+skillColumns+ofSkill+" and (version = ? or ? = 0 and newest)",
		s.Tenant, s.User, s.Thread, name, version, version)
}

// Skills lists the newest versions by name, without their Text.
func (db *DB) Skills(ctx context.Context, s store.Scope, p store.Page) ([]store.Skill, error) {
	return page(ctx, db, s, p, scanSummary, "select "+skillColumns+
		" from skills where tenant = ? and USER = ? and thread = ? and newest and name > ? order by name limit ?")
}

// RenameSkill renames a skill with all its versions.
func (db *DB) RenameSkill(ctx context.Context, s store.Scope, name, to string) error {
	if err := valid(s, name, to); err != nil {
		return err
	}
	return db.changeSkills(ctx, s, func(tx Conn) error {
		_, err := one(ctx, tx, "", scanSkill, newestSkill, s.Tenant, s.User, s.Thread, to)
		switch {
		case err == nil && to != name:
			return fmt.Errorf("there is a skill %s already: %w", to, store.ErrConflict)
		case err != nil && !errors.Is(err, store.ErrNotFound):
			return err
		}

		k, err := one(ctx, tx, "skill "+name, scanSkillRow, newestSkill, s.Tenant, s.User, s.Thread, name)
		if err != nil {
			return err
		}
		k.Name = to

		// Only the newest version is found by its words.
		_, err = tx.Exec(ctx, "update skills set name = ? where tenant = ? and USER = ? and thread = ? and name = ?",
			to, s.Tenant, s.User, s.Thread, name)
		if err != nil {
			return err
		}
		return db.backend.PutWords(ctx, tx, skills, s, []int64{k.n}, []string{wordsOfSkill(k.Skill)})
	})
}

// wordsOfSkill returns the text by which a skill is found.
func wordsOfSkill(k store.Skill) string {
	return strings.Join([]string{k.Name, strings.Join(k.Tags, " "), k.Description, k.Text}, "\n")
}

// DeleteSkill deletes a skill with all its versions.
func (db *DB) DeleteSkill(ctx context.Context, s store.Scope, name string) error {
	return db.drop(ctx, s, "skill", name, ofSkill)
}

var skills = Kind{Table: "skills", name: "t.name", place: "0", Also: "and t.newest"}

// SearchSkills finds skills by their words, the best first.
func (db *DB) SearchSkills(ctx context.Context, s store.Scope, q store.Query) ([]store.SkillHit, error) {
	q.Vector, q.Shared = store.Vector{}, false
	return search(ctx, db, skills, s, q, func(r Row) (int64, store.SkillHit, error) {
		k, err := scanSkillRow(r)
		k.Text = ""
		return k.n, store.SkillHit{Skill: k.Skill}, err
	}, func(h *store.SkillHit) *float64 { return &h.Score }, "select "+skillColumns+" from skills t")
}
