package wire

import (
	"bytes"
	"encoding/base64"
	"hash/fnv"
	"math"
	"strconv"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
)

// Writer appends a body. The same request always gives the same bytes, and a longer conversation begins with the bytes of
// the shorter one, so that providers' prompt caches hit.
type Writer struct {
	Provider string
	B        []byte
	Keys     []string // the names in the request's provider options, which win over the adapter's
	Err      error    // the first thing that could not be written
	Tools    []byte   // the inside of the options' list of tools, which stand beside those of the request; nil: none
	own      []byte   // the other members of the options
}

// Buffer returns an empty buffer for the body of req, in most cases large enough. The buffer is not used again: a
// RoundTripper may read the body after the exchange is over.
func Buffer(req *llm.Request, tools *Toolset) []byte {
	n := 1<<10 + len(tools.Body) + len(req.Output)
	for i := range req.Messages {
		n += sizeOf(req.Messages[i].Parts)
	}
	return make([]byte, 0, n+n/16) // a sixteenth for what JSON escapes
}

// sizeOf estimates the length of parts as JSON.
func sizeOf(parts []llm.Part) int {
	n := 32
	for _, p := range parts {
		n += 64
		switch p := p.(type) {
		case llm.Text:
			n += len(p.Text)
		case llm.Reasoning:
			n += len(p.Text)
			if p.Opaque != nil {
				n += len(p.Opaque.Data)
			}
		case llm.ToolCall:
			n += len(p.ID) + len(p.Name) + len(p.Args)
		case llm.ToolResult:
			n += len(p.CallID) + sizeOf(p.Parts)
		case llm.Media:
			n += len(p.Data) * 4 / 3
		}
	}
	return n
}

// Begin opens the body. options are the request's for this provider: an object whose members go into the body as they
// are; empty: none. Its tools, where they are a list, are left for the adapter to put beside its own.
func (w *Writer) Begin(options []byte) {
	if len(options) > 0 {
		w.options(options)
	}
	w.B = append(w.B, '{')
}

// Finish closes the body.
func (w *Writer) Finish() ([]byte, error) {
	if w.own != nil {
		w.Comma()
		w.B = append(w.B, w.own...)
	}
	w.B = append(w.B, '}')
	return w.B, w.Err
}

// options takes the members of a JSON object that go into the body as they are.
func (w *Writer) options(o []byte) {
	if !jsonscan.IsObject(o) {
		w.Fail(Invalid(w.Provider, "settings.options."+w.Provider, "not a JSON object"))
		return
	}
	listed := false
	c := jsonscan.New(o)
	c.Object()
	for k, ok := c.Key(); ok; k, ok = c.Key() {
		if listed = listed || string(k) == "tools" && c.Kind() == jsonscan.Array; !listed || string(k) != "tools" {
			w.Keys = append(w.Keys, string(k))
		}
	}
	if listed {
		o = w.tools(o)
	}
	if s := bytes.TrimSpace(o); len(w.Keys) > 0 {
		w.own = bytes.TrimSpace(bytes.Clone(s[1 : len(s)-1]))
	}
}

// tools takes the list of tools out of an object.
func (w *Writer) tools(o []byte) []byte {
	rest := []byte{'{'}
	c := jsonscan.New(o)
	c.Object()
	for k, ok := c.Key(); ok; k, ok = c.Key() {
		name, value := string(k), c.Raw()
		if name == "tools" && value[0] == '[' {
			w.Tools = bytes.TrimSpace(bytes.Clone(value[1 : len(value)-1]))
			continue
		}
		if len(rest) > 1 {
			rest = append(rest, ',')
		}
		rest = append(append(jsonscan.AppendString(rest, name), ':'), value...)
	}
	return append(rest, '}')
}

// List appends an encoded list of tools, and those of the options after them.
func (w *Writer) List(body []byte) {
	w.Raw("[")
	if len(body) > 2 {
		w.B = append(w.B, body[1:len(body)-1]...)
	}
	if len(w.Tools) > 0 {
		w.Comma()
		w.B = append(w.B, w.Tools...)
	}
	w.Raw("]")
}

// Fail keeps the first error.
func (w *Writer) Fail(err error) {
	if w.Err == nil {
		w.Err = err
	}
}

// Key begins a member of the body, and reports false where the request's options have it.
func (w *Writer) Key(name string) bool {
	for _, k := range w.Keys {
		if k == name {
			return false
		}
	}
	w.Comma()
	w.B = append(w.B, '"')
	w.B = append(w.B, name...)
	w.B = append(w.B, '"', ':')
	return true
}

// Comma separates members and elements: it is left out after an opening bracket.
func (w *Writer) Comma() {
	switch w.B[len(w.B)-1] {
	case '{', '[':
	default:
		w.B = append(w.B, ',')
	}
}

// Raw appends s as it is.
func (w *Writer) Raw(s string) { w.B = append(w.B, s...) }

// String appends s as a JSON string.
func (w *Writer) String(s string) { w.B = jsonscan.AppendString(w.B, s) }

// Bytes appends s as a JSON string.
func (w *Writer) Bytes(s []byte) { w.B = jsonscan.AppendString(w.B, s) }

// Int appends a number.
func (w *Writer) Int(n int) { w.B = strconv.AppendInt(w.B, int64(n), 10) }

// Bool appends true or false.
func (w *Writer) Bool(v bool) { w.B = strconv.AppendBool(w.B, v) }

// Float appends a number; field names it in the error of one that JSON does not have.
func (w *Writer) Float(field string, f float64) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		w.Fail(Invalid(w.Provider, field, "%v is no number", f))
	}
	w.B = strconv.AppendFloat(w.B, f, 'f', -1, 64)
}

// Base64 appends data in base64, without quotes.
func (w *Writer) Base64(data []byte) { w.B = base64.StdEncoding.AppendEncode(w.B, data) }

// Hash is 64 bits of s, the same every time.
func Hash(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}
