package code

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	starlarkjson "go.starlark.net/lib/json"
	"go.starlark.net/starlark"
)

// jsonWriter writes values in the format of Python's json module.
type jsonWriter struct {
	out          *bytes.Buffer
	comma, colon string
	indent       string // empty means one line
	ascii, sort  bool
}

func (w *jsonWriter) write(v starlark.Value, depth int) error {
	switch v := v.(type) {
	case starlark.NoneType:
		w.out.WriteString("null")
	case starlark.Bool:
		w.out.WriteString(strconv.FormatBool(bool(v)))
	case starlark.Int:
		if intTooLarge(v) {
			return errors.New("a number of too many digits")
		}
		w.out.WriteString(v.String())
	case starlark.Float:
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return errors.New("nan and infinity are not JSON")
		}
		w.out.WriteString(pythonFloat(float64(v)))

	case starlark.String:
		w.text(string(v))
	case *starlark.List:
		return w.list(v.Len(), v.Index, depth)
	case starlark.Tuple:
		return w.list(v.Len(), v.Index, depth)
	case *starlark.Dict:
		return w.dict(v, depth)
	default:
		return fmt.Errorf("a %s has none", v.Type())
	}
	return nil
}

func (w *jsonWriter) text(s string) {
	b := quoted(s)
	if !w.ascii {
		w.out.Write(b)
		return
	}
	for _, c := range string(b) {
		switch {
		case c < utf8.RuneSelf:
			w.out.WriteByte(byte(c))
		case c > 0xffff:
			hi, lo := utf16.EncodeRune(c)
			fmt.Fprintf(w.out, `\u%04x\u%04x`, hi, lo)
		default:
			fmt.Fprintf(w.out, `\u%04x`, c)
		}
	}
}

// parts writes the elements between brackets.
func (w *jsonWriter) parts(open, end byte, n, depth int, part func(i int) error) error {
	w.out.WriteByte(open)
	for i := range n {
		if i > 0 {
			w.out.WriteString(w.comma)
		}
		w.newline(depth + 1)
		if err := part(i); err != nil {
			return err
		}
	}
	if n > 0 {
		w.newline(depth)
	}
	w.out.WriteByte(end)
	return nil
}

func (w *jsonWriter) newline(depth int) {
	if w.indent != "" {
		w.out.WriteString("\n" + strings.Repeat(w.indent, depth))
	}
}

func (w *jsonWriter) list(n int, at func(int) starlark.Value, depth int) error {
	return w.parts('[', ']', n, depth, func(i int) error { return w.write(at(i), depth+1) })
}

func (w *jsonWriter) dict(d *starlark.Dict, depth int) error {
	items := d.Items()
	keys := make([]string, len(items))
	for i, kv := range items {
		switch k := kv[0].(type) {
		case starlark.String:
			keys[i] = string(k)
		// As json.dumps of Python does: {1: 2} becomes {"1": 2}.
		case starlark.NoneType, starlark.Bool, starlark.Int, starlark.Float:
			one := jsonWriter{out: new(bytes.Buffer)}
			if err := one.write(k, 0); err != nil {
				return err
			}
			keys[i] = one.out.String()
		default:
			return fmt.Errorf("keys must be str, int, float, bool or None, not %s", k.Type())
		}
	}

	order := make([]int, len(items))
	for i := range order {
		order[i] = i
	}
	if w.sort {
		sort.SliceStable(order, func(a, b int) bool { return keys[order[a]] < keys[order[b]] })
	}
	return w.parts('{', '}', len(items), depth, func(i int) error {
		w.text(keys[order[i]])
		w.out.WriteString(w.colon)
		return w.write(items[order[i]][1], depth+1)
	})
}

// jsonDumps implements json.dumps.
func jsonDumps(r *embeddedRun, _ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value,
	error) {
	var v, indent starlark.Value
	w := &jsonWriter{out: new(bytes.Buffer), comma: ", ", colon: ": ", ascii: true}
	err := starlark.UnpackArgs("json.dumps", args, kwargs,
		"obj", &v, "indent?", &indent, "sort_keys?", &w.sort, "ensure_ascii?", &w.ascii)
	if err != nil {
		return nil, err
	}

	if indent != nil && indent != starlark.None {
		n, err := starlark.AsInt32(indent)
		if err != nil || n < 0 || n > 16 {
			return nil, errors.New("json.dumps: indent is a number up to 16")
		}
		w.indent = strings.Repeat(" ", n)
		w.comma = ","
	}

	// Counted before the text is built.
	n, err := weight(v)
	if err != nil {
		return nil, err
	}
	if err := r.takes(n * int64(2+len(w.indent))); err != nil {
		return nil, err
	}
	if err := w.write(v, 0); err != nil {
		return nil, err
	}
	return starlark.String(w.out.String()), nil
}

// jsonLoads implements json.loads.
func jsonLoads(r *embeddedRun, _ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value,
	error) {
	var s string
	if err := starlark.UnpackArgs("json.loads", args, kwargs, "s", &s); err != nil {
		return nil, err
	}
	v, err := r.read(json.RawMessage(s))
	if err != nil && r.why == "" {
		return nil, errors.New("json.loads: the text is no JSON")
	}
	return v, err
}

// decode is the language's own reader of JSON; fields keep their order.
var decode = starlarkjson.Module.Members["decode"]

// read converts JSON into a value, after it has checked that the reader, which counts no steps, can
// take it.
func (r *embeddedRun) read(b json.RawMessage) (starlark.Value, error) {
	if err := r.takes(8 * int64(len(b))); err != nil {
		return nil, err
	}
	if !json.Valid(b) {
		return nil, errors.New("no JSON")
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	for depth := 0; ; {
		t, err := d.Token()
		if err != nil { // the end
			return starlark.Call(new(starlark.Thread), decode, starlark.Tuple{starlark.String(b)}, nil)
		}
		switch t := t.(type) {
		case json.Number:
			if len(t) > 4300 {
				return nil, errors.New("a number of too many digits")
			}
		case json.Delim:
			depth--
			if t == '{' || t == '[' {
				depth += 2
			}
			if depth > maxNesting {
				return nil, errDeep
			}
		}
	}
}

// pythonFloat formats a float as Python does.
func pythonFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
