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
	typ     string
	members wire.Members
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
		d.details.add(c.Raw())
	}
	return nil
}

// textOfDetails returns the text of the elements that are text or a summary.
func textOfDetails(raw []byte) string {
	var b strings.Builder
	c := jsonscan.New(raw)
	for c.Array(); c.More(); {
		var typ jsonscan.Word
		var text, summary []byte
		c.Fields("type", &typ, "text", &text, "summary", &summary)
		switch string(typ) {
		case "reasoning.text":
			b.WriteString(wire.AsPiece(text))
		case "reasoning.summary":
			b.WriteString(wire.AsPiece(summary))
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
		d.thought = i
		d.details.part = i
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

// add merges one element into the entry with its index. It appends texts, and replaces other
// members unless the new value is null.
func (x *chatDetails) add(raw []byte) {
	one := detail{index: noIndex}
	c := jsonscan.New(raw)
	c.Fields("index", &one.index, "type", &one.typ)
	one.members = wire.ReadMembers(raw)
	if c.Err() != nil || len(one.members) == 0 {
		return
	}
	i := len(x.entries) - 1
	for i >= 0 && (one.index == noIndex || x.entries[i].index != one.index || x.entries[i].typ != one.typ) {
		i--
	}
	if i < 0 {
		x.entries = append(x.entries, one)
		return
	}
	for _, m := range one.members {
		have, raw := x.entries[i].members.At(m.Key), m.Raw()
		switch {
		case string(raw) == "null":
		case (m.Key == "text" || m.Key == "summary") && have.IsText() && m.IsText():
			have.Extend(raw)
		default:
			have.Set(raw)
		}
	}
}

// closeDetails emits the collected details in their part.
func (d *chatDecoder) closeDetails() error {
	x := d.details
	if x == nil || x.entries == nil {
		return nil
	}
	data := []byte(`{"reasoning_details":[`)
	for i, e := range x.entries {
		if i > 0 {
			data = append(data, ',')
		}
		data = append(data, e.members.JSON()...)
	}
	data = append(data, `]}`...)
	if !json.Valid(data) {
		return d.broken("reasoning_details are not valid JSON")
	}
	return d.Send(llm.Delta{Index: x.part, Part: llm.Reasoning{Opaque: &llm.Opaque{Provider: d.tag, Data: data}},
		Done: true})
}
