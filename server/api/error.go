package api

// error.go: Error, the form of all failures.

// Error is the error response of all API requests: {"error":{"code","message","hint"}}.
type Error struct {
	// Status is the HTTP status of the response.
	Status int `json:"-"`
	// Code is for programs. The codes form a closed list, which is in docs/server.md.
	Code string `json:"code"`
	// Message says what is wrong.
	Message string `json:"message"`
	// Hint says what would be right. Empty means that there is nothing to say.
	Hint string `json:"hint,omitzero"`
	// Run is the ID of the run that goes on although its client gets the error. Empty means none.
	Run string `json:"run,omitzero"`

	// RetryAfter is the number of seconds until a retry. 0 means not stated.
	RetryAfter int `json:"-"`
	// Cause is for the server's log and is never sent. Nil means that the message says all.
	Cause error `json:"-"`
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }
