package runs

// error.go: the table of error codes, and the errors that clients get.

import (
	"context"
	"errors"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/store"
)

// ErrorCodes lists the codes of api.Error, with their HTTP statuses and meanings.
var ErrorCodes = []struct {
	Code   string
	Status int
	Means  string
}{
	{"bad_request", 400, "the request does not match the endpoint"},
	{"no_token", 401, "a token is needed"},
	{"wrong_token", 401, "the token is unknown"},
	{"wrong_scope", 403, "the token lacks the permission"},
	{"wrong_host", 403, "the Host header names another machine"},
	{"no_side", 403, "the agent answers no side requests of this kind"},
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
	{"outage", 503, "the provider of the run's model is away; the run goes on when it is back"},
	{"unavailable", 503, "the database does not work at present"},
}

// Fault returns an Error with a code from the list.
func Fault(code, message, hint string) *api.Error {
	for _, c := range ErrorCodes {
		if c.Code == code {
			return &api.Error{Status: c.Status, Code: code, Message: message, Hint: hint}
		}
	}
	panic("server: no error has the code " + code)
}

// BadRequest returns an Error with the code bad_request.
func BadRequest(message, hint string) *api.Error { return Fault("bad_request", message, hint) }

// ToError converts err for a client. Internal errors reveal as little as possible.
func ToError(err error) *api.Error {
	var e *api.Error
	var answer *journal.AnswerError
	var provider *llm.ProviderError
	var transcript *pawl.TranscriptError
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, store.ErrUnavailable):
		e := Fault("unavailable", store.ErrUnavailable.Error(), "try again later")
		e.RetryAfter = 2
		e.Cause = err // err may have addresses
		return e

	case errors.As(err, &transcript):
		return BadRequest("the messages: "+err.Error(), "")

	// The run exists, and cannot do this now.
	case errors.Is(err, durable.ErrLost):
		return Fault("elsewhere", err.Error(), "watch it there, or try again when that process has ended")
	case errors.Is(err, durable.ErrChanged):
		return Fault("changed", err.Error(),
			"serve the former agent, resume the run with pawl runs resume --accept-changes, or fork it")
	case errors.As(err, &answer) && answer.Code == journal.AnswerMisfit:
		return Fault("misfit", err.Error(), "the call is still pending; its schema says which arguments fit")
	case errors.Is(err, store.ErrNotFound):
		return Fault("not_found", err.Error(), "")
	case errors.Is(err, store.ErrConflict):
		return Fault("conflict", err.Error(), "GET the run to see its state")

	case errors.As(err, &provider):
		return Fault("model_failed", err.Error(), "")
	case errors.Is(err, errParked), errors.Is(err, durable.ErrDrained), errors.Is(err, context.Canceled):
		e := Fault("busy", "the server is stopping", "the next one resumes the run")
		e.RetryAfter = 1
		return e
	}
	return Fault("failed", err.Error(), "")
}
