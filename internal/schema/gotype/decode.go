package gotype

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/internal/schema"
)

// The functions for types whose JSON is not what encoding/json reads or writes.
var (
	ownDecoders = json.JoinUnmarshalers(
		json.UnmarshalFromFunc(durationFrom),
		json.UnmarshalFromFunc(numberFrom),
		json.UnmarshalFromFunc(anyFrom),
	)
	ownEncoders = json.JoinMarshalers(
		json.MarshalToFunc(durationTo),
		json.MarshalToFunc(numberTo),
	)
)

// reading is what encoding/json does, with ownDecoders. whole also reads integers such as 3.0.
// located is whole with errors that have the place of the value in the JSON, which encoding/json
// leaves out for errors of methods.
var (
	reading = json.JoinOptions(jsonv1.DefaultOptionsV1(), json.WithUnmarshalers(ownDecoders))
	whole   = json.JoinOptions(jsonv1.DefaultOptionsV1(),
		json.WithUnmarshalers(json.JoinUnmarshalers(ownDecoders, json.UnmarshalFromFunc(wholeFrom))))
	located = json.JoinOptions(whole, jsonv1.ReportErrorsWithLegacySemantics(false))

	// Methods with a pointer receiver are called for every value, also for the values of a map.
	writing = json.JoinOptions(jsonv1.DefaultOptionsV1(), jsonv1.CallMethodsWithLegacySemantics(false),
		json.WithMarshalers(ownEncoders))
)

// Decode decodes JSON that fits the schema of a type into a value of it; into is a pointer. After
// an error the value is zero. FaultText describes the error for the model.
func Decode(b stdjson.RawMessage, into any) error {
	err := json.Unmarshal(b, into, reading)
	if err == nil {
		return nil
	}
	v := reflect.ValueOf(into).Elem()
	v.SetZero()
	// Numbers such as 3.0 fit an integer of the schema, and the decoder does not take them. They
	// are converted only after the plain reading has failed, which is rare.
	if json.Unmarshal(b, into, whole) == nil {
		return nil
	}
	v.SetZero()

	// A third reading finds the place of the fault, for the text that the model reads.
	again := reflect.New(v.Type()).Interface()
	if at, ok := errors.AsType[*json.SemanticError](json.Unmarshal(b, again, located)); ok && at.JSONPointer != "" {
		return at
	}
	return err
}

// Encode writes the JSON of the value that v points to.
func Encode(v any) (stdjson.RawMessage, error) { return json.Marshal(v, writing) }

// durationFrom reads a duration such as "1h30m".
func durationFrom(d *jsontext.Decoder, into *time.Duration) error {
	switch d.PeekKind() {
	case 'n':
		return errors.ErrUnsupported // null changes nothing
	case '"':
	default:
		v, err := d.ReadValue()
		if err != nil {
			return err
		}
		return fmt.Errorf(`expected a duration such as "90s" or "1h30m", got %s`, v)
	}
	tok, err := d.ReadToken()
	if err != nil {
		return err
	}
	*into, err = time.ParseDuration(tok.String())
	if err != nil {
		return fmt.Errorf(`expected a duration such as "90s" or "1h30m", got %q`, tok.String())
	}
	return nil
}

// durationTo writes what durationFrom reads, in ASCII.
func durationTo(e *jsontext.Encoder, d time.Duration) error {
	return e.WriteToken(jsontext.String(strings.Replace(d.String(), "µ", "u", 1)))
}

// numberFrom reads a number with all its digits.
func numberFrom(d *jsontext.Decoder, into *stdjson.Number) error {
	if d.PeekKind() != '0' {
		return errors.ErrUnsupported
	}
	v, err := d.ReadValue()
	*into = stdjson.Number(v)
	return err
}

// numberTo writes a number with all its digits. Empty text means 0, as in encoding/json.
func numberTo(e *jsontext.Encoder, n stdjson.Number) error {
	if n == "" {
		n = "0"
	}
	v := jsontext.Value(n)
	if v.Kind() != '0' || !v.IsValid() {
		return fmt.Errorf("invalid number literal %q", string(n))
	}
	return e.WriteValue(v)
}

// anyFrom reads a value of any kind. Its numbers keep their digits.
func anyFrom(d *jsontext.Decoder, into *any) error {
	v, err := d.ReadValue()
	if err != nil {
		return err
	}
	*into, err = jsonform.Value(v)
	return err
}

// wholeFrom reads an integer that is written with a point or an exponent.
func wholeFrom(d *jsontext.Decoder, into any) error {
	if d.PeekKind() != '0' || !isInteger(reflect.TypeOf(into).Elem()) {
		return errors.ErrUnsupported
	}
	v, err := d.ReadValue()
	if err != nil {
		return err
	}
	return json.Unmarshal(plainInteger(v), into, jsonv1.ReportErrorsWithLegacySemantics(false))
}

// isInteger reports whether JSON integers are decoded into t by its kind, or by big.Int.
func isInteger(t reflect.Type) bool {
	if t == reflect.TypeFor[big.Int]() {
		return true
	}
	return scalars[t.Kind()].shape == shapeInteger && !hasOwnJSON(t)
}

// maxDigits is the number of digits of the longest integer that plainInteger writes.
const maxDigits = 1000

// plainInteger returns number without point and exponent if it is an integer of at most maxDigits
// digits. Otherwise it returns number.
func plainInteger(number []byte) []byte {
	if !strings.ContainsAny(string(number), ".eE") {
		return number
	}
	mantissa, exp, _ := strings.Cut(strings.ToLower(string(number)), "e")
	if exp != "" {
		e, err := strconv.Atoi(strings.TrimPrefix(exp, "+"))
		// Without the bounds, 1e999999999 would be written out.
		if err != nil || max(e, -e) > maxDigits {
			return number
		}
	}
	if len(mantissa) > maxDigits {
		return number
	}
	r, ok := new(big.Rat).SetString(string(number))
	if !ok || !r.IsInt() {
		return number
	}
	return []byte(r.Num().String())
}

// FaultText describes an error of Decode or Validate for the model, without names of Go types: one
// line a fault, each of which begins with "- ".
func FaultText(err error) string {
	var b strings.Builder
	for _, line := range faultLines(err) {
		b.WriteString("\n- " + line)
	}
	return b.String()
}

// joined is an error of errors.Join.
type joined interface{ Unwrap() []error }

func faultLines(err error) []string {
	if many, ok := err.(joined); ok {
		var lines []string
		for _, e := range many.Unwrap() {
			lines = append(lines, faultLines(e)...)
		}
		return lines
	}
	if f, ok := errors.AsType[*Fault](err); ok {
		return f.lines()
	}
	if e, ok := errors.AsType[*json.SemanticError](err); ok {
		return []string{inField(slices.Collect(e.JSONPointer.Tokens()), decodeText(e))}
	}
	return []string{strings.ReplaceAll(err.Error(), "\n", " ")}
}

// decodeText describes an error of Decode without its place.
func decodeText(e *json.SemanticError) string {
	switch {
	case errors.Is(e.Err, strconv.ErrRange):
		return fmt.Sprintf("number %s is out of range", e.JSONValue)
	case errors.Is(e.Err, strconv.ErrSyntax) && e.JSONKind == '0':
		return fmt.Sprintf("number %s is no integer in range", e.JSONValue)
	case e.Err != nil:
		return strings.ReplaceAll(e.Err.Error(), "\n", " ")
	case e.JSONKind == '0':
		return fmt.Sprintf("number %s is out of range", e.JSONValue)
	}
	return "unexpected " + kindName(e.JSONKind)
}

// kindName returns the name of a JSON kind.
func kindName(k jsontext.Kind) string {
	switch k {
	case '"':
		return "string"
	case '0':
		return "number"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	case '[':
		return "array"
	}
	return "object"
}

// inField puts the place of a value before a text about it.
func inField(path []string, text string) string {
	if len(path) == 0 {
		return text
	}
	return "field " + schema.FieldPath(path) + ": " + text
}
