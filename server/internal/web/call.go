package web

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/access"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/store"
)

// Route is an endpoint. The OpenAPI document is generated from the table of routes.
type Route struct {
	Method, Path string
	Scope        access.Scope
	Or           access.Scope // an alternative scope; the handler checks further
	Does         string       // description for the document
	Query        []Param
	In, Out      any  // values of the request and response types; nil means no body
	Status       int  // status of success; 0 means 200
	Stream       bool // may answer with events
	Loose        bool // OpenAI's API: its form of errors, and unknown fields are ignored
	Open         bool // a protocol of front ends: unknown fields are ignored
	Do           func(c *Call) error
	Fail         func(c *Call, e *api.Error) // writes an error; nil means in the form of this API
}

type Param struct{ Name, Does string }

// Answer authenticates the client and calls the handler.
func (s *Server) Answer(w http.ResponseWriter, r *http.Request, rt *Route) {
	who, fail := s.Who(r, rt.Scope, rt.Or)
	if rt.Scope == "" && fail != nil {
		who = s.Anybody
		fail = nil // no token is required
	}
	c := &Call{Caller: &runs.Caller{S: s.Service, Client: who, Context: r.Context()}, Web: s, W: w, R: r, Route: rt}
	if strings.HasPrefix(rt.Path, "/v1/runs/{id}") && fail == nil {
		c.RunID = r.PathValue("id")
		if err := store.CheckID(c.RunID); err != nil {
			fail = runs.BadRequest(err.Error(), "")
		}
	}
	if fail == nil {
		if err := rt.Do(c); err != nil {
			fail = toError(err)
		}
	}
	switch {
	case fail == nil:
	case rt.Fail != nil:
		rt.Fail(c, fail)
	default:
		fail.Message = s.O.Secrets.String(fail.Message)
		WriteError(w, fail)
	}
	if fail != nil && (fail.Cause != nil || fail.Status == http.StatusInternalServerError) {
		s.O.Log.Error("a request failed", "path", r.URL.Path, "error", cmp.Or(fail.Cause, error(fail)))
	}
}

// Read decodes the body, which must be one JSON value that matches v.
func (c *Call) Read(v any) error {
	kind, _, err := mime.ParseMediaType(c.R.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" { // this rejects every form of a web page
		return runs.Fault("unsupported_media", "the body must be JSON", "send Content-Type: application/json")
	}
	b, err := io.ReadAll(c.R.Body)
	if err != nil {
		var slow net.Error
		if errors.As(err, &slow) && slow.Timeout() || errors.Is(err, os.ErrDeadlineExceeded) {
			return runs.Fault("timeout", "the body did not arrive in time", "")
		}
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return err
		}
		return runs.BadRequest("the body broke off", "")
	}
	c.Body = sha256.Sum256(b)
	d := json.NewDecoder(bytes.NewReader(b))
	if !c.Route.Loose && !c.Route.Open {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(v); err != nil {
		return runs.BadRequest("the body: "+plainly(err), "GET /openapi.json describes the form")
	}
	if _, err := d.Token(); err != io.EOF {
		return runs.BadRequest("the body has more than one JSON value", "")
	}
	return nil
}

// misfit matches what encoding/json says of a value of another type: what precedes, the value, the
// field, the Go type and the place.
var misfit = regexp.MustCompile(`^(.*?)json: cannot unmarshal (?:JSON )?(\w+) into Go (?:struct field \w+\.(\S+) of type |value of type )?(.+?)(?: within "(.*)")?$`)

// plainly returns the text of a decoding error without names of Go.
func plainly(err error) string {
	m := misfit.FindStringSubmatch(err.Error())
	if m == nil {
		return strings.TrimPrefix(err.Error(), "json: ")
	}
	want := "an object"
	kind := strings.TrimPrefix(m[4], "*")
	switch {
	case kind == "string":
		want = "text"
	case kind == "bool":
		want = "true or false"
	case strings.HasPrefix(kind, "[]"):
		want = "a list"
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "float"):
		want = "a number"
	}
	at := cmp.Or(m[3], strings.ReplaceAll(strings.Trim(m[5], "/"), "/", "."))
	if at != "" {
		at += ": "
	}
	return m[1] + at + "JSON of the type " + m[2] + " stands where " + want + " is expected"
}

// Write sends v without secrets.
func (c *Call) Write(status int, v any) error {
	b, err := c.S.Marshal(v)
	if err == nil {
		WriteBytes(c.W, status, b)
	}
	return err
}

// Params returns the query. A parameter that is not in names is an error.
func (c *Call) Params(names ...string) (url.Values, error) {
	q, err := url.ParseQuery(c.R.URL.RawQuery)
	if err != nil {
		return nil, runs.BadRequest("the query: "+err.Error(), "")
	}
	for name := range q {
		if !slices.Contains(names, name) {
			return nil, runs.BadRequest("the query has no "+strconv.Quote(name), "it has "+strings.Join(names, ", "))
		}
	}
	return q, nil
}

// Page returns the query, which may have the parameters others, after and limit, and the page that
// the last two select.
func (c *Call) Page(others ...string) (q url.Values, p store.Page, err error) {
	q, err = c.Params(append(others, "after", "limit")...)
	if err != nil {
		return nil, p, err
	}
	p.After = q.Get("after")
	if v := q.Get("limit"); v != "" {
		p.Limit, err = strconv.Atoi(v)
		if err != nil || p.Limit < 1 || p.Limit > 1000 {
			return nil, p, runs.BadRequest("limit must be a number from 1 to 1000", "")
		}
	}
	return q, p, nil
}
