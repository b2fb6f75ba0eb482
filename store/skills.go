package store

import (
	"context"
	"time"
)

// Skill is a text that teaches a model how something is done.
type Skill struct {
	Name        string    `json:"name"` // unique in its scope
	Description string    `json:"description"`
	Text        string    `json:"text,omitzero"` // left out of lists and searches
	Tags        []string  `json:"tags,omitzero"`
	Tools       []string  `json:"tools,omitzero"`      // that it needs
	Model       string    `json:"model,omitzero"`      // that does it best
	References  []string  `json:"references,omitzero"` // other skills that go with it
	By          string    `json:"by,omitzero"`         // who made it
	Version     int       `json:"version"`             // from 1; each change is a new one, and the old ones stay
	Created     time.Time `json:"created,omitzero"`
	Updated     time.Time `json:"updated,omitzero"`
}

// SkillHit is a skill that was found, in its newest version, without its Text.
type SkillHit struct {
	Skill
	Score float64 `json:"score"` // see Fuse
}

// Skills keeps skills with their versions. Methods may be called concurrently.
type Skills interface {
	// PutSkill keeps a skill: a new one with Version 0, else a change to that Version. ErrConflict when there is one of that name already, or the newest
	// version is another.
	PutSkill(ctx context.Context, s Scope, k Skill) (Skill, error)
	// Skill returns one; version 0 is the newest.
	Skill(ctx context.Context, s Scope, name string, version int) (Skill, error)
	// Skills lists the newest versions by name, without their Text.
	Skills(ctx context.Context, s Scope, p Page) ([]Skill, error)
	// RenameSkill gives one another name, with all its versions; ErrConflict when there is one of that name.
	RenameSkill(ctx context.Context, s Scope, name, to string) error
	// DeleteSkill removes one with all its versions.
	DeleteSkill(ctx context.Context, s Scope, name string) error
	// SearchSkills finds skills by the words of name, description, tags and text, the best first. A vector in q is ignored.
	SearchSkills(ctx context.Context, s Scope, q Query) ([]SkillHit, error)
}
