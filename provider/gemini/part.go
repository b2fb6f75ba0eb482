package gemini

import (
	"bytes"
	"encoding/json"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/internal/mediatype"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// part is a part of a reply. One member has its content, and others accompany it.
type part struct {
	kind    kind
	thought bool
	more    bool   // of a call: more pieces follow
	content []byte // raw: the string of a text, the object of media, or the whole part of kindOther
	members []byte // the other members, as an object; nil means none

	// These fields belong to a call.
	id, name string
	args     []byte // nil means none
	partial  []byte // an array of pieces of arguments; nil means none
}

// kind is the kind of a part.
type kind byte

const (
	kindNone kind = iota // empty
	kindText
	kindCall
	kindMedia
	kindOther // stored unchanged
)

// readPart reads the part at c.
func (d *decoder) readPart(c *jsonscan.Cursor) (p part) {
	begin := c.Offset()
	// The members that accompany a part are stored and sent back with it, since a signature is only
	// valid on its own part.
	unknown := false
	for k := range c.Members() {
		switch string(k) {
		case "text":
			p.kind = kindText
			p.content = c.Raw()
			continue
		case "functionCall":
			p.kind = kindCall
			d.readCall(c, &p)
			continue
		case "inlineData", "fileData":
			p.kind, p.content = kindMedia, c.Raw()
			continue
		case "executableCode", "codeExecutionResult", "toolCall", "toolResponse", "functionResponse":
			p.kind = kindOther
			c.Skip()
			continue
		case "thought":
			p.thought = c.Kind() == jsonscan.True
		case "thoughtSignature", "partMetadata", "mediaResolution", "videoMetadata":
		default:
			unknown = true
		}
		p.members = wire.AppendMember(p.members, k, c.Raw())
	}
	if p.members != nil {
		p.members = append(p.members, '}')
	}
	switch {
	// A part of a kind that this version does not know is kept whole and sent back. A part with
	// nothing in it is dropped.
	case p.kind == kindNone && (unknown || p.members != nil):
		p.kind = kindOther
	case p.thought && p.kind != kindText:
		p.kind = kindOther // a thought that is not text is a picture, and not an answer
	}
	if p.kind == kindOther {
		p.content = c.Since(begin)
	}
	return p
}

func (d *decoder) readCall(c *jsonscan.Cursor, p *part) {
	var name []byte
	c.Fields("id", &p.id, "name", &name, "args", &p.args, "partialArgs", &p.partial, "willContinue", &p.more)
	p.name = d.Name(name)
	for _, args := range []*[]byte{&p.args, &p.partial} {
		if string(*args) == "null" {
			*args = nil
		}
	}
}

// toDelta emits a part, or a piece of it.
func (d *decoder) toDelta(p *part) error {
	switch p.kind {
	case kindNone:
		return nil
	case kindText:
		return d.toText(p)
	case kindCall:
		return d.toCall(p)
	}
	if err := d.closeText(); err != nil {
		return err
	}
	if p.kind == kindOther {
		o, err := d.keep(bytes.Clone(p.content))
		if err != nil {
			return err
		}
		return d.Part(llm.Reasoning{Opaque: o})
	}
	m, err := toMedia(p.content)
	if err != nil {
		return err
	}
	if err := d.Part(m); err != nil || p.members == nil {
		return err
	}
	// Media have no place for members of the part, such as a signature. They follow in a part of
	// their own, which fromReply joins with the media again.
	o, err := d.keep(append(append([]byte(`{"`+ofMedia+`":`), p.members...), '}'))
	if err != nil {
		return err
	}
	return d.Part(llm.Reasoning{Opaque: o})
}

// keep returns an Opaque that owns object.
func (d *decoder) keep(object []byte) (*llm.Opaque, error) {
	if !json.Valid(object) {
		return nil, broken("a part of the reply is not valid JSON")
	}
	return &llm.Opaque{Provider: d.Tag, Data: object}, nil
}

// toMedia reads inlineData or fileData.
func toMedia(raw []byte) (llm.Media, error) {
	var m llm.Media
	var data jsonscan.Word
	c := jsonscan.New(raw)
	c.Fields("mimeType", &m.MIME, "fileUri", &m.URL, "data", &data)
	var err error
	if data != nil {
		m.Data, err = mediatype.Base64(string(data))
		if err != nil {
			return m, broken("media in the reply are not base64: %v", err)
		}
	}
	return m, nil
}

// toText emits text, or a thought. A signature ends the text that it belongs to.
func (d *decoder) toText(p *part) error {
	c := jsonscan.New(p.content)
	// Most parts have no other members, and are pieces of one text.
	if p.members == nil || p.thought && len(p.members) == len(`{"thought":true}`) {
		if !wire.Filled(p.content) {
			return nil
		}
		if p.thought {
			return d.think(wire.ReadPiece(&c))
		}
		return d.say(wire.ReadPiece(&c))
	}
	if err := d.closeText(); err != nil {
		return err
	}
	o, err := d.keep(p.members)
	if err != nil {
		return err
	}
	if p.thought {
		return d.Part(llm.Reasoning{Text: c.String(), Opaque: o})
	}
	return d.Part(llm.Text{Text: c.String(), Opaque: o})
}
