package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl/store"
)

const skillColumns = "n, name, version, description, body, more, created, updated"

// moreOfSkill holds the fields of a skill that no query uses separately.
type moreOfSkill struct {
	Tags       []string `json:"tags,omitzero"`
	Tools      []string `json:"tools,omitzero"`
	Model      string   `json:"model,omitzero"`
	References []string `json:"references,omitzero"`
	By         string   `json:"by,omitzero"`
}

func scanFoundSkill(r pgx.Rows) (n int64, k store.Skill, err error) {
	var text string
	var more moreOfSkill
	var created, updated int64
	if err = r.Scan(&n, &k.Name, &k.Version, &k.Description, &k.Text, &text, &created, &updated); err != nil {
		return n, k, err
	}
	k.Created, k.Updated = moment(created), moment(updated)
	err = json.Unmarshal([]byte(text), &more)
	k.Tags, k.Tools, k.Model, k.References, k.By = more.Tags, more.Tools, more.Model, more.References, more.By
	return n, k, err
}

func scanSkill(r pgx.Rows) (store.Skill, error) {
	_, k, err := scanFoundSkill(r)
	return k, err
}

func scanSummary(r pgx.Rows) (store.Skill, error) {
	_, k, err := scanFoundSkill(r)
	k.Text = ""
	return k, err
}

const (
	ofSkill     = " from skills where tenant = $1 and userid = $2 and thread = $3 and name = $4"
	newestSkill = ofSkill + " and newest"
)

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
	k.Description, k.Text = plain(k.Description), plain(k.Text)
	now := db.now()
	err = db.change(ctx, lock("skills", s, ""), func(tx pgx.Tx) error {
		old, err := one(ctx, tx, "skill", scanSkill, "select "+skillColumns+newestSkill, s.Tenant, s.User, s.Thread, k.Name)
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
			if _, err := tx.Exec(ctx, "delete from skills_words where n = (select n"+newestSkill+")", s.Tenant, s.User, s.Thread, k.Name); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, "update skills set newest = false where tenant = $1 and userid = $2 and thread = $3 and name = $4 and newest", s.Tenant, s.User, s.Thread, k.Name); err != nil {
				return err
			}
		}
		k.Version++
		n, err := one(ctx, tx, "skill", value[int64], `insert into skills (tenant, userid, thread, name, version, newest, description, body, more, created, updated)
			values ($1, $2, $3, $4, $5, true, $6, $7, $8, $9, $10) returning n`, s.Tenant, s.User, s.Thread, k.Name, k.Version, k.Description, k.Text, string(more), stamp(k.Created), stamp(now))
		if err != nil {
			return err
		}
		return putWords(ctx, tx, skills, s, []int64{n}, []string{wordsOfSkill(k)})
	})
	k.Created, k.Updated = moment(stamp(k.Created)), moment(stamp(now))
	return k, err
}

// Skill returns a version of a skill. Version 0 means the newest.
func (db *DB) Skill(ctx context.Context, s store.Scope, name string, version int) (store.Skill, error) {
	if err := valid(s, name); err != nil {
		return store.Skill{}, err
	}
	return one(ctx, db.pool, "skill "+name, scanSkill, "select "+skillColumns+ofSkill+" and (version = $5 or $5 = 0 and newest)", s.Tenant, s.User, s.Thread, name, version)
}

// Skills lists the newest versions by name, without their Text.
func (db *DB) Skills(ctx context.Context, s store.Scope, p store.Page) ([]store.Skill, error) {
	if err := valid(s); err != nil {
		return nil, err
	}
	return list(ctx, db.pool, scanSummary, "select "+skillColumns+" from skills where tenant = $1 and userid = $2 and thread = $3 and newest and name > $4 order by name limit $5",
		s.Tenant, s.User, s.Thread, plain(p.After), p.Size())
}

// RenameSkill renames a skill with all its versions.
func (db *DB) RenameSkill(ctx context.Context, s store.Scope, name, to string) error {
	if err := valid(s, name, to); err != nil {
		return err
	}
	return db.change(ctx, lock("skills", s, ""), func(tx pgx.Tx) error {
		switch _, err := one(ctx, tx, "", scanSkill, "select "+skillColumns+newestSkill, s.Tenant, s.User, s.Thread, to); {
		case err == nil && to != name:
			return fmt.Errorf("there is a skill %s already: %w", to, store.ErrConflict)
		case err != nil && !errors.Is(err, store.ErrNotFound):
			return err
		}
		var k store.Skill
		n, err := one(ctx, tx, "skill "+name, func(r pgx.Rows) (n int64, err error) {
			n, k, err = scanFoundSkill(r)
			return n, err
		}, "select "+skillColumns+newestSkill, s.Tenant, s.User, s.Thread, name)
		if err != nil {
			return err
		}
		k.Name = to
		if _, err := tx.Exec(ctx, "update skills set name = $5 where tenant = $1 and userid = $2 and thread = $3 and name = $4", s.Tenant, s.User, s.Thread, name, to); err != nil {
			return err
		}
		return putWords(ctx, tx, skills, s, []int64{n}, []string{wordsOfSkill(k)})
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
	return db.remove(ctx, "skill "+name, "delete"+ofSkill, s.Tenant, s.User, s.Thread, name)
}

var skills = searched{table: "skills", id: "t.name", also: "and t.newest"}

// SearchSkills finds skills by their words, the best first.
func (db *DB) SearchSkills(ctx context.Context, s store.Scope, q store.Query) ([]store.SkillHit, error) {
	q.Vector, q.Shared = store.Vector{}, false
	found, err := db.find(ctx, skills, s, q)
	return load(ctx, db, s, q, found, err, func(r pgx.Rows) (int64, store.SkillHit, error) {
		n, k, err := scanFoundSkill(r)
		k.Text = ""
		return n, store.SkillHit{Skill: k}, err
	}, func(h store.SkillHit, score float64) store.SkillHit {
		h.Score = score
		return h
	}, skills.in("select "+skillColumns+" from skills t where n = any($6) and WHOSE"))
}
