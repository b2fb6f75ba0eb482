package web

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/pawl-go/pawl/server/api"
)

func WriteError(w http.ResponseWriter, e *api.Error) {
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(e.RetryAfter))
	}
	if e.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="pawl"`)
	}
	body, _ := json.Marshal(map[string]*api.Error{"error": e}) // text always marshals
	WriteBytes(w, e.Status, body)
}

// WriteBytes sends JSON with headers that keep browsers from interpreting it as anything else.
func WriteBytes(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)+1))
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the client has disconnected
}
