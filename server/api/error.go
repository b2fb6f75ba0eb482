// Package api has the JSON forms of the server's API, for programs in Go that speak to it. They are
// what GET /openapi.json describes, and docs/http.md.
package api

// Error is the error response of all API requests: {"error":{"code","message","hint"}}. Codes are
// for programs and form a closed list, which is in docs/server.md.
type Error struct {
	Status  int    `json:"-"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitzero"`

	RetryAfter int   `json:"-"` // seconds until a retry; 0 means not stated
	Cause      error `json:"-"` // for the server's log; nil means that the message says all
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }
