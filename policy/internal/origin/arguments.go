package origin

// arguments.go: finds the values in the arguments of a call.

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/pawl-go/pawl/internal/jsonscan"
)

// Argument is a value of a call with its role.
type Argument struct {
	name  string // of the nearest member around it
	role  role
	value string // as written, and a number as its digits
	plain string
}

// maxArguments bounds the values of one call that are looked at.
const maxArguments = 256

// Arguments returns the values of args that the policy looks at, and one more than maxArguments if
// there are too many.
func (c *Conduct) Arguments(args json.RawMessage) (all []Argument) {
	if c.quiet && !mayHoldLink(args) {
		return nil
	}

	all = make([]Argument, 0, 4)
	w := walker{onValue: func(name, value string, _ bool) {
		plain := plainText(value)
		if r := c.role(name, plain); r != roleNone {
			all = append(all, Argument{name, r, value, plain})
		}
	}}
	cur := jsonscan.New(args)
	w.walk(&cur, "")

	hasAddress := func(a Argument) bool { return a.role == roleAddress }
	if !c.acts && slices.ContainsFunc(all, hasAddress) {
		all = append(all, c.sinks(args)...)
	}

	// The empty arguments say that the call had more values.
	if w.count > maxArguments && len(all) > 0 && len(all) <= maxArguments {
		all = append(all, make([]Argument, maxArguments+1-len(all))...)
	}
	return all
}

// mayHoldLink reports whether args have a part that each link has.
func mayHoldLink(args json.RawMessage) bool {
	return bytes.Contains(args, []byte("/")) || bytes.Contains(args, []byte("ww."))
}

// sinks returns what a read sends to its address: names and values within its arguments, except the
// address, choices and numbers.
func (c *Conduct) sinks(args json.RawMessage) (all []Argument) {
	top := ""
	add := func(v string) { all = append(all, Argument{top, roleSink, v, plainText(v)}) }
	w := walker{onName: add, onValue: func(name, v string, _ bool) {
		if name != top || c.role(name, plainText(v)) != roleAddress {
			add(v)
		}
	}}

	cur := jsonscan.New(args)
	cur.Object()
	for key, ok := cur.Key(); ok; key, ok = cur.Key() {
		top = string(key)
		if c.closed[top] {
			cur.Skip()
			continue
		}
		w.walk(&cur, top)
	}

	if w.count > maxArguments {
		all = append(all, make([]Argument, maxArguments)...)
	}
	return all
}

// walker finds the first maxArguments values in arguments.
type walker struct {
	// onValue gets each string and number with the name of the member around it, and each name that
	// is an address.
	onValue func(name, value string, isString bool)
	// onName gets the names of members; nil means that they are not needed.
	onName func(name string)
	count  int // values and names that were found
}

func (w *walker) found(name, value string, isString bool) {
	w.count++
	if w.count <= maxArguments {
		w.onValue(name, value, isString)
	}
}

// walk reads the value at cur, which stands in the member name.
func (w *walker) walk(cur *jsonscan.Cursor, name string) {
	switch cur.Kind() {
	case jsonscan.Object:
		cur.Object()
		for key, ok := cur.Key(); ok; key, ok = cur.Key() {
			w.member(cur, name, string(key))
		}
	case jsonscan.Array:
		for cur.Array(); cur.More(); {
			w.walk(cur, name)
		}
	case jsonscan.String:
		w.found(name, cur.String(), true)
	case jsonscan.Number:
		w.found(name, string(cur.Raw()), false)
	default:
		cur.Skip()
	}
}

// member reads the member key of an object that stands in the member name.
func (w *walker) member(cur *jsonscan.Cursor, name, key string) {
	if w.onName != nil && w.count <= maxArguments {
		w.count++
		w.onName(key)
	}
	if name != "" && addressKind(plainText(key)) != "" {
		w.found(name, key, true)
	}
	w.walk(cur, key)
}
