package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/pawl-go/pawl/llm"
)

// Thread is a conversation.
type Thread struct {
	ID       string          `json:"id"`               // unique for the user
	Title    string          `json:"title,omitzero"`   // for lists; "" means none
	Meta     json.RawMessage `json:"meta,omitzero"`    // a JSON value; nil means none
	Messages int             `json:"messages"`         // number of messages; set by the store
	Created  time.Time       `json:"created,omitzero"` // set by the store if it is zero
	Updated  time.Time       `json:"updated,omitzero"` // time of the last change or message

	// Version identifies the title, the meta and the number of messages. It is set by the store. In
	// PutThread it is the version that the change replaces; "" means any.
	Version string `json:"-"`
}

// Message is a message of a thread.
type Message struct {
	Thread  string      `json:"thread"`  // the ID of its thread
	Seq     int         `json:"seq"`     // position, from 0
	Message llm.Message `json:"message"` // as it was appended
	Time    time.Time   `json:"time"`    // when it was appended
}

// MessageHit is a message found by a search.
type MessageHit struct {
	Message
	Score float64 `json:"score"` // see Fuse
}

// Threads stores conversations. A thread is identified by its ID, and the Thread of the scope is
// empty except in SearchMessages. Methods must be safe for concurrent use.
type Threads interface {
	// PutThread creates a thread, or changes the title and the meta of an existing one. It sets the
	// other fields if they are zero, and returns the stored Thread. If t.Version is not empty, it
	// changes the thread only in that version, and returns ErrConflict if the thread has another or
	// does not exist.
	PutThread(ctx context.Context, s Scope, t Thread) (Thread, error)
	// Thread returns a thread without its messages.
	Thread(ctx context.Context, s Scope, id string) (Thread, error)
	// Threads lists threads by ID.
	Threads(ctx context.Context, s Scope, p Page) ([]Thread, error)
	// DeleteThread deletes a thread with its messages and its summary among the memories.
	DeleteThread(ctx context.Context, s Scope, id string) error
	// AppendMessages adds all messages or none to a thread that has have messages. It returns
	// ErrConflict if the thread has another number of messages.
	AppendMessages(ctx context.Context, s Scope, id string, have int, msgs ...llm.Message) error
	// Messages returns up to limit messages of a thread, in order, beginning with Seq from. Limit 0
	// means all.
	Messages(ctx context.Context, s Scope, id string, from, limit int) ([]Message, error)
	// SearchMessages finds messages by their words. It searches messages of the user and of the
	// model, without system prompts, calls and results. An empty s.Thread searches all threads of
	// the user. A vector in q is ignored.
	SearchMessages(ctx context.Context, s Scope, q Query) ([]MessageHit, error)
}
