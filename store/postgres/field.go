package postgres

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-go/pawl/store"
)

// stamp and moment keep a time as nanoseconds; 0 is the zero time. A column of PostgreSQL's own kind would cut it to microseconds.
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

// jsonText keeps a JSON value, checked; nil is null.
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

// plain is a text as PostgreSQL keeps it: what it refuses is replaced, as encoding/json does.
func plain(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	return strings.ReplaceAll(s, "\x00", "\uFFFD")
}

// rows is how many rows a limit lets through; null: all.
func rowsOf(limit int) *int {
	if limit <= 0 {
		return nil
	}
	return &limit
}

// valid checks what a method is given.
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
