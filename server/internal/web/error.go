package web

// error.go: writes errors and JSON.

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/runs"
)

// toError converts err for a client, with the errors of HTTP itself.
func toError(err error) *api.Error {
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return runs.Fault("too_large", "the body has more than "+strconv.FormatInt(large.Limit, 10)+" bytes", "")
	}
	return runs.ToError(err)
}

// WriteError answers with an error, in the form of this API.
func WriteError(w http.ResponseWriter, e *api.Error) {
	SetRetryAfter(w, e)
	if e.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="pawl"`)
	}
	body, _ := json.Marshal(map[string]*api.Error{"error": e}) // text always marshals
	WriteBytes(w, e.Status, body)
}

// SetRetryAfter sets the header of an error that states when to try again.
func SetRetryAfter(w http.ResponseWriter, e *api.Error) {
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(e.RetryAfter))
	}
}

// WriteBytes sends JSON with headers that keep browsers from interpreting it as anything else.
func WriteBytes(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)+1))
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the client has disconnected
}
