package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/internal/words"
)

const skillColumns = "name, version, description, body, more, created, updated"

// moreOfSkill holds the fields of a skill that no query uses separately.
type moreOfSkill struct {
	Tags       []string `json:"tags,omitzero"`
	Tools      []string `json:"tools,omitzero"`
	Model      string   `json:"model,omitzero"`
	References []string `json:"references,omitzero"`
	By         string   `json:"by,omitzero"`
}

func scanSkill(r *sql.Rows) (k store.Skill, err error) {
	var text string
	var more moreOfSkill
	var created, updated int64
	if err = r.Scan(&k.Name, &k.Version, &k.Description, &k.Text, &text, &created, &updated); err != nil {
		return k, err
	}
	k.Created, k.Updated = moment(created), moment(updated)
	err = json.Unmarshal([]byte(text), &more)
	k.Tags, k.Tools, k.Model, k.References, k.By = more.Tags, more.Tools, more.Model, more.References, more.By
	return k, err
}

func scanSummary(r *sql.Rows) (store.Skill, error) {
	k, err := scanSkill(r)
	k.Text = ""
	return k, err
}

const ofSkill = " from skills where tenant = ? and user = ? and thread = ? and name = ?"

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
	now := db.now()
	err = db.change(ctx, func(tx *sql.Tx) error {
		old, err := one(ctx, tx, "skill", scanSkill, "select "+skillColumns+ofSkill+" and newest = 1", s.Tenant, s.User, s.Thread, k.Name)
		switch {
		case errors.Is(err, store.ErrNotFound) && k.Version != 0:
			return fmt.Errorf("skill %s: %w", k.Name, store.ErrNotFound)
		case errors.Is(err, store.ErrNotFound):
			k.Created = now
		case err != nil:
			return err
		case k.Version == 0:
			return fmt.Errorf("there is a skill %s already: %w", k.Name, store.ErrConflict)
		case k.Version != old.Version:
			return fmt.Errorf("skill %s has version %d, not %d: %w", k.Name, old.Version, k.Version, store.ErrConflict)
		default:
			k.Created = old.Created
			if _, err := tx.ExecContext(ctx, "delete from skills_words where rowid = (select n"+ofSkill+" and newest = 1)", s.Tenant, s.User, s.Thread, k.Name); err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, "update skills set newest = 0 where tenant = ? and user = ? and thread = ? and name = ?", s.Tenant, s.User, s.Thread, k.Name); err != nil {
				return err
			}
		}
		k.Version++
		var n int64
		if err := tx.QueryRowContext(ctx, `insert into skills (tenant, user, thread, name, version, newest, description, body, more, created, updated)
			values (?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?) returning n`, s.Tenant, s.User, s.Thread, k.Name, k.Version, k.Description, k.Text, string(more), stamp(k.Created), stamp(now)).Scan(&n); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "insert into skills_words (rowid, text) values (?, ?)", n, words.Spaced(wordsOfSkill(k)))
		return err
	})
	k.Created, k.Updated = moment(stamp(k.Created)), moment(stamp(now))
	return k, err
}

// Skill returns a version of a skill. Version 0 means the newest.
func (db *DB) Skill(ctx context.Context, s store.Scope, name string, version int) (store.Skill, error) {
	if err := valid(s, name); err != nil {
		return store.Skill{}, err
	}
	return one(ctx, db.read, "skill "+name, scanSkill, "select "+skillColumns+ofSkill+" and (version = ? or ? = 0 and newest = 1)", s.Tenant, s.User, s.Thread, name, version, version)
}

// Skills lists the newest versions by name, without their Text.
func (db *DB) Skills(ctx context.Context, s store.Scope, p store.Page) ([]store.Skill, error) {
	if err := valid(s); err != nil {
		return nil, err
	}
	return list(ctx, db.read, scanSummary, "select "+skillColumns+" from skills where tenant = ? and user = ? and thread = ? and newest = 1 and name > ? order by name limit ?",
		s.Tenant, s.User, s.Thread, p.After, p.Size())
}

// RenameSkill renames a skill with all its versions.
func (db *DB) RenameSkill(ctx context.Context, s store.Scope, name, to string) error {
	if err := valid(s, name, to); err != nil {
		return err
	}
	return db.change(ctx, func(tx *sql.Tx) error {
		switch _, err := one(ctx, tx, "", scanSkill, "select "+skillColumns+ofSkill+" and newest = 1", s.Tenant, s.User, s.Thread, to); {
		case err == nil && to != name:
			return fmt.Errorf("there is a skill %s already: %w", to, store.ErrConflict)
		case err != nil && !errors.Is(err, store.ErrNotFound):
			return err
		}
		k, err := one(ctx, tx, "skill "+name, scanSkill, "select "+skillColumns+ofSkill+" and newest = 1", s.Tenant, s.User, s.Thread, name)
		if err != nil {
			return err
		}
		k.Name = to
		if _, err := tx.ExecContext(ctx, "update skills set name = ? where tenant = ? and user = ? and thread = ? and name = ?", to, s.Tenant, s.User, s.Thread, name); err != nil {
			return err
		}
		number := "(select n" + ofSkill + " and newest = 1)"
		if _, err := tx.ExecContext(ctx, "delete from skills_words where rowid = "+number, s.Tenant, s.User, s.Thread, to); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "insert into skills_words (rowid, text) values ("+number+", ?)", s.Tenant, s.User, s.Thread, to, words.Spaced(wordsOfSkill(k)))
		return err
	})
}

// wordsOfSkill returns the text by which a skill is found.
func wordsOfSkill(k store.Skill) string {
	return strings.Join([]string{k.Name, strings.Join(k.Tags, " "), k.Description, k.Text}, "\n")
}

// DeleteSkill deletes a skill with all its versions.
func (db *DB) DeleteSkill(ctx context.Context, s store.Scope, name string) error {
	if err := valid(s, name); err != nil {
		return err
	}
	res, err := db.write.ExecContext(ctx, "delete"+ofSkill, s.Tenant, s.User, s.Thread, name)
	return changed(res, err, "skill "+name)
}

// SearchSkills finds skills by their words, the best first.
func (db *DB) SearchSkills(ctx context.Context, s store.Scope, q store.Query) ([]store.SkillHit, error) {
	q.Vector, q.Shared = store.Vector{}, false
	found, err := db.find(ctx, searched{table: "skills", words: "skills_words", id: "t.name", also: "and t.newest = 1"}, s, q)
	return load(found, err, func(n, score any) (store.SkillHit, error) {
		k, err := one(ctx, db.read, "skill", scanSummary, "select "+skillColumns+" from skills where n = ? and tenant = ? and user = ?", n, s.Tenant, s.User)
		return store.SkillHit{Skill: k, Score: score.(float64)}, err
	})
}
