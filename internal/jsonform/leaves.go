package jsonform

// leaves.go: Leaves, the values in an object by their names.

import stdjson "encoding/json"

// Leaves returns the values in an object and in its inner objects by their names, which are joined
// by dots. A list is one value. A value that is no object has no leaves.
func Leaves(object stdjson.RawMessage) map[string]stdjson.RawMessage {
	out := map[string]stdjson.RawMessage{}
	addLeaves(out, "", object)
	return out
}

func addLeaves(out map[string]stdjson.RawMessage, prefix string, value stdjson.RawMessage) {
	var object map[string]stdjson.RawMessage
	if stdjson.Unmarshal(value, &object) != nil || object == nil {
		if prefix != "" {
			out[prefix] = value
		}
		return
	}
	for name, inner := range object {
		if prefix != "" {
			name = prefix + "." + name
		}
		addLeaves(out, name, inner)
	}
}

// Number returns a JSON number. False means that value is none.
func Number(value stdjson.RawMessage) (n float64, ok bool) {
	ok = stdjson.Unmarshal(value, &n) == nil && string(value) != "null"
	return n, ok
}
