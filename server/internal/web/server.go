package web

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/pawl-go/pawl/internal/gate"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/access"
	"github.com/pawl-go/pawl/server/internal/runs"
)

// Who returns the client of a request if it has the permission.
func (s *Server) Who(r *http.Request, scope access.Scope, or ...access.Scope) (*access.Client, *api.Error) {
	c := s.Anybody
	if s.Authenticate != nil {
		t, err := s.Authenticate(r)
		if err == nil {
			c, err = s.SignedIn.Client(t)
		}
		if err != nil {
			return nil, runs.Fault("wrong_token", s.O.Secrets.String(err.Error()), "")
		}
	} else if len(s.Clients) > 0 {
		token := gate.Token(r.Header.Get("Authorization"))
		if token == "" {
			return nil, runs.Fault("no_token", "a token is needed", "send Authorization: Bearer TOKEN")
		}
		c = access.Find(s.Clients, token)
		if c == nil {
			return nil, runs.Fault("wrong_token", "the token is unknown", "")
		}
	}
	if !c.May(scope) && !slices.ContainsFunc(or, func(o access.Scope) bool { return o != "" && c.May(o) }) {
		return nil, runs.Fault("wrong_scope", fmt.Sprintf("the token of %s may not do this", c.Name), "it needs the scope "+string(scope))
	}
	if wait := c.Take(s.O.Now()); wait > 0 {
		e := runs.Fault("too_many", fmt.Sprintf("the token of %s may send %d requests a minute", c.Name, c.PerMinute), "")
		e.RetryAfter = wait
		return nil, e
	}
	return c, nil
}
