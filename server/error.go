package server

// error.go: Error, and the table of error codes with their HTTP status.

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// Error is the error response of all API requests: {"error":{"code","message","hint"}}. Codes are
// for programs and form a closed list, which is in docs/server.md.
type Error struct {
	Status  int    `json:"-"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitzero"`

	after int   // seconds until a retry; 0 means not stated
	cause error // for the log; nil means that the message says all
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// errorCodes lists the error codes with their meanings.
var errorCodes = []struct {
	code   string
	status int
	means  string
}{
	{"bad_request", 400, "the request does not match the endpoint"},
	{"no_token", 401, "a token is needed"},
	{"wrong_token", 401, "the token is unknown"},
	{"wrong_scope", 403, "the token lacks the permission"},
	{"wrong_host", 403, "the Host header names another machine"},
	{"wrong_origin", 403, "web pages of this origin are not permitted"},
	{"not_found", 404, "it does not exist, or it belongs to another user"},
	{"method_not_allowed", 405, "the address does not support this method"},
	{"not_acceptable", 406, "the answer has no form that the client accepts"},
	{"timeout", 408, "the request did not arrive in time"},
	{"conflict", 409, "it was started, or answered, differently"},
	{"changed", 409, "the agent or its tools have changed since the run was stored"},
	{"elsewhere", 409, "another process executes the run"},
	{"needs_decision", 409, "a call needs a person, and this endpoint cannot ask one"},
	{"too_large", 413, "the body is over the limit"},
	{"unsupported_media", 415, "the body must be application/json"},
	{"too_many", 429, "the token's limit is reached; Retry-After says when to retry"},
	{"misfit", 422, "the arguments of the approval do not fit the tool's schema; the call is still pending"},
	{"failed", 500, "the server failed"},
	{"model_failed", 502, "the model's provider failed"},
	{"busy", 503, "the server has reached a limit, or is stopping"},
	{"unavailable", 503, "the database does not work at present"},
}

// fault returns an Error with a code from the list.
func fault(code, message, hint string) *Error {
	for _, c := range errorCodes {
		if c.code == code {
			return &Error{Status: c.status, Code: code, Message: message, Hint: hint}
		}
	}
	panic("server: no error has the code " + code)
}

func badRequest(message, hint string) *Error { return fault("bad_request", message, hint) }

// toError converts err for a client. Internal errors reveal as little as possible.
func toError(err error) *Error {
	var e *Error
	var tooLarge *http.MaxBytesError
	var answer *durable.AnswerError
	var provider *llm.ProviderError
	var transcript *pawl.TranscriptError
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, store.ErrUnavailable):
		e := fault("unavailable", store.ErrUnavailable.Error(), "try again later")
		e.after = 2
		e.cause = err // err may have addresses
		return e
	case errors.As(err, &transcript):
		return badRequest("the messages: "+err.Error(), "")
	case errors.As(err, &tooLarge):
		return fault("too_large", "the body has more than "+strconv.FormatInt(tooLarge.Limit, 10)+" bytes", "")
	case errors.Is(err, durable.ErrLost):
		return fault("elsewhere", err.Error(), "watch it there, or try again when that process has ended")
	case errors.Is(err, durable.ErrChanged):
		return fault("changed", err.Error(), "serve the former agent, resume the run with pawl runs resume --accept-changes, or fork it")
	case errors.As(err, &answer) && answer.Code == durable.AnswerMisfit:
		return fault("misfit", err.Error(), "the call is still pending; its schema says which arguments fit")
	case errors.Is(err, store.ErrNotFound):
		return fault("not_found", err.Error(), "")
	case errors.Is(err, store.ErrConflict):
		return fault("conflict", err.Error(), "GET the run to see its state")
	case errors.As(err, &provider):
		return fault("model_failed", err.Error(), "")
	case errors.Is(err, errParked), errors.Is(err, durable.ErrDrained), errors.Is(err, context.Canceled):
		e := fault("busy", "the server is stopping", "the next one resumes the run")
		e.after = 1
		return e
	}
	return fault("failed", err.Error(), "")
}

func writeError(w http.ResponseWriter, e *Error) {
	if e.after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(e.after))
	}
	if e.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="pawl"`)
	}
	body, _ := json.Marshal(map[string]*Error{"error": e}) // text always marshals
	writeBytes(w, e.Status, body)
}

// writeBytes sends JSON with headers that keep browsers from interpreting it as anything else.
func writeBytes(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)+1))
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the client has disconnected
}
