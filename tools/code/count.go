package code

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// Limits for the size and the depth of the values that a single operation processes, because an
// operation cannot be interrupted.
const (
	maxWork    = 16 << 20
	maxNesting = 200
	maxCalls   = 1000     // depth of nested function calls
	maxDigits  = 64 << 10 // bytes of a number
)

var (
	errMemory = errors.New("more memory than it may have")
	errWork   = fmt.Errorf("too large to be processed at once: more than %d million parts", maxWork>>20)
	errDeep   = fmt.Errorf("nested more than %d deep", maxNesting)
)

// takes counts n bytes that are about to be allocated.
func (r *embeddedRun) takes(n int64) error {
	if n < 0 || n > r.left {
		r.why = memory
		r.left = 0
		return errMemory
	}
	r.left -= n
	return nil
}

// weight returns the cost of traversing or printing a value completely. A value that contains
// another value a thousand times counts it a thousand times. The error says that the cost exceeds
// the limit.
func weight(v starlark.Value) (int64, error) {
	left := int64(maxWork)
	err := weigh(v, 0, &left)
	return maxWork - left, err
}

func weigh(v starlark.Value, depth int, left *int64) error {
	n := int64(8)
	switch v := v.(type) {
	case starlark.String:
		n += int64(len(v))
	case starlark.Bytes:
		n += int64(len(v))
	case starlark.Int:
		n += intBytes(v)
	}

	// Checked before the elements are visited: on each level, a small value may contain another one
	// a thousand times.
	*left -= n
	if *left < 0 {
		return errWork
	}
	if depth > maxNesting {
		return errDeep
	}

	switch v := v.(type) {
	case *starlark.Dict:
		for k, e := range v.Entries() {
			if err := weigh(k, depth+1, left); err != nil {
				return err
			}
			if err := weigh(e, depth+1, left); err != nil {
				return err
			}
		}
	case *starlark.List, starlark.Tuple, *starlark.Set:
		for e := range starlark.Elements(v.(starlark.Iterable)) {
			if err := weigh(e, depth+1, left); err != nil {
				return err
			}
		}
	}
	return nil
}

func intBytes(i starlark.Int) int64 {
	if _, ok := i.Int64(); ok {
		return 8
	}
	return int64(i.BigInt().BitLen()/8 + 8)
}

// flat returns the size of a value without its elements.
func flat(v starlark.Value) int64 {
	switch v := v.(type) {
	case starlark.String:
		return int64(len(v))
	case starlark.Bytes:
		return int64(len(v))
	case starlark.Int:
		return intBytes(v)
	case starlark.Sequence:
		return 16 * int64(v.Len())
	}
	return 8
}

// plain reports whether v has no elements.
func plain(v starlark.Value) bool {
	switch v := v.(type) {
	case starlark.NoneType, starlark.Bool, starlark.Float:
		return true
	case starlark.Int:
		_, ok := v.Int64()
		return ok
	case starlark.String:
		return len(v) < 4096
	}
	return false
}

// binary applies an operator and counts the result and the traversed operands.
func (r *embeddedRun) binary(op syntax.Token, x, y starlark.Value) (starlark.Value, error) {
	switch op {
	case syntax.EQL, syntax.NEQ, syntax.LT, syntax.LE, syntax.GT, syntax.GE:
		if err := bothWeigh(x, y); err != nil {
			return nil, err
		}
		ok, err := starlark.Compare(op, x, y)
		return starlark.Bool(ok), err
	}

	if err := r.countOperator(op, x, y); err != nil {
		return nil, err
	}
	size := flat(x) + flat(y)
	if !plain(x) || !plain(y) {
		if err := r.takes(size); err != nil {
			return nil, err
		}
		if intTooLarge(x) || intTooLarge(y) {
			return nil, fmt.Errorf("a number of more than %d bytes", maxDigits)
		}
	}
	copies := op == syntax.PLUS || op == syntax.PERCENT
	// Small results are not counted: counting would cost more than they do.
	if copies && size > 64 {
		if err := r.takes(size); err != nil {
			return nil, err
		}
	}
	return starlark.Binary(op, x, y)
}

// countOperator counts what an operator traverses or allocates beyond its operands' own size.
func (r *embeddedRun) countOperator(op syntax.Token, x, y starlark.Value) error {
	switch op {
	case syntax.IN, syntax.NOT_IN:
		if _, lazy := y.(starlark.Sequence); lazy || !plain(x) {
			return bothWeigh(x, y)
		}

	case syntax.STAR:
		return r.takes(product(x, y))

	case syntax.PERCENT:
		s, ok := x.(starlark.String)
		if !ok {
			return nil
		}
		n, err := weight(y)
		if err != nil {
			return err
		}
		return r.takes(int64(len(s)) + 4*n)

	case syntax.PIPE, syntax.AMP, syntax.CIRCUMFLEX, syntax.MINUS:
		if _, number := x.(starlark.Int); number {
			return nil
		}
		if err := bothWeigh(x, y); err != nil {
			return err
		}
		return r.takes(4 * (flat(x) + flat(y)))
	}
	return nil
}

func intTooLarge(v starlark.Value) bool {
	i, ok := v.(starlark.Int)
	return ok && intBytes(i) > maxDigits
}

// product returns the number of bytes that x * y allocates.
func product(x, y starlark.Value) int64 {
	if _, ok := x.(starlark.Int); ok {
		x, y = y, x
	}
	n, ok := y.(starlark.Int)
	if _, number := x.(starlark.Int); !ok || number {
		return 16
	}
	times, ok := n.Int64()
	size := flat(x)
	switch {
	case !ok && n.Sign() > 0 && size > 0:
		// A negative number of bytes is more than any budget has.
		return -1
	case times <= 0 || size == 0:
		return 0
	case times > (1<<62)/size:
		return -1
	default:
		return times * size
	}
}

func bothWeigh(x, y starlark.Value) error {
	for _, v := range []starlark.Value{x, y} {
		if !plain(v) {
			if _, err := weight(v); err != nil {
				return err
			}
		}
	}
	return nil
}

// through returns the value that a function may traverse without counting steps, or a replacement
// for it. A generated sequence (range) can be very long.
func (r *embeddedRun) through(v starlark.Value) (_ starlark.Value, other bool, err error) {
	switch v := v.(type) {
	case starlark.String:
		list, err := r.characters(string(v))
		return list, true, err
	case *starlark.List, starlark.Tuple, *starlark.Dict, *starlark.Set:
	case starlark.Sequence:
		return v, false, r.takes(16 * int64(v.Len()))
	case starlark.Iterable:
		list, err := r.gathered(v)
		return starlark.NewList(list), true, err
	}
	return v, false, nil
}

// characters returns text as a list of its characters.
func (r *embeddedRun) characters(s string) (starlark.Value, error) {
	if err := r.takes(16*int64(utf8.RuneCountInString(s)) + 16); err != nil {
		return nil, err
	}
	list := make([]starlark.Value, 0, len(s))
	for _, c := range s {
		list = append(list, starlark.String(string(c)))
	}
	return starlark.NewList(list), nil
}

// runes is text that is indexed by characters, as in Python, whereas the interpreter indexes bytes.
// Programs only index or slice it.
type runes struct {
	text starlark.String
	list []rune
}

var _ starlark.Sliceable = runes{}

// String returns the text in the interpreter's notation.
func (s runes) String() string { return s.text.String() }

// Type returns string.
func (s runes) Type() string { return s.text.Type() }

// Freeze does nothing.
func (s runes) Freeze() {}

// Truth reports whether the text is not empty.
func (s runes) Truth() starlark.Bool { return s.text.Truth() }

// Hash returns the hash of the text.
func (s runes) Hash() (uint32, error) { return s.text.Hash() }

// Len returns the number of characters.
func (s runes) Len() int { return len(s.list) }

// Index returns a character.
func (s runes) Index(i int) starlark.Value { return starlark.String(string(s.list[i])) }

// Slice returns a part of the text.
func (s runes) Slice(start, end, step int) starlark.Value {
	if step == 1 {
		return starlark.String(string(s.list[start:end]))
	}
	var b strings.Builder
	inside := func(i int) bool { return i < end }
	if step < 0 {
		inside = func(i int) bool { return i > end }
	}
	for i := start; inside(i); i += step {
		b.WriteRune(s.list[i])
	}
	return starlark.String(b.String())
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
