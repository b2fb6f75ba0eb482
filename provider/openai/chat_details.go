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
	// In a stream all elements become one part, which stays open until the end: a signature may
	// arrive after the text that it signs.
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
	begun := x.continuedBy(&one)
	if begun == nil {
		x.entries = append(x.entries, one)
		return
	}

	for _, m := range one.members {
		have := begun.members.At(m.Key)
		raw := m.Raw()
		isPiece := m.Key == "text" || m.Key == "summary"
		switch {
		case string(raw) == "null":
			// A fragment has null for members that an earlier fragment has stated.
		case isPiece && have.IsText() && m.IsText():
			have.Extend(raw)
		default:
			have.Set(raw)
		}
	}
}

// continuedBy returns the entry that an element continues; nil means that the element begins one.
// An element without an index is complete. Two types may have the same index.
func (x *chatDetails) continuedBy(one *detail) *detail {
	if one.index == noIndex {
		return nil
	}
	for i := len(x.entries) - 1; i >= 0; i-- {
		if e := &x.entries[i]; e.index == one.index && e.typ == one.typ {
			return e
		}
	}
	return nil
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
	// The members were joined as bytes. A later request contains them unchanged, where a fault
	// would make the whole conversation unusable.
	if !json.Valid(data) {
		return d.broken("reasoning_details are not valid JSON")
	}
	return d.Send(llm.Delta{Index: x.part, Part: llm.Reasoning{Opaque: &llm.Opaque{Provider: d.tag, Data: data}},
		Done: true})
}
