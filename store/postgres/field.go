package postgres

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-go/pawl/store"
)

// stamp and moment convert a time to nanoseconds and back; 0 is the zero time. PostgreSQL's own
// type would truncate it to microseconds.
func stamp(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func moment(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// jsonText validates a JSON value for storage. Nil is stored as null.
func jsonText(what string, b json.RawMessage) (*string, error) {
	if len(b) == 0 {
		return nil, nil
	}
	if !json.Valid(b) {
		return nil, fmt.Errorf("%s is no JSON", what)
	}
	s := plain(string(b))
	return &s, nil
}

func raw(s *string) json.RawMessage {
	if s == nil {
		return nil
	}
	return json.RawMessage(*s)
}

// plain returns a text that PostgreSQL accepts: invalid bytes are replaced, as in encoding/json.
func plain(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	return strings.ReplaceAll(s, "\x00", "\uFFFD")
}

// rowsOf returns the maximum number of rows for a limit. Null means all.
func rowsOf(limit int) *int {
	if limit <= 0 {
		return nil
	}
	return &limit
}

// valid checks the scope and the IDs passed to a method.
func valid(s store.Scope, ids ...string) error {
	if err := s.Check(); err != nil {
		return err
	}
	for _, id := range ids {
		if err := store.CheckID(id); err != nil {
			return err
		}
	}
	return nil
}
