// Package web has what all endpoints share: the client of a request, its body, its answer, its
// stream.
package web

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/access"
	"github.com/pawl-go/pawl/server/internal/runs"
)

// Server knows the clients.
type Server struct {
	*runs.Service
	Clients           []*access.Client
	Anybody, Everyone *access.Client
	SignedIn          access.SignedIn
	Authenticate      func(*http.Request) (access.Token, error)
}

// Call is a request in progress.
type Call struct {
	*runs.Caller
	Web   *Server
	W     http.ResponseWriter
	R     *http.Request
	Route *Route
	Body  [32]byte
}

// toError converts err for a client, with the errors of HTTP itself.
func toError(err error) *api.Error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return runs.Fault("too_large", "the body has more than "+strconv.FormatInt(tooLarge.Limit, 10)+" bytes", "")
	}
	return runs.ToError(err)
}
