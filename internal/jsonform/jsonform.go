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
	"math"
	"reflect"
	"strconv"
	"strings"

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

// Decode decodes JSON that fits a schema into a Go value. JSON Schema accepts more than Go: 3.0 and
// 3e0 are integers there, and integers have no bounds. Decode accepts 3.0 and 3e0. An integer out
// of bounds is an error.
func Decode(b stdjson.RawMessage, into any) error {
	err := stdjson.Unmarshal(b, into)
	if err == nil {
		return nil
	}
	if plain := plainIntegers(b); plain != nil {
		reflect.ValueOf(into).Elem().SetZero()
		err = stdjson.Unmarshal(plain, into)
	}
	return err
}

// DecodeText describes an error of Decode for the model, without names of Go types.
func DecodeText(err error) string {
	var te *stdjson.UnmarshalTypeError
	if !errors.As(err, &te) {
		return err.Error()
	}
	if !strings.HasPrefix(te.Value, "number") {
		return "field " + te.Field + ": unexpected " + te.Value
	}
	return "field " + te.Field + ": " + te.Value + " is out of range"
}

// plainIntegers returns args with plain spelling of integers such as 3.0 or 3e0, or nil if there
// are none.
func plainIntegers(args stdjson.RawMessage) stdjson.RawMessage {
	v, err := Value(args)
	if err != nil {
		return nil
	}
	changed := false
	var walk func(v any) any
	walk = func(v any) any {
		switch x := v.(type) {
		case map[string]any:
			for k, e := range x {
				x[k] = walk(e)
			}
		case []any:
			for i, e := range x {
				x[i] = walk(e)
			}
		case stdjson.Number:
			f, err := x.Float64()
			if err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 && strings.ContainsAny(string(x), ".eE") {
				changed = true
				return stdjson.Number(strconv.FormatInt(int64(f), 10))
			}
		}
		return v
	}
	v = walk(v)
	out, err := stdjson.Marshal(v)
	if err != nil || !changed {
		return nil
	}
	return out
}
