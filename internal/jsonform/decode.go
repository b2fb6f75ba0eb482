package jsonform

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// Decode decodes JSON that fits a schema into a Go value. JSON Schema accepts more than Go: 3.0 and
// 3e0 are integers there, and integers have no bounds. Decode accepts 3.0 and 3e0. An integer out
// of bounds is an error.
func Decode(b json.RawMessage, into any) error {
	err := json.Unmarshal(b, into)
	if err == nil {
		return nil
	}
	if plain := plainIntegers(b); plain != nil {
		reflect.ValueOf(into).Elem().SetZero()
		err = json.Unmarshal(plain, into)
	}
	return err
}

// DecodeText describes an error of Decode for the model, without names of Go types.
func DecodeText(err error) string {
	var te *json.UnmarshalTypeError
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
func plainIntegers(args json.RawMessage) json.RawMessage {
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
		case json.Number:
			f, err := x.Float64()
			if err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 && strings.ContainsAny(string(x), ".eE") {
				changed = true
				return json.Number(strconv.FormatInt(int64(f), 10))
			}
		}
		return v
	}
	v = walk(v)
	out, err := json.Marshal(v)
	if err != nil || !changed {
		return nil
	}
	return out
}
