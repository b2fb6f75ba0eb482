package gemini

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/internal/jsonscan"
)

// argsWriter joins arguments that arrive as values with paths into the JSON text that they
// describe:
//
//	{"jsonPath":"$.to[0].name","stringValue":"An","willContinue":true}
//	{"jsonPath":"$.to[0].name","stringValue":"na"}
//	{"jsonPath":"$.to[0].age","numberValue":7}            {"to":[{"name":"Anna","age":7
//
// The model writes arguments from front to back, so the text can be emitted while it grows. A
// value for an earlier place ends the reply with an error, because emitted text cannot be changed.
type argsWriter struct {
	out   []byte
	stack []level // the open objects and arrays, outermost first
	open  string  // the path of an unfinished string; "" means none
	half  []byte  // of the character that the last piece of that string ended in
}

// level is an open object or array.
type level struct {
	array bool
	keys  []string // of an object: those written so far
	n     int      // the number of values
}

// step is one step of a path, into an object or an array.
type step struct {
	key   string
	index int // -1 means a key
}

// takeArgs returns the text written since the last take.
func (w *argsWriter) takeArgs() json.RawMessage {
	out := w.out
	w.out = nil
	return out
}

// add adds an array of pieces.
func (w *argsWriter) add(pieces []byte) error {
	c := jsonscan.New(pieces)
	if len(pieces) == 0 {
		return nil
	}
	for c.Array(); c.More(); {
		var path string
		var kind string
		var value []byte
		more := false
		// Elements of another form are skipped: the API may add kinds of pieces. A text that cannot
		// be read is reported below.
		if !c.Object() {
			continue
		}
		for k, ok := c.Key(); ok; k, ok = c.Key() {
			switch string(k) {
			case "jsonPath":
				path = c.String()
			case "willContinue":
				more = c.Bool()
			case "stringValue", "numberValue", "boolValue", "nullValue":
				kind, value = string(k), c.Raw()
			}
		}
		if c.Err() != nil {
			break
		}
		if err := w.piece(path, kind, value, more); err != nil {
			return err
		}
	}
	if c.Err() != nil {
		return broken("pieces of arguments cannot be read: %v", c.Err())
	}
	return nil
}

func (w *argsWriter) piece(path, kind string, value []byte, more bool) error {
	// Pieces of a long string repeat its path. The string stays open in the output, so that each
	// piece can be passed on.
	if w.open != "" && path == w.open {
		if kind == "stringValue" {
			w.string(value)
		} else if kind != "" {
			return broken("arguments cannot be read: the text at %s went on as another value", path)
		}
		if !more {
			w.closeString()
		}
		return nil
	}
	w.closeString() // another value begins, so the string is complete
	if kind == "" {
		return nil
	}
	steps, ok := parsePath(path)
	if !ok {
		return broken("arguments cannot be read: the path %q", path)
	}
	if err := w.move(path, steps); err != nil {
		return err
	}
	switch kind {
	case "stringValue":
		w.out = append(w.out, '"')
		w.string(value)
		w.open = path
		if !more {
			w.closeString()
		}
	case "nullValue":
		w.out = append(w.out, "null"...)
	default:
		if !json.Valid(value) {
			return broken("arguments cannot be read: the value %s", value)
		}
		w.out = append(w.out, value...)
	}
	return nil
}

// string appends the content of a raw JSON string.
func (w *argsWriter) string(raw []byte) {
	c := jsonscan.New(raw)
	text := c.AppendPiece(w.half)
	w.half = nil
	if jsonscan.EndsInHalf(text) {
		end := len(text) - jsonscan.HalfSize
		w.half = bytes.Clone(text[end:])
		text = text[:end]
	}
	w.write(text)
}

// write appends text to the open string.
func (w *argsWriter) write(text []byte) {
	q := jsonscan.AppendString(nil, jsonscan.JoinHalves(text))
	w.out = append(w.out, q[1:len(q)-1]...)
}

func (w *argsWriter) closeString() {
	if w.open != "" {
		w.write(w.half)
		w.half = nil
		w.open = ""
		w.out = append(w.out, '"')
	}
}

// move closes and opens objects and arrays until the value at steps is next.
func (w *argsWriter) move(path string, steps []step) error {
	if len(w.stack) == 0 {
		w.stack = []level{{}}
		w.out = append(w.out, '{')
	}
	depth := 0 // of the deepest open level on the path
	for depth < len(w.stack)-1 && depth < len(steps)-1 && w.stack[depth].last(steps[depth]) {
		depth++
	}
	// Levels that are left cannot be opened again: their text has been passed on.
	w.pop(depth + 1)
	for i := depth; ; i++ {
		top := &w.stack[i]
		s := steps[i]
		if top.array != (s.index >= 0) {
			return broken("arguments cannot be read: %s is no place in what came before", path)
		}
		if top.n > 0 {
			w.out = append(w.out, ',')
		}
		if top.array {
			if s.index != top.n {
				return broken("arguments cannot be read: %s came when [%d] was next", path, top.n)
			}
		} else {
			if slices.Contains(top.keys, s.key) {
				return broken("arguments cannot be read: %s came when the model had gone on from there", path)
			}
			top.keys = append(top.keys, s.key)
			w.out = append(jsonscan.AppendString(w.out, s.key), ':')
		}
		top.n++
		if i == len(steps)-1 {
			return nil
		}
		next := level{array: steps[i+1].index >= 0}
		w.stack = append(w.stack, next)
		w.out = append(w.out, next.bracket())
	}
}

// last reports whether the level's last value is at s.
func (l *level) last(s step) bool {
	if l.array {
		return s.index == l.n-1
	}
	return s.index < 0 && l.n > 0 && l.keys[l.n-1] == s.key
}

func (l *level) bracket() byte {
	if l.array {
		return '['
	}
	return '{'
}

// pop closes levels until n are open.
func (w *argsWriter) pop(n int) {
	for len(w.stack) > n {
		// in ASCII, ']' and '}' are '[' and '{' plus 2
		w.out = append(w.out, w.stack[len(w.stack)-1].bracket()+2)
		w.stack = w.stack[:len(w.stack)-1]
	}
}

// endArgs closes the open levels. A string that was to continue is an error, because its rest is
// unknown.
func (w *argsWriter) endArgs() error {
	if w.open != "" {
		return broken("the arguments of a call broke off inside %s", w.open)
	}
	if len(w.stack) == 0 {
		w.out = append(w.out, "{}"...)
	}
	w.pop(0)
	return nil
}

// parsePath parses a JSONPath to one value: $, followed by .key, ['key'], ["key"] or [0]. It
// returns false for other paths.
func parsePath(path string) ([]step, bool) {
	rest, ok := strings.CutPrefix(path, "$")
	if !ok || rest == "" {
		return nil, false
	}
	var steps []step
	for rest != "" {
		switch {
		case rest[0] == '.':
			rest = rest[1:]
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			if end == 0 {
				return nil, false
			}
			steps = append(steps, step{rest[:end], -1})
			rest = rest[end:]
		case len(rest) > 2 && (rest[1] == '\'' || rest[1] == '"'):
			key, n, ok := quoted(rest[1:])
			if !ok || 1+n >= len(rest) || rest[1+n] != ']' {
				return nil, false
			}
			steps = append(steps, step{key, -1})
			rest = rest[n+2:]
		case rest[0] == '[':
			end := strings.IndexByte(rest, ']')
			if end < 0 {
				return nil, false
			}
			n, err := strconv.Atoi(rest[1:end])
			if err != nil || n < 0 {
				return nil, false
			}
			steps = append(steps, step{"", n})
			rest = rest[end+1:]
		default:
			return nil, false
		}
	}
	return steps, true
}

// quoted parses a key in quotes of either kind, and returns its length in bytes.
func quoted(s string) (key string, n int, ok bool) {
	var b bytes.Buffer
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		case s[i] == s[0]:
			return b.String(), i + 1, true
		default:
			b.WriteByte(s[i])
		}
	}
	return "", 0, false
}
