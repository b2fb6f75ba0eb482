package wire

import (
	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
)

// The Emitter joins characters that two fragments split, in texts, reasoning and arguments. It
// holds the half at the end of a fragment back until the next fragment of the part.

// half is half of a character, at the end of the last fragment of a part.
type half struct {
	data []byte
	kind fragmentKind
}

// join returns data as the continuation of part i.
func (o *Emitter) join(i int, kind fragmentKind, data []byte) []byte {
	before, held := o.halves[i]
	if !held && !jsonscan.BeginsWithHalf(data) && !jsonscan.EndsInHalf(data) {
		return data
	}

	// A server may cut its text between the two escapes of one character. Decoding each alone would
	// lose it.
	delete(o.halves, i)
	data = append(before.data, data...)
	if jsonscan.EndsInHalf(data) {
		end := len(data) - jsonscan.HalfSize
		if o.halves == nil {
			o.halves = map[int]half{}
		}
		o.halves[i] = half{data: append([]byte(nil), data[end:]...), kind: kind}
		data = data[:end]
	}
	return jsonscan.JoinHalves(data)
}

// joinPart is join for a part of a delta.
func (o *Emitter) joinPart(i int, p llm.Part) llm.Part {
	if _, held := o.halves[i]; !held && !hasHalf(p) {
		return p
	}
	switch p := p.(type) {
	case llm.Text:
		p.Text = stringOf(o.join(i, textKind, bytesOf(p.Text)))
		return p
	case llm.Reasoning:
		p.Text = stringOf(o.join(i, reasoningKind, bytesOf(p.Text)))
		return p
	case llm.ToolCall:
		p.Args = o.join(i, callKind, p.Args)
		return p
	}
	return p
}

// hasHalf reports whether half of a character is in p. Few parts have one, and the others need no
// copy.
func hasHalf(p llm.Part) bool {
	switch p := p.(type) {
	case llm.Text:
		return jsonscan.HasHalf(bytesOf(p.Text))
	case llm.Reasoning:
		return jsonscan.HasHalf(bytesOf(p.Text))
	case llm.ToolCall:
		return jsonscan.HasHalf(p.Args)
	}
	return false
}

// wholePart returns p with the halves in it joined: nothing continues it.
func wholePart(p llm.Part) llm.Part {
	if !hasHalf(p) {
		return p
	}
	switch p := p.(type) {
	case llm.Text:
		p.Text = stringOf(jsonscan.JoinHalves(bytesOf(p.Text)))
		return p
	case llm.Reasoning:
		p.Text = stringOf(jsonscan.JoinHalves(bytesOf(p.Text)))
		return p
	case llm.ToolCall:
		p.Args = jsonscan.JoinHalves(p.Args)
		return p
	}
	return p
}

// endHalf ends part i: a half without the other becomes U+FFFD.
func (o *Emitter) endHalf(i int) error {
	h, held := o.halves[i]
	if !held {
		return nil
	}
	delete(o.halves, i)
	return o.more(i, h.kind, jsonscan.JoinHalves(h.data))
}
