// Package jsonform reads and writes the JSON forms of messages, requests, results and events.
//
// The forms are a contract: the command, journals, the server and tests read them. Names are exact.
// Unknown and repeated names are errors. Text that is not UTF-8 is written with replacement
// characters.
//
// The forms keep the content, not its spacing: arguments that are JSON come back compact.
package jsonform

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// Strict rejects unknown names; Lenient allows them. Both accept text that is not UTF-8, and
// repeated names in foreign values such as arguments. Read rejects repeated names of the form
// itself. A duration is a number of nanoseconds, as encoding/json writes it.
var (
	Strict  = json.JoinOptions(json.RejectUnknownMembers(true), Lenient)
	Lenient = json.JoinOptions(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true),
		jsonv1.FormatDurationAsNano(true))
)

// Read decodes one form. An unknown or repeated name is an error. Read does not look into values
// such as args and data.
func Read(b []byte, into any) error {
	if _, err := Members(b); err != nil {
		return err
	}
	return json.Unmarshal(b, into, Strict)
}

// Members returns the names of the object in b. Nil means that b is not an object.
func Members(b []byte) (map[string]bool, error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(b), Strict)
	if d.PeekKind() != '{' {
		return nil, nil
	}
	names := map[string]bool{}
	for _, err := d.ReadToken(); ; {
		if err != nil || d.PeekKind() == '}' {
			return names, err
		}
		var name jsontext.Token
		name, err = d.ReadToken()
		if err != nil {
			return names, err
		}
		n := name.String()
		if names[n] {
			return names, fmt.Errorf("%q is there twice", n)
		}
		names[n] = true
		err = d.SkipValue()
	}
}

// Canonical returns b with sorted object names and without spaces, so that equal values have equal
// bytes. Numbers keep their digits. If b is not JSON, it is returned unchanged.
func Canonical(b stdjson.RawMessage) []byte {
	v, err := Value(b)
	if err != nil {
		return b
	}
	if out, err := stdjson.Marshal(v); err == nil {
		return out
	}
	return b
}

// Value decodes one JSON value of any kind. Numbers are json.Numbers.
func Value(b []byte) (v any, err error) {
	d := stdjson.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err = d.Decode(&v); err != nil {
		return nil, err
	}
	_, err = d.Token()
	if err != io.EOF {
		return nil, errors.New("there is more text after it")
	}
	return v, nil
}

// Marshal writes compact JSON. It does not escape <, > and &, because the text is not put into
// HTML.
func Marshal(v any) (stdjson.RawMessage, error) {
	var b bytes.Buffer
	e := stdjson.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
