package foreign

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/internal/mediatype"
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
	case raw[0] == '[' && areBlocks(raw):
		r.blocks(raw, depth+1)
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
	r.object(raw, b, depth)
}

// object adds a block that is an object, with the members b.
func (r *Reader) object(raw json.RawMessage, b fields, depth int) {
	kind := b.text("type", "kind")
	inner := b.content()
	switch {
	case kind == "resource_link":
		r.link(b)
	case b.has("resource"):
		r.resource(b)
	case kind == "tool_result" && b.has("content"):
		r.blocks(b["content"], depth+1)
	case kind == "text" && b.hasAny("text", "value", "content"):
		r.Text(b.plain("text", "value", "content"))
	case kind == "text" && len(b["text"]) > 0: // null
	case r.encoded(b):
	case b.has("text"):
		r.Text(asText(b["text"]))
	case kind == "" && len(b) == 1 && b.has("json"):
		r.JSON(b["json"])
	case inner != nil:
		r.around(kind, b)
		r.blocks(inner, depth+1)
	case kind == "image" || kind == "audio" || kind == "video":
		r.withoutData(kind, b)
	default:
		r.unknown(kind, raw)
	}
}

// areBlocks reports whether a list holds blocks, and not data.
func areBlocks(list json.RawMessage) bool {
	var all []fields
	if json.Unmarshal(list, &all) != nil {
		return false
	}
	for _, b := range all {
		if b.text("type") == "" {
			return false
		}
	}
	return len(all) > 0
}

// around adds a note about a block that holds others, if it says what they are.
func (r *Reader) around(kind string, b fields) {
	about := strings.TrimSpace(b.text("title", "name") + " " + b.text("source", "uri", "url"))
	if kind != "" && about != "" {
		r.Note("%s: %s", r.name(kind, maxKind), r.name(about, maxName))
	}
}

// encoded adds the data of a block, if it has any.
func (r *Reader) encoded(b fields) bool {
	name := b.text("name", "filename", "title")
	for _, place := range b.places() {
		stated := cmp.Or(place.mime(), b.mime())
		data, isList := place.octets()
		value, isText := place.data()
		isBare := stated == "" && !b.isFile() // nothing says that these are bytes
		switch {
		case !isList && !isText:
			continue
		case isText && place.text("type") == "text":
			r.Text(value)
			return true
		case isText && isBare && !isData(value):
			data, _, _ = mediatype.Decode(value) // empty if it is not base64
		case isText:
			r.Encoded(value, stated, name)
			return true
		}

		// Such data may be any text, unless it decodes to a known type.
		_, isMedium := Medium(data, "")
		if isBare && !isMedium {
			continue
		}
		r.Bytes(data, stated, name)
		return true
	}
	return false
}

// isFile reports whether the block says that it holds bytes.
func (f fields) isFile() bool {
	switch strings.ToLower(f.text("type", "kind")) {
	case "image", "audio", "video", "file", "document", "media", "input_image", "input_audio", "input_file", "blob":
		return true
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
	case of.text("blob") == "" && of.has("text"):
		r.Text(asText(of["text"]))
	case of.has("blob"):
		r.Encoded(asText(of["blob"]), kind, "")
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

// hasAny reports whether the block has one of the members.
func (f fields) hasAny(names ...string) bool { return slices.ContainsFunc(names, f.has) }

// plain returns the first member of names as a text. A text in an object of its own is found.
func (f fields) plain(names ...string) string {
	for _, name := range names {
		if !f.has(name) {
			continue
		}
		var in fields
		if json.Unmarshal(f[name], &in) == nil && in.hasAny("text", "value") {
			return in.plain("text", "value")
		}
		return asText(f[name])
	}
	return ""
}

// content returns the blocks that the block holds, itself or in its source. Nil means none.
func (f fields) content() json.RawMessage {
	var source fields
	_ = json.Unmarshal(f["source"], &source) // a source that is no object holds none
	for _, in := range []fields{f, source} {
		if raw := bytes.TrimSpace(in["content"]); len(raw) > 0 && raw[0] == '[' && areBlocks(raw) {
			return raw
		}
	}
	return nil
}

// data returns the text that carries the data of the block: base64, or a data: URI.
func (f fields) data() (value string, ok bool) {
	for _, name := range []string{"data", "blob", "bytes", "raw", "base64", "file_data"} {
		if value, ok = f.string(name); ok {
			return value, true
		}
	}

	// These members have addresses, files or words in other blocks.
	isMedium := f.mime() != "" && !mediatype.IsText(mediatype.Normal(f.mime()))
	for _, name := range []string{"image", "audio", "video", "file", "source", "content", "contents"} {
		value, ok = f.string(name)
		isAddress := strings.Contains(value, "://")
		hasData := isData(value) || isMedium && !isAddress
		if ok && hasData {
			return value, true
		}
	}
	for _, name := range []string{"url", "image_url", "uri"} {
		if value, ok = f.string(name); ok && isData(value) {
			return value, true
		}
	}
	return "", false
}

// isData reports whether a text is a data: URI.
func isData(value string) bool { return strings.HasPrefix(strings.ToLower(value), "data:") }

// octets returns the data of the block if it is a list of numbers, as programs write a buffer.
func (f fields) octets() ([]byte, bool) {
	for _, name := range []string{"data", "bytes", "blob"} {
		var list []uint8Number
		if raw := bytes.TrimSpace(f[name]); len(raw) > 1 && raw[0] == '[' && json.Unmarshal(raw, &list) == nil {
			data := make([]byte, len(list))
			for i, n := range list {
				data[i] = byte(n)
			}
			return data, true
		}
	}
	return nil, false
}

// uint8Number is a number from 0 to 255. A list of them is no text in base64, unlike []byte.
type uint8Number uint8

// maxPlaces is the maximum depth of objects in which the data of a block is looked for.
const maxPlaces = 3

// places returns the objects in which the data of the block may be: itself, and the members in
// which the blocks of providers have it, such as source, or image and its source.
func (f fields) places() []fields { return f.placesBelow(0) }

func (f fields) placesBelow(depth int) []fields {
	all := []fields{f}
	if depth == maxPlaces {
		return all
	}
	for _, name := range []string{"source", "image_url", "file", "input_audio", "inlineData", "inline_data", "image", "audio",
		"video", "document", "media", "data"} {
		var in fields
		if json.Unmarshal(f[name], &in) == nil && in != nil {
			all = append(all, in.placesBelow(depth+1)...)
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
