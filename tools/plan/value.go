package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/internal/text"
)

// from is a reference to a value. In when it also holds the value to compare with.
type from struct {
	From   string          `json:"$from"`
	Equals json.RawMessage `json:"equals"`
	Not    bool            `json:"not"`

	ref ref
}

// read parses the reference in a field of a step. A nil from has no reference.
func (f *from) read(field string) (faults []string) {
	if f == nil {
		return nil
	}
	var err error
	f.ref, err = parseRef(f.From)
	if err != nil {
		return []string{field + ": " + err.Error()}
	}
	return nil
}

// ref is the source of a value: a step, or the item that a step runs for, and a JSON Pointer into
// its value.
type ref struct {
	text string   // as the model wrote it
	step int      // fromItem or fromIndex if it is not a step
	path []string // into the value
	at   []string // position in the arguments
}

const (
	fromItem  = -1
	fromIndex = -2
)

// parseRef reads "2/items/0/id", "item/name" and "index".
func parseRef(s string) (ref, error) {
	// Models also write the reference as a whole JSON Pointer, with a slash before the step.
	head, rest, deeper := strings.Cut(strings.TrimPrefix(s, "/"), "/")
	r := ref{text: s}
	switch head {
	case "item":
		r.step = fromItem
	case "index":
		r.step = fromIndex
		if deeper {
			return r, fmt.Errorf(`$from %q: index is a number and has no parts`, s)
		}
	default:
		n, err := strconv.Atoi(head)
		if err != nil || n < 0 || strconv.Itoa(n) != head {
			return r, fmt.Errorf(`$from %q does not begin with the number of a step: write "0/field"`, s)
		}
		r.step = n
	}

	if rest != "" {
		r.path = strings.Split(rest, "/")
		for i, name := range r.path {
			r.path[i] = unescape.Replace(name)
		}
	}
	return r, nil
}

// unescape decodes the names of a JSON Pointer in one pass, so that ~01 is ~1 and not a slash.
var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// refsIn returns the references in a value of the arguments.
func refsIn(v any, at []string) (refs []ref, faults []string) {
	switch v := v.(type) {
	case map[string]any:
		if _, ok := v["$from"]; ok {
			r, err := refOf(v)
			if err != nil {
				return nil, []string{fmt.Sprintf("args%s: %v", pathText(at), err)}
			}
			r.at = slices.Clone(at)
			return []ref{r}, nil
		}
		// Sorted, so that the same plan has the same faults in the same order.
		for _, name := range slices.Sorted(maps.Keys(v)) {
			r, f := refsIn(v[name], append(at, name))
			refs = append(refs, r...)
			faults = append(faults, f...)
		}

	case []any:
		for i, item := range v {
			r, f := refsIn(item, append(at, strconv.Itoa(i)))
			refs = append(refs, r...)
			faults = append(faults, f...)
		}
	}
	return refs, faults
}

// refOf returns the reference that an object with $from is.
func refOf(object map[string]any) (ref, error) {
	s, ok := object["$from"].(string)
	if !ok || len(object) > 1 {
		return ref{}, errors.New(`an object with $from is {"$from":"STEP/FIELD"} and has nothing else`)
	}
	return parseRef(s)
}

func pathText(at []string) string {
	return strings.Join(slices.Concat([]string{""}, at), ".")
}

// filled returns v with references replaced by their values.
func (p *flow) filled(v any, r *runOf) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		if text, ok := v["$from"].(string); ok {
			f, err := parseRef(text)
			if err != nil {
				return nil, err
			}
			return p.value(f, r)
		}

		out := make(map[string]any, len(v))
		for name, sub := range v {
			var err error
			out[name], err = p.filled(sub, r)
			if err != nil {
				return nil, err
			}
		}
		return out, nil

	case []any:
		out := make([]any, len(v))
		for i, sub := range v {
			var err error
			out[i], err = p.filled(sub, r)
			if err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return v, nil
}

// value returns the value that f refers to.
func (p *flow) value(f ref, r *runOf) (any, error) {
	var v any
	switch f.step {
	case fromIndex:
		return r.index, nil
	case fromItem:
		v = r.item
	default:
		v = p.steps[f.step].gave()
	}

	for i, name := range f.path {
		sub, ok := child(v, name)
		if !ok {
			return nil, fmt.Errorf("$from %q: there is no %s in it; %s", f.text, strings.Join(f.path[:i+1], "/"), holdsText(v))
		}
		v = sub
	}
	return v, nil
}

func child(v any, name string) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		sub, ok := v[name]
		return sub, ok
	case []any:
		i, err := strconv.Atoi(name)
		if err != nil || strconv.Itoa(i) != name {
			return nil, false
		}
		if 0 <= i && i < len(v) {
			return v[i], true
		}
	}
	return nil, false
}

// holdsText says what v contains instead.
func holdsText(v any) string {
	switch v := v.(type) {
	case map[string]any:
		return "there are: " + text.First(slices.Sorted(maps.Keys(v)), 20, ", …")
	case []any:
		return fmt.Sprintf("it is a list of %d", len(v))
	}
	return "it is " + kindOf(v) + " and has no parts"
}

// gave returns the result of the step as a value: its data, or else its text, parsed if it is JSON.
// With each it is the list of these values; a call without result gives null.
func (n *node) gave() any {
	if n.Each == nil {
		return n.runs[0].gave()
	}
	out := make([]any, len(n.runs))
	for i := range n.runs {
		if n.runs[i].status() == statusOK {
			out[i] = n.runs[i].gave()
		}
	}
	return out
}

func (r *runOf) gave() any {
	res := r.done.Result
	if res.Data != nil {
		if v, err := jsonform.Value(res.Data); err == nil {
			return v
		}
	}
	text := res.Text()
	if v, err := jsonform.Value([]byte(text)); err == nil {
		return v
	}
	return text
}

// holds reports whether the condition w is true. A missing value is null.
func (p *flow) holds(w *from, r *runOf) (bool, error) {
	v, _ := p.value(w.ref, r) // what is not there is null
	if w.Equals != nil {
		want, err := jsonform.Value(w.Equals)
		if err != nil {
			return false, err
		}
		return equal(v, want) != w.Not, nil
	}
	switch v := v.(type) {
	case bool:
		return v != w.Not, nil
	case nil:
		return w.Not, nil
	}
	return false, fmt.Errorf(`%s is %s, neither true nor false; say with "equals" what it must be`, w.From, kindOf(v))
}

// equal compares two values; 1 and 1.0 are the same.
func equal(a, b any) bool {
	if i, ok := a.(int); ok { // an index of each
		a = json.Number(strconv.Itoa(i))
	}
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		if !ok {
			return false
		}
		if a == b || !strings.ContainsAny(string(a+b), ".eE") {
			return a == b // large integers that are only close are not equal
		}

		x, err := a.Float64()
		y, err2 := b.Float64()
		return err == nil && err2 == nil && x == y

	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, equal)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	}
	return a == b
}

// kindOf names the type of v for a sentence.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "true or false"
	case json.Number, int:
		return "a number"
	case string:
		return "text"
	case []any:
		return "a list"
	}
	return "an object"
}

// toolOf returns the run's tool with that name. Nil means that there is none.
func toolOf(v *pawl.Invocation, name string) *pawl.Tool {
	tools := v.Tools()
	if i := slices.IndexFunc(tools, func(t *pawl.Tool) bool { return t.Name == name }); i >= 0 {
		return tools[i]
	}
	return nil
}
