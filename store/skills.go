package store

import (
	"context"
	"time"
)

// Skill is a text that explains to a model how to do something.
type Skill struct {
	Name        string   `json:"name"`                // unique in its scope
	Description string   `json:"description"`         // when to use it, for a model that chooses
	Text        string   `json:"text,omitzero"`       // left out of lists and searches
	Tags        []string `json:"tags,omitzero"`       // words for searches and lists
	Tools       []string `json:"tools,omitzero"`      // tools that it needs
	Model       string   `json:"model,omitzero"`      // the most suitable model
	References  []string `json:"references,omitzero"` // related skills
	By          string   `json:"by,omitzero"`         // author
	// Version counts from 1. Each change creates a new version, and the old ones stay.
	Version int       `json:"version"`
	Created time.Time `json:"created,omitzero"` // of Version 1; set by the store
	Updated time.Time `json:"updated,omitzero"` // of this Version; set by the store
}

// SkillHit is the newest version of a skill found by a search, without its Text.
type SkillHit struct {
	Skill
	Score float64 `json:"score"` // see Fuse
}

// Skills stores skills with their versions. Methods must be safe for concurrent use.
type Skills interface {
	// PutSkill stores a new skill (Version 0), or a change to that Version. It returns ErrConflict
	// if the name exists already, or if the Version is not the newest.
	PutSkill(ctx context.Context, s Scope, k Skill) (Skill, error)
	// Skill returns a version of a skill. Version 0 means the newest.
	Skill(ctx context.Context, s Scope, name string, version int) (Skill, error)
	// Skills lists the newest versions by name, without their Text.
	Skills(ctx context.Context, s Scope, p Page) ([]Skill, error)
	// RenameSkill renames a skill with all its versions. It returns ErrConflict if the new name
	// exists.
	RenameSkill(ctx context.Context, s Scope, name, to string) error
	// DeleteSkill deletes a skill with all its versions.
	DeleteSkill(ctx context.Context, s Scope, name string) error
	// SearchSkills finds skills by the words of name, description, tags and text, the best first.
	// It ignores a vector in q.
	SearchSkills(ctx context.Context, s Scope, q Query) ([]SkillHit, error)
}
