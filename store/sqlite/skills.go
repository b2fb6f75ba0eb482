package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/store"
)

const skillColumns = "name, version, description, body, tags, created, updated"

func scanSkill(r *sql.Rows) (k store.Skill, err error) {
	var tags string
	var created, updated int64
	if err = r.Scan(&k.Name, &k.Version, &k.Description, &k.Text, &tags, &created, &updated); err != nil {
		return k, err
	}
	k.Created, k.Updated = moment(created), moment(updated)
	return k, json.Unmarshal([]byte(tags), &k.Tags)
}

func scanSummary(r *sql.Rows) (store.Skill, error) {
	k, err := scanSkill(r)
	k.Text = ""
	return k, err
}

const ofSkill = " from skills where tenant = ? and user = ? and thread = ? and name = ?"

// PutSkill keeps a new skill, or a change to its newest version.
func (db *DB) PutSkill(ctx context.Context, s store.Scope, k store.Skill) (store.Skill, error) {
	if err := valid(s, k.Name); err != nil {
		return k, err
	}
	if strings.TrimSpace(k.Text) == "" {
		return k, errors.New("the skill has no text")
	}
	tags, err := json.Marshal(k.Tags)
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
		if err := tx.QueryRowContext(ctx, `insert into skills (tenant, user, thread, name, version, newest, description, body, tags, created, updated)
			values (?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?) returning n`, s.Tenant, s.User, s.Thread, k.Name, k.Version, k.Description, k.Text, string(tags), stamp(k.Created), stamp(now)).Scan(&n); err != nil {
			return err
		}
		words := strings.Join([]string{k.Name, strings.Join(k.Tags, " "), k.Description, k.Text}, "\n")
		_, err = tx.ExecContext(ctx, "insert into skills_words (rowid, text) values (?, ?)", n, indexed(words))
		return err
	})
	k.Created, k.Updated = moment(stamp(k.Created)), moment(stamp(now))
	return k, err
}

// Skill returns one; version 0 is the newest.
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

// DeleteSkill removes one with all its versions.
func (db *DB) DeleteSkill(ctx context.Context, s store.Scope, name string) error {
	if err := valid(s, name); err != nil {
		return err
	}
	res, err := db.write.ExecContext(ctx, "delete"+ofSkill, s.Tenant, s.User, s.Thread, name)
	return changed(res, err, "skill "+name)
}

// SearchSkills finds skills by their words, the best first.
func (db *DB) SearchSkills(ctx context.Context, s store.Scope, q store.Query) ([]store.SkillHit, error) {
	q.Vector = store.Vector{}
	found, err := db.find(ctx, searched{table: "skills", words: "skills_words", id: "t.name", also: "and t.newest = 1"}, s, q)
	return load(found, err, func(n, score any) (store.SkillHit, error) {
		k, err := one(ctx, db.read, "skill", scanSummary, "select "+skillColumns+" from skills where n = ? and tenant = ? and user = ?", n, s.Tenant, s.User)
		return store.SkillHit{Skill: k, Score: score.(float64)}, err
	})
}
