package record

// reply.go: Reply, a reply of the model byte for byte.

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/pawl-go/pawl/llm"
)

// Reply is a reply of the model, and what its request is compared with.
type Reply struct {
	Messages string       `json:"messages"` // digest of the sent conversation
	Request  string       `json:"request"`  // digest of the rest, without the tools
	Response llm.Response `json:"response"`
	// Exact has the bytes of texts and arguments that their JSON form does not preserve, such as
	// invalid UTF-8, by the index of the part.
	Exact map[int][]byte `json:"exact,omitzero"`
	// Opaque is the same for the data of providers, of which JSON drops spaces.
	Opaque map[int][]byte `json:"opaque,omitzero"`
	// Sent is nil if the model sends nothing, or not through Transport.
	Sent *SentRequest `json:"sent,omitzero"`
}

// NewReply returns the stored form of a reply.
func NewReply(resp *llm.Response) (Reply, error) {
	body := Reply{Response: *resp}
	form, err := json.Marshal(resp)
	if err != nil {
		return body, err
	}
	var back llm.Response
	if err := json.Unmarshal(form, &back); err != nil {
		return body, err
	}

	// The form changes some bytes, such as spaces in arguments and text that is not UTF-8. A
	// resumed run must send the original ones.
	for i, p := range resp.Message.Parts {
		text, opaque := bytesOf(p)
		again, opaqueAgain := bytesOf(back.Message.Parts[i])
		if !bytes.Equal(text, again) {
			setBytes(&body.Exact, i, text)
		}
		if !bytes.Equal(opaque, opaqueAgain) {
			setBytes(&body.Opaque, i, opaque)
		}
	}
	return body, nil
}

// setBytes sets the bytes of part i. *m may be nil.
func setBytes(m *map[int][]byte, i int, b []byte) {
	if *m == nil {
		*m = map[int][]byte{}
	}
	(*m)[i] = b
}

// Original returns the stored reply, byte for byte.
func (b *Reply) Original() *llm.Response {
	resp := b.Response
	resp.Message.Parts = slices.Clone(resp.Message.Parts) // b may have other readers
	for i, p := range resp.Message.Parts {
		text, hasText := b.Exact[i]
		opaque, hasOpaque := b.Opaque[i]
		if !hasText && !hasOpaque {
			continue
		}
		if !hasText {
			text, _ = bytesOf(p)
		}
		resp.Message.Parts[i] = withBytes(p, text, opaque)
	}
	return &resp
}

// bytesOf returns the bytes of a part that its JSON form may change.
func bytesOf(p llm.Part) (text, opaque []byte) {
	var o *llm.Opaque
	switch p := p.(type) {
	case llm.Text:
		text = []byte(p.Text)
		o = p.Opaque
	case llm.Reasoning:
		text = []byte(p.Text)
		o = p.Opaque
	case llm.ToolCall:
		text = p.Args
		o = p.Opaque
	}
	if o != nil {
		opaque = o.Data
	}
	return text, opaque
}

// withBytes returns p with the given bytes; nil opaque means no change.
func withBytes(p llm.Part, text, opaque []byte) llm.Part {
	restore := func(o *llm.Opaque) *llm.Opaque {
		if o == nil || opaque == nil {
			return o
		}
		return &llm.Opaque{Provider: o.Provider, Data: opaque}
	}

	switch p := p.(type) {
	case llm.Text:
		p.Text = string(text)
		p.Opaque = restore(p.Opaque)
		return p
	case llm.Reasoning:
		p.Text = string(text)
		p.Opaque = restore(p.Opaque)
		return p
	case llm.ToolCall:
		p.Args = text
		p.Opaque = restore(p.Opaque)
		return p
	}
	return p
}
