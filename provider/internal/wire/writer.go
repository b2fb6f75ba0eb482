package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
)

// Writer appends a body. The same request always gives the same bytes, and the body of a longer
// conversation begins with the bytes of the shorter one, so that prompt caches hit.
type Writer struct {
	Provider string
	Body     []byte
	Keys     []string // names in the request's provider options, which override the adapter's
	Err      error    // the first error
	// Tools are the elements of the options' list of tools. List appends them. nil means none.
	Tools []byte
	own   []byte // the other members of the options
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

// Begin opens the body. options is the request's object of options for this provider; empty means
// none. Its members are copied into the body, except a list of tools, which List appends.
func (w *Writer) Begin(options []byte) {
	if len(options) > 0 {
		w.options(options)
	}
	w.Body = append(w.Body, '{')
}

// Finish closes the body. No escape in it is half of a UTF-16 pair: APIs refuse such a body.
func (w *Writer) Finish() ([]byte, error) {
	if w.own != nil {
		w.Comma()
		w.Body = append(w.Body, w.own...)
	}
	w.Body = append(w.Body, '}')
	w.Body = jsonscan.PairEscapes(w.Body)
	return w.Body, w.Err
}

// options reads the members of the object o.
func (w *Writer) options(o []byte) {
	if !jsonscan.IsObject(o) {
		w.Fail(Invalid(w.Provider, "settings.options."+w.Provider, "not a JSON object"))
		return
	}
	listed := false
	c := jsonscan.New(o)
	for k := range c.Members() {
		// Tools of the options are joined with the request's in one array, so that they are no
		// member of their own.
		listed = listed || string(k) == "tools" && c.Kind() == jsonscan.Array
		if !listed || string(k) != "tools" {
			w.Keys = append(w.Keys, string(k))
		}
	}
	if listed {
		o = w.tools(o)
	}
	s := bytes.TrimSpace(o)
	if len(w.Keys) > 0 {
		w.own = bytes.TrimSpace(bytes.Clone(s[1 : len(s)-1]))
	}
}

// tools moves the list of tools from o to w.Tools, and returns the rest of o.
func (w *Writer) tools(o []byte) []byte {
	rest := []byte{'{'}
	c := jsonscan.New(o)
	for k := range c.Members() {
		name := string(k)
		value := c.Raw()
		if name == "tools" && value[0] == '[' {
			w.Tools = bytes.TrimSpace(bytes.Clone(value[1 : len(value)-1]))
			continue
		}
		rest = AppendMember(rest, name, value)
	}
	return append(rest, '}')
}

// List appends an encoded list of tools, followed by the tools of the options.
func (w *Writer) List(body []byte) {
	w.Raw("[")
	if len(body) > 2 {
		w.Body = append(w.Body, body[1:len(body)-1]...)
	}
	if len(w.Tools) > 0 {
		w.Comma()
		w.Body = append(w.Body, w.Tools...)
	}
	w.Raw("]")
}

// Fail records an error. Only the first one counts.
func (w *Writer) Fail(err error) {
	if w.Err == nil {
		w.Err = err
	}
}

// Key begins a member of the body. It returns false, and appends nothing, if the options have the
// member.
func (w *Writer) Key(name string) bool {
	if slices.Contains(w.Keys, name) {
		return false
	}
	w.Comma()
	w.Body = append(w.Body, '"')
	w.Body = append(w.Body, name...)
	w.Body = append(w.Body, '"', ':')
	return true
}

// Comma separates members and elements. It appends nothing after an opening bracket.
func (w *Writer) Comma() {
	switch w.Body[len(w.Body)-1] {
	case '{', '[':
	default:
		w.Body = append(w.Body, ',')
	}
}

// Extra appends the members of an Opaque object with this tag to the current object.
func (w *Writer) Extra(tag string, o *llm.Opaque) {
	if o == nil || o.Provider != tag {
		return
	}
	if n := len(o.Data); n > 2 && o.Data[0] == '{' && o.Data[n-1] == '}' {
		w.Comma()
		w.Body = append(w.Body, o.Data[1:n-1]...)
	}
}

// Raw appends s unchanged.
func (w *Writer) Raw(s string) { w.Body = append(w.Body, s...) }

// String appends s as a JSON string.
func (w *Writer) String(s string) { w.Body = jsonscan.AppendString(w.Body, s) }

// Quote appends parts in turn: JSON unchanged, then a string that it quotes, then JSON, and so on.
func (w *Writer) Quote(parts ...string) {
	for i, p := range parts {
		if i%2 == 0 {
			w.Raw(p)
		} else {
			w.String(p)
		}
	}
}

// Strings appends an array of strings.
func (w *Writer) Strings(list []string) {
	w.Raw("[")
	for _, s := range list {
		w.Comma()
		w.String(s)
	}
	w.Raw("]")
}

// Bytes appends s as a JSON string.
func (w *Writer) Bytes(s []byte) { w.Body = jsonscan.AppendString(w.Body, s) }

// Int appends a number.
func (w *Writer) Int(n int) { w.Body = strconv.AppendInt(w.Body, int64(n), 10) }

// Bool appends true or false.
func (w *Writer) Bool(v bool) { w.Body = strconv.AppendBool(w.Body, v) }

// Float appends a number. A value that JSON does not have is an error, which names field.
func (w *Writer) Float(field string, f float64) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		w.Fail(Invalid(w.Provider, field, "%v is no number", f))
	}
	w.Body = strconv.AppendFloat(w.Body, f, 'f', -1, 64)
}

// Object returns the arguments of a call as one JSON object, because servers pass them to the
// template of a model, and refuse a conversation with anything else. Missing arguments, also
// written as null, are {}. Other arguments become the text of a member with that name. Half of a
// UTF-16 pair becomes U+FFFD, also where the object is sent as a string. A number that servers
// cannot read becomes its text.
func Object(args []byte, member string) []byte {
	args = jsonscan.PairEscapes(args)
	if jsonscan.IsObject(args) {
		return quoteHuge(args)
	}
	switch string(bytes.TrimSpace(args)) {
	case "", "null", `""`, `"null"`:
		return []byte("{}")
	}
	return append(AppendMember(nil, member, jsonscan.AppendString(nil, args)), '}')
}

// Base64 appends data in base64, without quotes.
func (w *Writer) Base64(data []byte) { w.Body = base64.StdEncoding.AppendEncode(w.Body, data) }

// Alphanumeric are the ASCII letters and digits.
const Alphanumeric = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// AppendMember appends a member with a JSON value to an object that is not closed. An empty object
// is begun.
func AppendMember[K string | []byte](object []byte, key K, value []byte) []byte {
	switch {
	case len(object) == 0:
		object = append(object, '{')
	case len(object) > 1:
		object = append(object, ',')
	}
	return append(append(jsonscan.AppendString(object, key), ':'), value...)
}

// WithOptions returns req with members added to the options of provider.
func WithOptions(req *llm.Request, provider, members string) *llm.Request {
	old := bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(req.Settings.Options[provider]), []byte("}")))
	r := new(*req)
	r.Settings.Options = maps.Clone(req.Settings.Options)
	if r.Settings.Options == nil {
		r.Settings.Options = map[string]json.RawMessage{}
	}
	switch {
	case len(old) == 0:
		old = []byte("{")
	case len(old) > 1:
		members = "," + members
	}
	r.Settings.Options[provider] = json.RawMessage(string(old) + members + "}")
	return r
}

// Hash returns a 64-bit hash of s that is the same in every process.
func Hash(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}
