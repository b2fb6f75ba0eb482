package api

// memories.go: the forms of memories.

import (
	"github.com/pawl-go/pawl/store"
)

// Memories is a page of memories.
type Memories struct {
	// The memories, by ID.
	Memories []store.Memory `json:"memories"`
	// Value of after for the next page. Absent on the last page.
	After string `json:"after,omitzero"`
}

// Confirm is the yes of a person to a memory.
type Confirm struct {
	// Recall it in every turn.
	Always bool `json:"always,omitzero"`
}

// Forgotten names the memories that were deleted.
type Forgotten struct {
	// The IDs of the memories.
	Forgotten []string `json:"forgotten"`
}
