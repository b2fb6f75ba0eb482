package openai

import (
	"encoding/base64"
	"hash/fnv"
	"math"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/jsonscan"
)

// encoder appends a body. The same request always gives the same bytes, and a longer conversation begins with the bytes of
// the shorter one, so that providers' prompt caches hit.
type encoder struct {
	*dialect
	model string
	tools *toolset
	b     []byte
	own   []byte   // the members of the request's provider options
	keys  []string // their names, which win over ours
	err   error
}

// encode appends the body of req to dst.
func (d *dialect) encode(dst []byte, name string, tools *toolset, req *pawl.Request) ([]byte, error) {
	if req.Model != "" {
		name = req.Model
	}
	e := encoder{dialect: d, model: name, tools: tools, b: dst}
	if name == "" {
		return dst, d.invalid("model", "no model is named")
	}
	if err := req.Choice.Check(req.Tools); err != nil {
		return dst, &pawl.ProviderError{Provider: d.provider, Code: pawl.CodeInvalidRequest, Message: err.Error(), Err: err}
	}
	if len(req.Output) > 0 && !jsonscan.IsObject(req.Output) {
		return dst, d.invalid("output", "the schema is not a JSON object")
	}
	if o := req.Settings.Options[d.provider]; len(o) > 0 {
		e.options(o)
	}
	e.b = append(e.b, '{')
	if e.key("model") {
		e.string(name)
	}
	d.api.encode(&e, req)
	if e.own != nil {
		e.comma()
		e.b = append(e.b, e.own...)
	}
	e.b = append(e.b, '}')
	return e.b, e.err
}

// options takes the members of a JSON object that go into the body as they are.
func (e *encoder) options(o []byte) {
	if !jsonscan.IsObject(o) {
		e.fail(e.invalid("settings.options."+e.provider, "not a JSON object"))
		return
	}
	c := jsonscan.New(o)
	c.Object()
	for k, ok := c.Key(); ok; k, ok = c.Key() {
		e.keys = append(e.keys, string(k))
	}
	if len(e.keys) > 0 {
		s := strings.TrimSpace(string(o))
		e.own = []byte(strings.TrimSpace(s[1 : len(s)-1]))
	}
}

func (e *encoder) fail(err error) {
	if e.err == nil {
		e.err = err
	}
}

// key begins a member of the body, and reports false where the request's options have it.
func (e *encoder) key(name string) bool {
	for _, k := range e.keys {
		if k == name {
			return false
		}
	}
	e.comma()
	e.b = append(e.b, '"')
	e.b = append(e.b, name...)
	e.b = append(e.b, '"', ':')
	return true
}

// comma separates members and elements: it is left out after an opening bracket.
func (e *encoder) comma() {
	switch e.b[len(e.b)-1] {
	case '{', '[':
	default:
		e.b = append(e.b, ',')
	}
}

func (e *encoder) raw(s string) { e.b = append(e.b, s...) }

func (e *encoder) string(s string) { e.b = jsonscan.AppendString(e.b, s) }

func (e *encoder) bytes(s []byte) { e.b = jsonscan.AppendString(e.b, s) }

func (e *encoder) int(n int) { e.b = strconv.AppendInt(e.b, int64(n), 10) }

func (e *encoder) bool(v bool) { e.b = strconv.AppendBool(e.b, v) }

func (e *encoder) float(field string, f float64) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		e.fail(e.invalid(field, "%v is no number", f))
	}
	e.b = strconv.AppendFloat(e.b, f, 'f', -1, 64)
}

// sampling writes the settings that both APIs name alike.
func (e *encoder) sampling(s *pawl.Settings, tools bool) {
	if s.Temperature != nil && e.key("temperature") {
		e.float("settings.temperature", *s.Temperature)
	}
	if s.TopP != nil && e.key("top_p") {
		e.float("settings.top_p", *s.TopP)
	}
	if s.Parallel != nil && tools && e.key("parallel_tool_calls") {
		e.bool(*s.Parallel)
	}
}

// dataURI appends a string that holds data itself.
func (e *encoder) dataURI(mime string, data []byte) {
	e.raw(`"data:`)
	q := jsonscan.AppendString(nil, mime)
	e.b = append(e.b, q[1:len(q)-1]...)
	e.raw(`;base64,`)
	e.base64(data)
	e.raw(`"`)
}

func (e *encoder) base64(data []byte) { e.b = base64.StdEncoding.AppendEncode(e.b, data) }

// id writes a call id as the server takes it. Longer or stranger ones are replaced by a hash, the same for the call and
// for its result, and different for different ids.
func (e *encoder) id(id string) {
	switch {
	case e.mistral && !nineLetters(id):
		const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
		var short [9]byte
		for i, h := 0, hash(id); i < len(short); i, h = i+1, h/62 {
			short[i] = letters[h%62]
		}
		id = string(short[:])
	case len(id) > e.maxID:
		id = "call_" + strconv.FormatUint(hash(id), 36)
	}
	e.string(id)
}

func nineLetters(s string) bool {
	for _, c := range []byte(s) {
		if !(c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z') {
			return false
		}
	}
	return len(s) == 9
}

func hash(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}

// resultText writes the texts of a result as one string. The APIs have no field for errors, so the text says it.
func (e *encoder) resultText(r *pawl.ToolResult) {
	text := r.Text()
	if !r.IsError {
		e.string(text)
		return
	}
	e.string(errorText(text))
}

func errorText(text string) string {
	switch {
	case text == "":
		return "Error"
	case len(text) >= 5 && strings.EqualFold(text[:5], "error"):
		return text
	}
	return "Error: " + text
}

// mediaKind says how media is sent: "image", "audio", "file", or "" where its type is unknown.
func mediaKind(m pawl.Media) string {
	switch kind, _, _ := strings.Cut(m.MIME, "/"); kind {
	case "image":
		return "image"
	case "audio":
		return "audio"
	case "application", "text":
		return "file"
	case "":
		if m.URL != "" {
			return "image"
		}
	}
	return ""
}

// fileName is a name for a document that has none; servers look at its ending.
func fileName(mime string) string {
	switch mime {
	case "application/pdf":
		return "file.pdf"
	case "application/json":
		return "file.json"
	case "text/markdown":
		return "file.md"
	case "text/csv":
		return "file.csv"
	case "text/html":
		return "file.html"
	}
	return "file.txt"
}

// field names a part of a request in an error.
func field(message, part int) string {
	return "messages[" + strconv.Itoa(message) + "].parts[" + strconv.Itoa(part) + "]"
}

// strict reports whether the provider can hold a reply to the schema exactly: every object closes itself and requires
// all its properties. Other schemas are sent as a wish, and pawl checks the reply either way.
func strict(schema []byte) bool {
	c := jsonscan.New(schema)
	return strictValue(&c) && c.End() == nil
}

func strictValue(c *jsonscan.Cursor) bool {
	ok := true
	switch c.Kind() {
	case jsonscan.Array:
		for c.Array(); c.More(); {
			ok = strictValue(c) && ok
		}
	case jsonscan.Object:
		c.Object()
		properties, required, closed, object := 0, 0, false, false
		for k, more := c.Key(); more; k, more = c.Key() {
			switch string(k) {
			case "type":
				object = object || c.Kind() == jsonscan.String && string(c.Text()) == "object"
			case "properties":
				object = true
				if !c.Object() {
					return false
				}
				for _, more := c.Key(); more; _, more = c.Key() {
					properties++
					ok = strictValue(c) && ok
				}
			case "required":
				for c.Array(); c.More(); {
					required++
				}
			case "additionalProperties":
				closed = c.Kind() == jsonscan.False
			case "enum", "const", "default", "examples":
			default:
				ok = strictValue(c) && ok
			}
		}
		if object {
			ok = ok && closed && properties == required
		}
	default:
		c.Skip()
	}
	return ok
}
