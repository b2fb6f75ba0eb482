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
	"fmt"

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
		if name, err = d.ReadToken(); err != nil {
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
	d := stdjson.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return b
	}
	if out, err := stdjson.Marshal(v); err == nil {
		return out
	}
	return b
}
