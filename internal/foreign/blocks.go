package foreign

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

	"github.com/pawl-go/pawl/internal/text"
)

// maxDepth is the maximum depth of blocks in blocks. Deeper ones are shown as JSON.
const maxDepth = 8

// maxUnknown is the number of bytes of an unknown block that the model reads.
const maxUnknown = 4 << 10

// Blocks adds the content of a result: a list of blocks, a single block, or a text. The forms are
// MCP's, and the forms in which servers write them that were made for one provider. A block of an
// unknown type is read if it has a text or bytes, and shown as JSON otherwise. Null and nil add
// nothing.
func (r *Reader) Blocks(content json.RawMessage) { r.blocks(content, 0) }

func (r *Reader) blocks(content json.RawMessage, depth int) {
	content = bytes.TrimSpace(content)
	if depth > maxDepth {
		r.JSON(content)
		return
	}

	var list []json.RawMessage
	if json.Unmarshal(content, &list) != nil {
		list = []json.RawMessage{content}
	}
	for _, b := range list {
		r.block(b, depth)
	}
}

func (r *Reader) block(raw json.RawMessage, depth int) {
	raw = bytes.TrimSpace(raw)
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return
	case raw[0] == '"':
		r.Text(asText(raw))
		return
	case raw[0] != '{':
		r.JSON(raw)
		return
	}

	b := fields{}
	if json.Unmarshal(raw, &b) != nil {
		r.JSON(raw)
		return
	}
	kind := b.text("type", "kind")
	switch {
	case kind == "resource_link":
		r.link(b)
	case b.has("resource"):
		r.resource(b)
	case kind == "tool_result" && b.has("content"):
		r.blocks(b["content"], depth+1)
	case kind == "text" && b.has("text"):
		r.Text(asText(b["text"]))
	case r.encoded(b):
	case b.has("text"):
		r.Text(asText(b["text"]))
	case kind == "image" || kind == "audio" || kind == "video":
		r.withoutData(kind, b)
	default:
		r.unknown(kind, raw)
	}
}

// encoded adds the data of a block, if it has any.
func (r *Reader) encoded(b fields) bool {
	for _, place := range b.places() {
		for _, name := range []string{"data", "blob", "bytes", "raw", "url", "image_url", "uri"} {
			value, ok := place.string(name)
			isAddress := name == "url" || name == "image_url" || name == "uri"
			if !ok || isAddress && !strings.HasPrefix(strings.ToLower(value), "data:") {
				continue
			}
			stated := cmp.Or(place.mime(), b.mime())
			r.Encoded(value, stated, b.text("name", "filename", "title"))
			return true
		}
	}
	return false
}

// withoutData adds a note about a medium that has no data.
func (r *Reader) withoutData(kind string, b fields) {
	for _, place := range b.places() {
		if address := place.text("url", "uri", "image_url"); address != "" {
			r.Link(address, kind, b.mime())
			return
		}
	}
	r.drop("%s is left out: it has no data", r.name(cmp.Or(b.mime(), kind), maxKind))
}

// unknown shows a block of a type that is not known.
func (r *Reader) unknown(kind string, raw json.RawMessage) {
	r.Head("content of an unknown kind: %s", r.name(cmp.Or(kind, "without a type"), maxKind))
	r.Text(text.Clip(string(raw), maxUnknown))
}

// resource adds an embedded resource under its address.
func (r *Reader) resource(b fields) {
	var of fields
	if json.Unmarshal(b["resource"], &of) != nil || of == nil {
		r.unknown("resource", b["resource"])
		return
	}
	r.contents(of)
}

// Contents adds the contents of resources, as resources/read returns them: a list, or one of them.
func (r *Reader) Contents(raw json.RawMessage) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		list = []json.RawMessage{raw}
	}
	for _, c := range list {
		var of fields
		if json.Unmarshal(c, &of) != nil || of == nil {
			r.block(c, 0)
			continue
		}
		r.contents(of)
	}
}

func (r *Reader) contents(of fields) {
	kind := of.mime()
	head := "resource " + r.name(of.text("uri"), 500)
	if kind != "" {
		head += ", " + r.name(kind, maxKind)
	}
	r.Head("%s", head)

	switch {
	case of.has("blob"):
		r.Encoded(asText(of["blob"]), kind, "")
	case of.has("text"):
		r.Text(asText(of["text"]))
	default:
		r.drop("the resource has no content")
	}
}

func (r *Reader) link(b fields) {
	r.Link(b.text("uri", "url"), b.text("name", "title"), b.mime(), b.text("description"))
}

// fields are the members of a block.
type fields map[string]json.RawMessage

// has reports whether the block has a member that is not null.
func (f fields) has(name string) bool { return len(f[name]) > 0 && string(f[name]) != "null" }

// string returns a member that is a string.
func (f fields) string(name string) (string, bool) {
	var s string
	if !f.has(name) || json.Unmarshal(f[name], &s) != nil {
		return "", false
	}
	return s, true
}

// text returns the first member of names that is a string and not empty.
func (f fields) text(names ...string) string {
	for _, name := range names {
		if s, _ := f.string(name); s != "" {
			return s
		}
	}
	return ""
}

// mime returns the media type that the block states, under any of the names that providers use.
func (f fields) mime() string { return f.text("mimeType", "mime_type", "mediaType", "media_type") }

// places returns the objects in which the data of the block may be: itself, and the members in
// which the blocks of providers have it.
func (f fields) places() []fields {
	all := []fields{f}
	for _, name := range []string{"source", "image_url", "file", "input_audio", "inlineData"} {
		var in fields
		if json.Unmarshal(f[name], &in) == nil && in != nil {
			all = append(all, in)
		}
	}
	return all
}

// asText returns a JSON string as text, and any other value unchanged.
func asText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}
