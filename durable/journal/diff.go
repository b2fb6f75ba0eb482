package journal

// diff.go: where two runs differ.

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/redact"
)

// Difference is a place where two runs differ.
type Difference struct {
	// Key is the key of the reply's request, or of the call. "" means another place.
	Key llm.Key `json:"key"`
	// What is messages, values, reply, call, steered, pending or end.
	What string `json:"what"`
	// First is the value of the first run. Nil means none.
	First json.RawMessage `json:"a,omitzero"`
	// Second is the value of the second run. Nil means none.
	Second json.RawMessage `json:"b,omitzero"`
}

// Diff returns the differences between a and b in the order of their keys, with the reply before
// the call for equal keys. Reply ids of providers count as well as texts. The origin of the runs
// does not count.
//
// No Difference contains a secret of hide; nil hides nothing. If two values differ only in secrets,
// both sides have the same text.
func Diff(a, b *Export, hide *redact.Redactor) ([]Difference, error) {
	ds, err := diff(a, b)
	if err != nil || len(ds) == 0 || hide == nil {
		return ds, err
	}
	shownA, errA := byPlace(a.Redacted(hide))
	shownB, errB := byPlace(b.Redacted(hide))
	for i := range ds {
		d := &ds[i]
		at := place{d.Key, d.What}
		d.First = shownA[at]
		d.Second = shownB[at]
	}
	return ds, errors.Join(errA, errB)
}

// place is where two runs may differ.
type place struct {
	key  llm.Key
	what string
}

// byPlace returns the forms of all records of x.
func byPlace(x *Export) (map[place]json.RawMessage, error) {
	all, err := diff(x, &Export{})
	out := make(map[place]json.RawMessage, len(all))
	for _, d := range all {
		out[place{d.Key, d.What}] = d.First
	}
	return out, err
}

// diff returns the differences with their secrets.
func diff(a, b *Export) ([]Difference, error) {
	var d differ
	d.compare("", "messages", a.Messages, b.Messages)
	d.compare("", "values", a.Values, b.Values)
	byKey(&d, "reply", a.Replies, b.Replies, func(r ExportedReply) llm.Key { return r.Key })
	byKey(&d, "steered", a.Steered, b.Steered, func(w ExportedWord) llm.Key { return w.Key })
	byKey(&d, "call", a.Calls, b.Calls, func(c ExportedCall) llm.Key { return c.Key })
	byKey(&d, "pending", a.Pending, b.Pending, func(q ExportedAsk) llm.Key { return q.Key })
	slices.SortStableFunc(d.out, func(x, y Difference) int { return CompareKeys(x.Key, y.Key) })
	d.compare("", "end", a.End, b.End)
	return d.out, d.err
}

// differ collects differences.
type differ struct {
	out []Difference
	err error
}

// compare records x and y if their forms differ.
func (d *differ) compare(key llm.Key, what string, x, y any) {
	a, err := json.Marshal(x)
	if err != nil {
		d.err = err
	}
	b, err := json.Marshal(y)
	if err != nil {
		d.err = err
	}
	if string(a) != string(b) {
		d.out = append(d.out, Difference{key, what, there(a), there(b)})
	}
}

// there returns the form of a value, or nil for no value.
func there(form []byte) json.RawMessage {
	if string(form) == "null" {
		return nil
	}
	return form
}

// byKey compares the values of two lists that have the same key.
func byKey[T any](d *differ, what string, as, bs []T, key func(T) llm.Key) {
	rest := map[llm.Key]*T{}
	for i := range bs {
		rest[key(bs[i])] = &bs[i]
	}
	for i := range as {
		k := key(as[i])
		d.compare(k, what, &as[i], rest[k])
		delete(rest, k)
	}
	for k, b := range rest {
		d.compare(k, what, (*T)(nil), b)
	}
}
