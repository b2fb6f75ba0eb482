package web

// body.go: the body and the query of a request.

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
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/store"
)

// Read decodes the body, which must be one JSON value that matches v.
func (c *Call) Read(v any) error {
	kind, _, err := mime.ParseMediaType(c.Request.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" { // this rejects every form of a web page
		return runs.Fault("unsupported_media", "the body must be JSON", "send Content-Type: application/json")
	}
	b, err := io.ReadAll(c.Request.Body)
	if err != nil {
		return unread(err)
	}
	c.Body = sha256.Sum256(b)
	if c.Fingerprint != nil {
		c.Body = c.Fingerprint(b)
	}

	d := json.NewDecoder(bytes.NewReader(b))
	if !c.lax {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(v); err != nil {
		return runs.BadRequest("the body: "+plainly(err, v), "GET /openapi.json describes the form")
	}
	if _, err := d.Token(); err != io.EOF {
		return runs.BadRequest("the body has more than one JSON value", "")
	}
	return nil
}

// unread returns the error for a body that could not be read.
func unread(err error) error {
	var slow net.Error
	late := errors.As(err, &slow) && slow.Timeout()
	if late || errors.Is(err, os.ErrDeadlineExceeded) {
		return runs.Fault("timeout", "the body did not arrive in time", "")
	}
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return err
	}
	return runs.BadRequest("the body broke off", "")
}

// misfit matches what encoding/json says of a value of another type: what precedes, the value, the
// field, the Go type and the place.
var misfit = regexp.MustCompile(`^(.*?)json: cannot unmarshal (?:JSON )?(\w+) into Go ` +
	`(?:struct field \w+\.(\S+) of type |value of type )?(.+?)(?: within "(.*)")?$`)

// plainly returns the text of an error of decoding into v without names of Go.
func plainly(err error, v any) string {
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
	at = clientName(at, v)
	if at != "" {
		at += ": "
	}
	return m[1] + at + "JSON of the type " + m[2] + " stands where " + want + " is expected"
}

// clientName returns the place of a member as the client wrote it: encoding/json puts the name of
// an embedded struct before the names of its fields.
func clientName(at string, v any) string {
	first, rest, ok := strings.Cut(at, ".")
	t := reflect.TypeOf(v)
	if !ok || t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return at
	}
	if f, ok := t.Elem().FieldByName(first); ok && f.Anonymous && f.Tag.Get("json") == "" {
		return rest
	}
	return at
}

// Params returns the query. A parameter that is not in names is an error.
func (c *Call) Params(names ...string) (url.Values, error) {
	q, err := url.ParseQuery(c.Request.URL.RawQuery)
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
