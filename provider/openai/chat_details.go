package openai

import (
	"encoding/json"
	"strings"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// chatDetails collects OpenRouter's reasoning_details, which have the signatures and the encrypted
// reasoning of the model and must be sent back with the results. A stream sends them in pieces;
// the pieces with one index form one entry.
type chatDetails struct {
	part    int // the reasoning part that carries them
	entries []detail
}

type detail struct {
	index   int64
	members []member
}

type member struct {
	key string
	raw []byte // its JSON, if nothing was added
	buf []byte // the text so far, if it arrived in pieces
}

// addDetails adds the elements of one reasoning_details array.
func (d *chatDecoder) addDetails(raw []byte) error {
	if d.sealing { // whole, stored byte for byte
		if !json.Valid(raw) {
			return d.broken("reasoning_details are not valid JSON")
		}
		return d.beginDetails(raw)
	}
	if d.details == nil {
		if err := d.beginDetails(nil); err != nil {
			return err
		}
	}
	c := jsonscan.New(raw)
	for c.Array(); c.More(); {
		one := jsonscan.New(c.Raw())
		d.details.add(&one)
	}
	return nil
}

// textOfDetails returns the text of the elements that are text or a summary.
func textOfDetails(raw []byte) string {
	var b strings.Builder
	c := jsonscan.New(raw)
	for c.Array(); c.More(); {
		var typ, text, summary string
		c.Fields("type", &typ, "text", &text, "summary", &summary)
		switch typ {
		case "reasoning.text":
			b.WriteString(text)
		case "reasoning.summary":
			b.WriteString(summary)
		}
	}
	return b.String()
}

// beginDetails attaches details to the open reasoning, or to a new one.
func (d *chatDecoder) beginDetails(whole []byte) error {
	if whole != nil {
		d.details = &chatDetails{part: closed, entries: nil}
		// The text of the reasoning is in another member. One part has both.
		data := append(append([]byte(`{"reasoning_details":`), whole...), '}')
		i, err := d.BeginReasoning(llm.Reasoning{Opaque: &llm.Opaque{Provider: d.tag, Data: data}})
		d.thought, d.details.part = i, i
		return err
	}
	if d.thought == closed {
		if err := d.closeText(); err != nil {
			return err
		}
		i, err := d.BeginReasoning(llm.Reasoning{})
		if err != nil {
			return err
		}
		d.thought = i
	}
	d.details = &chatDetails{part: d.thought}
	return nil
}

// add merges one element into the entry with its index.
func (x *chatDetails) add(c *jsonscan.Cursor) {
	if !c.Object() {
		return
	}
	index := int64(noIndex)
	var members []member
	for k, ok := c.Key(); ok; k, ok = c.Key() {
		key := string(k)
		raw := c.Raw()
		if key == "index" {
			n := jsonscan.New(raw)
			if i, ok := n.Int(); ok {
				index = i
			}
		}
		members = append(members, member{key: key, raw: append([]byte(nil), raw...)})
	}
	if c.Err() != nil {
		return
	}
	if index != noIndex {
		for i := len(x.entries) - 1; i >= 0; i-- {
			if e := &x.entries[i]; e.index == index && e.typ() == typeOf(members) {
				e.merge(members)
				return
			}
		}
	}
	x.entries = append(x.entries, detail{index, members})
}

func (e *detail) typ() string { return typeOf(e.members) }

func typeOf(members []member) string {
	for _, m := range members {
		if m.key == "type" {
			return string(m.raw)
		}
	}
	return ""
}

// merge appends texts, and replaces other members unless the new value is null.
func (e *detail) merge(members []member) {
next:
	for _, m := range members {
		for i := range e.members {
			have := &e.members[i]
			if have.key != m.key {
				continue
			}
			switch {
			case string(m.raw) == "null":
			case (m.key == "text" || m.key == "summary") && have.raw[0] == '"' && m.raw[0] == '"':
				if have.buf == nil {
					have.buf = []byte(wire.AsText(have.raw))
				}
				c := jsonscan.New(m.raw)
				have.buf = c.AppendString(have.buf)
			default:
				have.raw, have.buf = m.raw, nil
			}
			continue next
		}
		e.members = append(e.members, m)
	}
}

// opaque returns all entries in the form that is sent back.
func (x *chatDetails) opaque() json.RawMessage {
	out := []byte(`{"reasoning_details":[`)
	for i, e := range x.entries {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, '{')
		for j, m := range e.members {
			if j > 0 {
				out = append(out, ',')
			}
			out = jsonscan.AppendString(out, m.key)
			out = append(out, ':')
			if m.buf != nil {
				out = jsonscan.AppendString(out, m.buf)
			} else {
				out = append(out, m.raw...)
			}
		}
		out = append(out, '}')
	}
	return append(out, `]}`...)
}

// closeDetails emits the collected details in their part.
func (d *chatDecoder) closeDetails() error {
	x := d.details
	if x == nil || x.entries == nil {
		return nil
	}
	data := x.opaque()
	if !json.Valid(data) {
		return d.broken("reasoning_details are not valid JSON")
	}
	return d.Send(llm.Delta{Index: x.part, Part: llm.Reasoning{Opaque: &llm.Opaque{Provider: d.tag, Data: data}},
		Done: true})
}
