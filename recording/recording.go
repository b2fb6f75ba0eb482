// Package recording records the HTTP traffic between a program and a provider, and plays it again,
// so that a run can be repeated without a network, a key or a bill.
//
//	rec := &recording.Recorder{Next: provider.Transport(), Secrets: secrets}
//	m := openai.New("gpt-6.1-terra", &openai.Options{HTTP: rec})
//	…                                                          a run
//	b, err := rec.Recording().JSON()                           a file, for people and for git diff
//
//	r, err := recording.Parse(b)
//	m = openai.New("gpt-6.1-terra", &openai.Options{HTTP: recording.Play(r), Key: "none"})
//
// It works below all adapters, as their http.RoundTripper. A request is answered by the recorded
// one with the same method, path, query and body, where JSON bodies are compared as JSON. Each
// recorded response answers once. A request without a match is an error that shows the nearest one
// and the differences: a *Miss. Streams are played byte for byte.
//
// No secret is recorded: only the headers that describe a body, no keys in queries, and nothing in
// bodies that a Redactor hides.
//
// This is one of three ways to repeat the replies of a model. A script (package script) is written
// by hand, or recorded above the adapters, and knows no provider. A durable run (package durable)
// is replayed from its journal. pawltest.Replay serves recordings of other programs in their order,
// for any request. docs/recordings.md has the format of files.
package recording

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/pawl-go/pawl/internal/jsonform"
)

// Form is what a file with a recording says that it is.
const Form = "pawl recording 1"

// Recording is a list of exchanges in the order of the requests. It is plain data; JSON and Parse
// write and read its files.
type Recording struct {
	// Form is the constant Form.
	Form string `json:"form"`
	// Exchanges are in the order of their requests.
	Exchanges []Exchange `json:"exchanges"`
}

// Exchange is a request and its answer.
type Exchange struct {
	// Request is what was sent.
	Request Request `json:"request"`
	// Response is what was received, or why nothing was.
	Response Response `json:"response"`
}

// Request is a recorded request.
type Request struct {
	// Method is the method of HTTP, in capitals.
	Method string `json:"method"`
	// URL has no user, and no values of keys in its query.
	URL string `json:"url"`
	// Header has lower-case names.
	Header map[string]string `json:"headers,omitzero"`
	// Body is the whole body. Nil means none.
	Body Body `json:"body,omitzero"`
}

// Response is a recorded response.
type Response struct {
	Status int               `json:"status"`           // of HTTP; 0 means no response
	Header map[string]string `json:"headers,omitzero"` // lower-case names
	Body   Body              `json:"body,omitzero"`    // as it came, framing of streams included
	Cut    bool              `json:"cut,omitzero"`     // the connection broke behind Body
	Error  string            `json:"error,omitzero"`   // why there was no answer
}

// Body is the bytes of a body. Its JSON form is an object with one field: json, if the bytes are
// JSON without spaces; text, the lines of other text; or base64.
type Body []byte

type bodyJSON struct {
	JSON   json.RawMessage `json:"json,omitzero"`
	Text   []string        `json:"text,omitzero"`
	Base64 string          `json:"base64,omitzero"`
}

// MarshalJSON writes the body so that people can read it, and UnmarshalJSON finds the same bytes.
func (b Body) MarshalJSON() ([]byte, error) {
	var form bodyJSON
	switch {
	case !utf8.Valid(b):
		form.Base64 = base64.StdEncoding.EncodeToString(b)
	case compact(b):
		form.JSON = json.RawMessage(b)
	default:
		form.Text = strings.Split(string(b), "\n")
	}
	return jsonform.Marshal(form)
}

// compact reports whether b is JSON that has no spaces, and more than a word.
func compact(b []byte) bool {
	if len(b) < 2 || b[0] != '{' && b[0] != '[' {
		return false
	}
	var out bytes.Buffer
	return json.Compact(&out, b) == nil && bytes.Equal(out.Bytes(), b)
}

// UnmarshalJSON reads what MarshalJSON writes, indented or not.
func (b *Body) UnmarshalJSON(form []byte) error {
	var f bodyJSON
	if err := strict(form, &f); err != nil {
		return err
	}
	switch {
	case f.JSON != nil:
		// A file may be indented for readers. The body was sent compact.
		var out bytes.Buffer
		if err := json.Compact(&out, f.JSON); err != nil {
			return err
		}
		*b = out.Bytes()
	case f.Text != nil:
		*b = []byte(strings.Join(f.Text, "\n"))
	default:
		raw, err := base64.StdEncoding.DecodeString(f.Base64)
		if err != nil {
			return fmt.Errorf("base64: %w", err)
		}
		*b = raw
	}
	return nil
}

// JSON returns the form of files.
func (r *Recording) JSON() ([]byte, error) {
	out := Recording{Form, r.Exchanges}
	if out.Exchanges == nil {
		out.Exchanges = []Exchange{}
	}
	b, err := jsonform.Marshal(out)
	if err != nil {
		return nil, err
	}
	var indented bytes.Buffer
	err = json.Indent(&indented, append(b, '\n'), "", "  ")
	return indented.Bytes(), err
}

// Parse reads a recording. A file of another form is an error that says so.
func Parse(b []byte) (*Recording, error) {
	var head struct {
		Form string `json:"form"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return nil, fmt.Errorf("it is no JSON: %w", err)
	}
	if head.Form != Form {
		return nil, fmt.Errorf("its form is %q, want %q", head.Form, Form)
	}

	// Only now, since a file of a later form may have other names.
	r := new(Recording)
	if err := strict(b, r); err != nil {
		return nil, err
	}
	for i, e := range r.Exchanges {
		if e.Request.Method == "" || e.Request.URL == "" {
			return nil, fmt.Errorf("exchange %d has no method, or no url", i+1)
		}
		if e.Response.Status == 0 && e.Response.Error == "" {
			return nil, fmt.Errorf("exchange %d has no status", i+1)
		}
	}
	return r, nil
}

// strict reads JSON in which each name is known.
func strict(b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if d.More() {
		return errors.New("something stands behind it")
	}
	return nil
}
