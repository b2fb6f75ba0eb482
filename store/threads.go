package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/pawl-go/pawl/llm"
)

// Thread is a conversation that goes on.
type Thread struct {
	ID       string          `json:"id"`
	Title    string          `json:"title,omitzero"`
	Meta     json.RawMessage `json:"meta,omitzero"` // the program's own; a JSON value; nil: none
	Messages int             `json:"messages"`      // how many it has; set by the store
	Created  time.Time       `json:"created,omitzero"`
	Updated  time.Time       `json:"updated,omitzero"` // when it last changed, or was written to
}

// Message is a message of a thread.
type Message struct {
	Thread  string      `json:"thread"`
	Seq     int         `json:"seq"` // its place, from 0
	Message llm.Message `json:"message"`
	Time    time.Time   `json:"time"`
}

// MessageHit is a message that was found.
type MessageHit struct {
	Message
	Score float64 `json:"score"` // see Fuse
}

// Threads keeps conversations. The Thread of the scope is left empty, but in SearchMessages; a thread is named by its ID. Methods may be called concurrently.
type Threads interface {
	// PutThread makes a thread, or changes the title and the meta of the one that is there; the zero of the other fields is filled in. The Thread that is
	// returned is as it is kept.
	PutThread(ctx context.Context, s Scope, t Thread) (Thread, error)
	// Thread returns one, without its messages.
	Thread(ctx context.Context, s Scope, id string) (Thread, error)
	// Threads lists them by ID.
	Threads(ctx context.Context, s Scope, p Page) ([]Thread, error)
	// DeleteThread removes one with its messages.
	DeleteThread(ctx context.Context, s Scope, id string) error
	// AppendMessages adds messages to a thread that has have of them; ErrConflict when it has another number. All are added or none.
	AppendMessages(ctx context.Context, s Scope, id string, have int, msgs ...llm.Message) error
	// Messages returns up to limit messages of a thread from the one with the Seq from on, in order; limit 0: all.
	Messages(ctx context.Context, s Scope, id string, from, limit int) ([]Message, error)
	// SearchMessages finds messages by their words: those of the user and of the model, not instructions, calls or results. s.Thread "" searches
	// all threads of the user. A vector in q is ignored.
	SearchMessages(ctx context.Context, s Scope, q Query) ([]MessageHit, error)
}
